// By operator, each tensor operation is a block, and what only says how an operand is read is copied
// into each of the blocks that read through it: a slice of a value is not a launch of its own. A slice
// that the control program returns must be computed for it.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

module attributes {cfb.granularity = #cfb<granularity operator>} {
  // CHECK-LABEL: func.func @main(%arg0: tensor<8xf32>)
  // CHECK: %[[A:.*]] = cfb.block "main"(%arg0)
  // CHECK: math.tanh
  // CHECK-NEXT: cfb.yield
  // CHECK: %[[B:.*]] = cfb.block "main"(%[[A]])
  // CHECK: tensor.extract_slice
  // CHECK-NEXT: math.exp
  // CHECK-NEXT: cfb.yield
  // CHECK: %[[C:.*]] = cfb.block "main"(%[[B]], %[[A]])
  // CHECK: tensor.extract_slice
  // CHECK-NEXT: arith.addf
  // CHECK-NEXT: cfb.yield
  // CHECK: %[[D:.*]] = cfb.block "main"(%[[A]])
  // CHECK: tensor.extract_slice %{{.*}}[4]
  // CHECK-NEXT: cfb.yield
  // CHECK: return %[[C]], %[[D]]
  func.func @main(%x: tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %t = math.tanh %x : tensor<8xf32>
    %s = tensor.extract_slice %t[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
    %e = math.exp %s : tensor<4xf32>
    %r = arith.addf %e, %s : tensor<4xf32>
    %u = tensor.extract_slice %t[4] [4] [1] : tensor<8xf32> to tensor<4xf32>
    return %r, %u : tensor<4xf32>, tensor<4xf32>
  }
}
