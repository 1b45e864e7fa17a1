// Slices and concatenation keep the batch dim whole.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: ^bb0(%[[N:.*]]: index,
// CHECK: tensor.extract_slice %{{.*}}[0, 1] [%[[N]], 2] [1, 1] : tensor<?x6xf32> to tensor<?x2xf32>
// CHECK: tensor.extract_slice %{{.*}}[0, 4] [%[[N]], 2] [1, 1]
// CHECK: tensor.concat dim(1)
func.func @f(%x: tensor<6xf32>) -> tensor<4xf32> {
  %r = cfb.block "f"(%x) : (tensor<6xf32>) -> (tensor<4xf32>) attributes {reuse = [#cfb<reuse row>]} {
  ^bb0(%b_x: tensor<6xf32>):
    %a = tensor.extract_slice %b_x[1] [2] [1] : tensor<6xf32> to tensor<2xf32>
    %b = tensor.extract_slice %b_x[4] [2] [1] : tensor<6xf32> to tensor<2xf32>
    %out = tensor.concat dim(0) %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
    cfb.yield %out : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
