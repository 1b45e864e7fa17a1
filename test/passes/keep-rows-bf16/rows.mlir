// What products alone read is kept in bf16; what others read too, or a result, is stored twice. The largest size has other
// buffers then, as there is more room. Twice is as once.
// RUN: %batch-opt %s --keep-rows-bf16 | %FileCheck %s
// RUN: diff <(%batch-opt %s --keep-rows-bf16) <(%batch-opt %s --keep-rows-bf16 --keep-rows-bf16)

// CHECK-LABEL: ragged.kernel @layers
// CHECK: %[[R:.*]] = ragged.result : memref<?x512xf32>
// CHECK: %[[H:.*]] = ragged.scratch bf16 : memref<?x512xf32>
// CHECK-NEXT: %[[GB:.*]] = ragged.scratch bf16 : memref<?x64xf32>
// CHECK-NEXT: %[[G:.*]] = ragged.scratch : memref<?x64xf32>
// CHECK: %[[RB:.*]] = ragged.scratch bf16 : memref<?x512xf32>
// CHECK: ragged.products %{{.*}} copies [4, 4]
// CHECK: ragged.store %[[V:.*]], %[[H]] (d0) -> (d0)
// CHECK: largest [8, 16, 32, 4, 8, 3] from 1000
// CHECK: ragged.products %[[H]] () -> (0) {{.*}} copies [8, 4]
// CHECK: ragged.store %[[S:.*]], %[[GB]] (d0) -> (d0)
// CHECK-NEXT: ragged.store %[[S]], %[[G]] (d0) -> (d0)
// CHECK: ragged.load %[[G]]
// CHECK: ragged.products %[[GB]] () -> (0) {{.*}} copies [8, 4]
// CHECK: ragged.store %[[T:.*]], %[[RB]]
// CHECK-NEXT: ragged.store %[[T]], %[[R]]
// CHECK: ragged.products %[[RB]] () -> (0) {{.*}} copies [8, 4]
module {
  gpu.module @cohort_gpu {
    ragged.kernel @layers {
      %x = ragged.operand row : memref<?x64xf32>
      %r = ragged.result : memref<?x512xf32>
      %q = ragged.result : memref<?x64xf32>
      %h = ragged.scratch : memref<?x512xf32>
      %g = ragged.scratch : memref<?x64xf32>
      %u = ragged.param @u : memref<64x512xf32>
      %v = ragged.param @v : memref<512x64xf32>
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %x () -> (0) with %u (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
        ragged.store %1, %h (d0) -> (d0) : memref<?x512xf32>
      }
      ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 largest [8, 16, 16, 4, 8, 4] from 1000 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %h () -> (0) with %v (d0, d1) -> (d0 * 64 + d1) k 512 columns 64 gates [0] copies [4, 4] from %0 : memref<?x512xf32>, memref<512x64xf32>, f32 -> f32
        ragged.store %1, %g (d0) -> (d0) : memref<?x64xf32>
      }
      ragged.tiles over [512] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded bf16 weights {
        %0 = ragged.load %g (d0) -> (0) : memref<?x64xf32>
        %1 = ragged.products %g () -> (0) with %u (d0, d1) -> (d0 * 512 + d1) k 64 columns 512 gates [0] copies [4, 4] from %0 : memref<?x64xf32>, memref<64x512xf32>, f32 -> f32
        ragged.store %1, %r (d0) -> (d0) : memref<?x512xf32>
      }
      ragged.tiles over [64] small [2, 2, 16, 4] large [4, 8, 16, 2] from 100 rounded bf16 weights {
        %0 = arith.constant 0.0 : f32
        %1 = ragged.products %r () -> (0) with %v (d0, d1) -> (d0 * 64 + d1) k 512 columns 64 gates [0] copies [4, 4] from %0 : memref<?x512xf32>, memref<512x64xf32>, f32 -> f32
        ragged.store %1, %q (d0) -> (d0) : memref<?x64xf32>
      }
    }
  }
}
