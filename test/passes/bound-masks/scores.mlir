// Scores that are masked, by any constant, end where the mask begins, if they are looked at block by
// block; without `online-folds` they are not.
// RUN: %batch-opt %s --plan-kernels --online-folds --bound-masks | %FileCheck %s
// RUN: %batch-opt %s --plan-kernels --bound-masks | %FileCheck --check-prefix=ALONE %s

!x = tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>
!t = tensor<?x16x?xf32, #ragged.shape<@batch, _, @n(@batch)>>
!s = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
!i = tensor<?x?x?xi32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
!b = tensor<?x?x?xi1, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
!r = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>
#map = affine_map<(b, i, j) -> (b, i, j)>

// ALONE-NOT: until
// CHECK-LABEL: ragged.kernel @attend
// CHECK: ragged.online_softmax over [@n, 16] keys [@n] depth 16 {{.*}} until 1 masked -1.000000e+30
cfb.kernel @attend attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %q: !x, %k: !x, %v: !x):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %d = tensor.dim %q, %c1 : !x
  %e = tensor.empty(%calls, %d, %d) : !s
  %z = linalg.fill ins(%zero : f32) outs(%e : !s) -> !s
  %er = tensor.empty(%calls, %d) : !r
  %zr = linalg.fill ins(%zero : f32) outs(%er : !r) -> !r
  %lr = linalg.fill ins(%low : f32) outs(%er : !r) -> !r
  %ex = tensor.empty(%calls, %d) : !x
  %zx = linalg.fill ins(%zero : f32) outs(%ex : !x) -> !x
  %et = tensor.empty(%calls, %d) : !t
  %kt = linalg.transpose ins(%k : !x) outs(%et : !t) permutation = [0, 2, 1]
  %p = linalg.batch_matmul ins(%q, %kt : !x, !t) outs(%z : !s) -> !s
  %masked = arith.constant -1.0e30 : f32
  %h = linalg.fill ins(%masked : f32) outs(%e : !s) -> !s
  %ei = tensor.empty(%calls, %d, %d) : !i
  %i = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel"]} outs(%ei : !i) {
  ^bb0(%out: i32):
    %at = linalg.index 1 : index
    %row = arith.index_cast %at : index to i32
    linalg.yield %row : i32
  } -> !i
  %j = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel"]} outs(%ei : !i) {
  ^bb0(%out: i32):
    %at = linalg.index 2 : index
    %column = arith.index_cast %at : index to i32
    linalg.yield %column : i32
  } -> !i
  %c = arith.cmpi sge, %i, %j : !i
  %s = arith.select %c, %p, %h : !b, !s
  %m = linalg.reduce { arith.maximumf } ins(%s : !s) outs(%lr : !r) dimensions = [2]
  %mb = linalg.broadcast ins(%m : !r) outs(%e : !s) dimensions = [2]
  %x = arith.subf %s, %mb : !s
  %w = math.exp %x : !s
  %sum = linalg.reduce { arith.addf } ins(%w : !s) outs(%zr : !r) dimensions = [2]
  %sb = linalg.broadcast ins(%sum : !r) outs(%e : !s) dimensions = [2]
  %y = arith.divf %w, %sb : !s
  %o = linalg.batch_matmul ins(%y, %v : !s, !x) outs(%zx : !x) -> !x
  cfb.yield %o : !x
}
