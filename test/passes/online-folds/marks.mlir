// The chain product, elementwise, maximum, exponential, sum, division, product is found by what its
// operations read, whatever is elementwise in the middle, and its last product is marked; the first
// one, which is read by nothing but the chain, is not.
// RUN: %batch-opt %s --online-folds | %FileCheck %s
// RUN: %batch-opt %s --online-folds --plan-kernels --split-tails --lower-kernels | %FileCheck --check-prefix=LOWERED %s

ragged.dim @batch
ragged.dim @n(@batch)

!x = tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>
!t = tensor<?x16x?xf32, #ragged.shape<@batch, _, @n(@batch)>>
!s = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
!i = tensor<?x?x?xi32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
!b = tensor<?x?x?xi1, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
!r = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>
#map = affine_map<(b, i, j) -> (b, i, j)>

// CHECK-LABEL: cfb.kernel @attend
// CHECK: linalg.batch_matmul ins(%{{.*}}, %transposed
// CHECK: linalg.batch_matmul {ragged.online}
// Both products run on blocks in scratch of a known size.
// LOWERED-LABEL: func.func @attend
// LOWERED-SAME: \22scratch_bytes\22:{{[1-9]}}
// LOWERED: llvm.call @cohort_block(
// LOWERED: llvm.call @cohort_block(
cfb.kernel @attend attributes {unit = "calls", lengths = [@n], rows = [@n]} {
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
  %half = arith.constant 0.5 : f32
  %h = linalg.fill ins(%half : f32) outs(%e : !s) -> !s
  %f = arith.mulf %p, %h : !s
  %s = math.absf %f : !s
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
