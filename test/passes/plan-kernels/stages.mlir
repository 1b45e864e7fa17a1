// Memory is declared in the order of what the kernel's function gets; a product starts from the bias, and what
// is elementwise behind it is one nest.
// RUN: %batch-opt %s --plan-kernels | %FileCheck %s
// RUN: diff <(%batch-opt %s --plan-kernels | %batch-opt --lower-kernels | sed 's/location[^,]*,//') <(%batch-opt %s --plan-kernels --lower-kernels | sed 's/location[^,]*,//')

ml_program.global private @w(#ml_program.extern<tensor<24x40xf32>>) : tensor<24x40xf32>
ml_program.global private @b(#ml_program.extern<tensor<40xf32>>) : tensor<40xf32>

// CHECK-LABEL: ragged.kernel @joined {
// CHECK-NEXT: %[[X:.*]] = ragged.operand row : memref<?x8xf32>
// CHECK-NEXT: %[[Y:.*]] = ragged.operand row : memref<?x16xf32>
// CHECK-NEXT: %[[R:.*]] = ragged.result : memref<?x40xf32>
// CHECK-NEXT: %[[W:.*]] = ragged.param @w panels 32 : memref<24x40xf32>
// CHECK-NEXT: %[[B:.*]] = ragged.param @b : memref<40xf32>
// CHECK-NEXT: %[[S:.*]] = ragged.scratch products 1 : memref<?x48xf32>
// CHECK-NEXT: ragged.blocks of 96 tile 12 {
// CHECK-NEXT: ragged.product %[[X]] (d0) -> (0) rows 1 k 8 columns 40 with %[[W]] row 0 from %[[B]] + 0 into %[[S]] tile 12
// CHECK-NEXT: ragged.product %[[Y]] (d0) -> (0) rows 1 k 16 columns 40 with %[[W]] row 8 onto into %[[S]] tile 12
// CHECK-NEXT: ragged.nest over [40] lanes 0 by 32 {
// CHECK-NEXT: %[[V:.*]] = ragged.load %[[S]] (d0) -> (d0) : memref<?x48xf32>
// CHECK-NEXT: %[[T:.*]] = math.tanh %[[V]] : f32
// CHECK-NEXT: ragged.store %[[T]], %[[R]] (d0) -> (d0) : memref<?x40xf32>
cfb.kernel @joined {
^bb0(%rows: index, %x: tensor<?x8xf32>, %y: tensor<?x16xf32>):
  %w = ml_program.global_load_const @w : tensor<24x40xf32>
  %b = ml_program.global_load_const @b : tensor<40xf32>
  %u = tensor.extract_slice %w[0, 0] [8, 40] [1, 1] : tensor<24x40xf32> to tensor<8x40xf32>
  %v = tensor.extract_slice %w[8, 0] [16, 40] [1, 1] : tensor<24x40xf32> to tensor<16x40xf32>
  %e = tensor.empty(%rows) : tensor<?x40xf32>
  %s = linalg.broadcast ins(%b : tensor<40xf32>) outs(%e : tensor<?x40xf32>) dimensions = [0]
  %p = linalg.matmul ins(%x, %u : tensor<?x8xf32>, tensor<8x40xf32>) outs(%s : tensor<?x40xf32>) -> tensor<?x40xf32>
  %q = linalg.matmul ins(%y, %v : tensor<?x16xf32>, tensor<16x40xf32>) outs(%p : tensor<?x40xf32>) -> tensor<?x40xf32>
  %t = math.tanh %q : tensor<?x40xf32>
  cfb.yield %t : tensor<?x40xf32>
}
