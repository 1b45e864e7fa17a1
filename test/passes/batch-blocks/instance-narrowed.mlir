// A tensor whose lengths were found to be numbers becomes one of known shape: each call has one row of it.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: cfb.kernel @f_0 attributes {lengths = [@dim.0], rows = [], {{.*}}unit = #cfb<unit calls>}
// CHECK: tensor.cast %{{.*}} : tensor<?x?x4xf32, #ragged.shape<@dim.batch, @dim.0(@dim.batch), _>> to tensor<?x3x4xf32>
func.func @main(%n: index, %x: tensor<?x4xf32>) -> tensor<3x4xf32> {
  %r = cfb.block "f"(%n, %x) : (index, tensor<?x4xf32>) -> tensor<3x4xf32>
      attributes {leading = [[@dim.0]], lengths = [@dim.0], rows = [], unit = #cfb<unit calls>} {
  ^bb0(%l: index, %y: tensor<?x4xf32>):
    %c = tensor.cast %y : tensor<?x4xf32> to tensor<3x4xf32>
    cfb.yield %c : tensor<3x4xf32>
  }
  return %r : tensor<3x4xf32>
}
