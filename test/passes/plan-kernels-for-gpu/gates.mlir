// Slices of one product that meet in pointwise arithmetic are gates of one tile: sums over one iteration space, whose
// starts are read where the sums are. What is stored is the result alone. What is printed comes back as the same code.
// RUN: %batch-opt %s --plan-kernels-for-gpu | %FileCheck %s
// RUN: diff <(%batch-opt %s --plan-kernels-for-gpu | %batch-opt --lower-kernels-to-gpu) <(%batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu)

// CHECK: ragged.kernel @gates {
// CHECK-NOT: ragged.scratch
// CHECK: ragged.tiles over [64] small [2, 1, 32, 1] large [8, 2, 16, 1] from 4096 {
// CHECK-NEXT: %[[I:.*]] = ragged.load %[[B:.*]] (d0) -> (d0) : memref<128xf32>
// CHECK-NEXT: %[[O:.*]] = ragged.load %[[B]] (d0) -> (d0 + 64) : memref<128xf32>
// CHECK-NEXT: %[[P:.*]]:2 = ragged.products %{{.*}} () -> (0) with %{{.*}} (d0, d1) -> (d0 * 128 + d1) k 64 columns 128 gates [0, 64] copies [4, 4, 4] from %[[I]], %[[O]] :
// CHECK-NEXT: %[[H:.*]] = arith.mulf %[[P]]#0, %[[P]]#1 : f32
// CHECK-NEXT: ragged.store %[[H]], %{{.*}} (d0) -> (d0) : memref<?x64xf32>
// CHECK: cfb.kernel @gates
ml_program.global private @w(#ml_program.extern<tensor<64x128xf32>>) : tensor<64x128xf32>
ml_program.global private @b(#ml_program.extern<tensor<128xf32>>) : tensor<128xf32>

cfb.kernel @gates {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %w = ml_program.global_load_const @w : tensor<64x128xf32>
  %b = ml_program.global_load_const @b : tensor<128xf32>
  %e = tensor.empty(%rows) : tensor<?x128xf32>
  %z = linalg.broadcast ins(%b : tensor<128xf32>) outs(%e : tensor<?x128xf32>) dimensions = [0]
  %p = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x128xf32>) outs(%z : tensor<?x128xf32>) -> tensor<?x128xf32>
  %i = tensor.extract_slice %p[0, 0] [%rows, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %o = tensor.extract_slice %p[0, 64] [%rows, 64] [1, 1] : tensor<?x128xf32> to tensor<?x64xf32>
  %h = arith.mulf %i, %o : tensor<?x64xf32>
  cfb.yield %h : tensor<?x64xf32>
}
