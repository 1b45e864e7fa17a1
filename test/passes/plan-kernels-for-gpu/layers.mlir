// A product of what a product computes is a tile of its own. In the device's memory is what the second one reads,
// after the pointwise work; the sums themselves are in none.
// RUN: %batch-opt %s --plan-kernels-for-gpu | %FileCheck %s
// RUN: diff <(%batch-opt %s --plan-kernels-for-gpu | %batch-opt --lower-kernels-to-gpu) <(%batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu)

// CHECK: ragged.kernel @layers {
// CHECK: %[[H:.*]] = ragged.scratch : memref<?x40xf32>
// CHECK-NOT: ragged.scratch
// CHECK: ragged.tiles over [40]
// CHECK: %[[P:.*]] = ragged.products
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[P]]
// CHECK-NEXT: ragged.store %[[N]], %[[H]]
// CHECK: ragged.tiles over [24]
// CHECK: ragged.products %[[H]] () -> (0) with
// CHECK: cfb.kernel @layers
ml_program.global private @w(#ml_program.extern<tensor<24x40xf32>>) : tensor<24x40xf32>
ml_program.global private @v(#ml_program.extern<tensor<40x24xf32>>) : tensor<40x24xf32>

cfb.kernel @layers {
^bb0(%rows: index, %x: tensor<?x24xf32>):
  %w = ml_program.global_load_const @w : tensor<24x40xf32>
  %v = ml_program.global_load_const @v : tensor<40x24xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x40xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x40xf32>) -> tensor<?x40xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x24xf32>, tensor<24x40xf32>) outs(%z : tensor<?x40xf32>) -> tensor<?x40xf32>
  %h = arith.negf %p : tensor<?x40xf32>
  %e1 = tensor.empty(%rows) : tensor<?x24xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x24xf32>) -> tensor<?x24xf32>
  %q = linalg.matmul ins(%h, %v : tensor<?x40xf32>, tensor<40x24xf32>) outs(%z1 : tensor<?x24xf32>) -> tensor<?x24xf32>
  cfb.yield %q : tensor<?x24xf32>
}
