// The mask of a product's left side becomes the end of its sum, however the comparison is written, for
// each target.
// RUN: %batch-opt %s --plan-kernels --bound-masks | %FileCheck %s
// RUN: %batch-opt %s --plan-kernels-for-gpu --bound-masks | %FileCheck %s

!x = tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>
!t = tensor<?x16x?xf32, #ragged.shape<@batch, _, @n(@batch)>>
!s = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
!i = tensor<?x?x?xi32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
!b = tensor<?x?x?xi1, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
!r = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>
#map = affine_map<(b, i, j) -> (b, i, j)>

// CHECK-LABEL: ragged.kernel @lower
// CHECK: ragged.matmul over [@n, 16] depth [@n] {{.*}} (d0, d1) -> (d0, d1) until 1 :
cfb.kernel @lower attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %a: !s, %b: !x):
  %c1 = arith.constant 1 : index
  %other = arith.constant 0.0 : f32
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %b, %c1 : !x
  %e = tensor.empty(%calls, %d, %d) : !s
  %z = linalg.fill ins(%other : f32) outs(%e : !s) -> !s
  %ex = tensor.empty(%calls, %d) : !x
  %zx = linalg.fill ins(%zero : f32) outs(%ex : !x) -> !x
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
  %r = arith.cmpi sge, %i, %j : !i
  %t = arith.select %r, %a, %z : !b, !s
  %p = linalg.batch_matmul ins(%t, %b : !s, !x) outs(%zx : !x) -> !x
  cfb.yield %p : !x
}

// CHECK-LABEL: ragged.kernel @not_upper
// CHECK: ragged.matmul over [@n, 16] depth [@n] {{.*}} (d0, d1) -> (d0, d1) until 1 :
cfb.kernel @not_upper attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %a: !s, %b: !x):
  %c1 = arith.constant 1 : index
  %other = arith.constant 0.0 : f32
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %b, %c1 : !x
  %e = tensor.empty(%calls, %d, %d) : !s
  %z = linalg.fill ins(%other : f32) outs(%e : !s) -> !s
  %ex = tensor.empty(%calls, %d) : !x
  %zx = linalg.fill ins(%zero : f32) outs(%ex : !x) -> !x
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
  %r = arith.cmpi slt, %i, %j : !i
  %t = arith.select %r, %z, %a : !b, !s
  %p = linalg.batch_matmul ins(%t, %b : !s, !x) outs(%zx : !x) -> !x
  cfb.yield %p : !x
}

// CHECK-LABEL: ragged.kernel @strict
// CHECK: ragged.matmul over [@n, 16] depth [@n] {{.*}} (d0, d1) -> (d0, d1) until 0 :
cfb.kernel @strict attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %a: !s, %b: !x):
  %c1 = arith.constant 1 : index
  %other = arith.constant 0.0 : f32
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %b, %c1 : !x
  %e = tensor.empty(%calls, %d, %d) : !s
  %z = linalg.fill ins(%other : f32) outs(%e : !s) -> !s
  %ex = tensor.empty(%calls, %d) : !x
  %zx = linalg.fill ins(%zero : f32) outs(%ex : !x) -> !x
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
  %r = arith.cmpi sgt, %i, %j : !i
  %t = arith.select %r, %a, %z : !b, !s
  %p = linalg.batch_matmul ins(%t, %b : !s, !x) outs(%zx : !x) -> !x
  cfb.yield %p : !x
}
