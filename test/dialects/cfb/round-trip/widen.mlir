// A tensor of known shape under a length that stays one.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s

// CHECK-LABEL: func.func @widen
func.func @widen(%x: tensor<3x8xf32>, %y: tensor<?x8xf32>, %m: index) -> (tensor<?x8xf32>, tensor<?x?xf32>) {
  %three = arith.constant 3 : index
  // CHECK: %[[N:.*]] = cfb.length %{{.*}}
  %n = cfb.length %three
  // CHECK: cfb.widen %{{.*}}(%[[N]]) : tensor<3x8xf32> -> tensor<?x8xf32>
  %z = cfb.widen %x(%n) : tensor<3x8xf32> -> tensor<?x8xf32>
  // CHECK: cfb.widen %{{.*}}(%{{.*}}, %[[N]]) : tensor<?x8xf32> -> tensor<?x?xf32>
  %w = cfb.widen %y(%m, %n) : tensor<?x8xf32> -> tensor<?x?xf32>
  return %z, %w : tensor<?x8xf32>, tensor<?x?xf32>
}
