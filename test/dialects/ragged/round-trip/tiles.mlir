// A row-wise kernel of a GPU is a list of launches: what runs once, tiles of products, and blocks of whole rows. All of it
// comes back from text as it was.
// RUN: %batch-opt %s | %FileCheck %s
// RUN: diff <(%batch-opt %s) <(%batch-opt %s | %batch-opt)

// CHECK: ragged.scratch on_chip : memref<?xf32>
// CHECK: ragged.nest over [56] by 4 {
// CHECK: ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
// CHECK: %[[SUMS:.*]]:2 = ragged.products %{{.*}} () -> (0) with %{{.*}} (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0, 28] copies [4, 4, 4] from %{{.*}}, %{{.*}} : memref<?x32xf32>, memref<32x56xf32>, f32, f32 -> f32, f32
// CHECK: %{{.*}}:2 = ragged.products %{{.*}} () -> (0) with {{.*}} from %[[SUMS]]#0, %[[SUMS]]#1 :
// CHECK: ragged.blocks of 10 tile 1 {
// CHECK: ragged.fold over [28] folding [0] into %{{.*}} () -> (0) lanes 0 vectors 4 :
// CHECK: ragged.tiles over [28] small [2, 2, 16, 4] large [4, 8, 16, 2] from 64 largest [8, 8, 16, 4, 8, 3] from 512 rounded tf32 weights {
// CHECK: ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 resident [4, 16, 3] clustered [4, 32, 2, 4096] {
gpu.module @g {
  ragged.kernel @k {
    %x = ragged.operand row : memref<?x32xf32>
    %y = ragged.operand row : memref<?x32xf32>
    %r = ragged.result : memref<?x28xf32>
    %w = ragged.param @w : memref<32x56xf32>
    %b = ragged.scratch : memref<56xf32>
    %h = ragged.scratch : memref<?x28xf32>
    %m = ragged.scratch on_chip : memref<?xf32>
    ragged.nest over [56] by 4 {
      %0 = arith.constant 1.0 : f32
      ragged.store %0, %b (d0) -> (d0) : memref<56xf32>
    }
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
      %0 = ragged.load %b (d0) -> (d0) : memref<56xf32>
      %1 = ragged.load %b (d0) -> (d0 + 28) : memref<56xf32>
      %2:2 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0, 28] copies [4, 4, 4] from %0, %1 : memref<?x32xf32>, memref<32x56xf32>, f32, f32 -> f32, f32
      %3:2 = ragged.products %y () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0, 28] copies [4, 4, 4] from %2#0, %2#1 : memref<?x32xf32>, memref<32x56xf32>, f32, f32 -> f32, f32
      %4 = arith.mulf %3#0, %3#1 : f32
      ragged.store %4, %h (d0) -> (d0) : memref<?x28xf32>
    }
    ragged.blocks of 10 tile 1 {
      ragged.fold over [28] folding [0] into %m () -> (0) lanes 0 vectors 4 : memref<?xf32> from {
        %0 = arith.constant 0.0 : f32
        ragged.yield %0 : f32
      } by {
      ^bb0(%sum: f32):
        %0 = ragged.load %h (d0) -> (d0) : memref<?x28xf32>
        %1 = arith.addf %sum, %0 : f32
        ragged.yield %1 : f32
      }
      ragged.nest over [28] by 4 {
        %0 = ragged.load %h (d0) -> (d0) : memref<?x28xf32>
        %1 = ragged.load %m (d0) -> (0) : memref<?xf32>
        %2 = arith.subf %0, %1 : f32
        ragged.store %2, %h (d0) -> (d0) : memref<?x28xf32>
      }
    }
    ragged.tiles over [28] small [2, 2, 16, 4] large [4, 8, 16, 2] from 64 largest [8, 8, 16, 4, 8, 3] from 512 rounded tf32 weights {
      %0 = arith.constant 0.0 : f32
      %1 = ragged.products %h () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 28 columns 56 gates [28] copies [4, 4] from %0 : memref<?x28xf32>, memref<32x56xf32>, f32 -> f32
      ragged.store %1, %r (d0) -> (d0) : memref<?x28xf32>
    }
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 resident [4, 16, 3] clustered [4, 32, 2, 4096] {
      %0 = arith.constant 0.0 : f32
      %1 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [28] copies [4, 4] from %0 : memref<?x32xf32>, memref<32x56xf32>, f32 -> f32
      ragged.store %1, %r (d0) -> (d0) : memref<?x28xf32>
    }
  }
}
