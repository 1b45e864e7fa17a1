// A tensor of known shape that is used as one of any gets a length as its rows have one: the type of
// what is copied names the dim that the kernel's rows are.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: cfb.kernel @f_0
// CHECK: cfb.widen %{{.*}}(%{{.*}}, %{{.*}}) : tensor<?x3x4xf32> -> tensor<?x?x4xf32, #ragged.shape<@dim.batch, @dim.0(@dim.batch), _>>
func.func @main(%n: index, %x: tensor<3x4xf32>) -> tensor<?x4xf32> {
  %r = cfb.block "f"(%n, %x) : (index, tensor<3x4xf32>) -> tensor<?x4xf32>
      attributes {leading = [[]], lengths = [@dim.0], rows = [@dim.0], unit = #cfb<unit calls>} {
  ^bb0(%l: index, %y: tensor<3x4xf32>):
    %c = cfb.widen %y(%l) : tensor<3x4xf32> -> tensor<?x4xf32>
    cfb.yield %c : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// What has any length in between only has the one that it is widened to.
// CHECK: cfb.kernel @g_0
// CHECK: cfb.widen %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}) : tensor<?x3x?x4xf32, #ragged.shape<@dim.batch, _, @dim.0(@dim.batch), _>> -> tensor<?x?x?x4xf32, #ragged.shape<@dim.batch, @dim.1(@dim.batch), @dim.0(@dim.batch), _>>
func.func @between(%n: index, %x: tensor<3x?x4xf32>) -> tensor<3x?x4xf32> {
  %number = arith.constant 3 : index
  %three = cfb.length %number
  %r = cfb.block "g"(%n, %three, %x) : (index, index, tensor<3x?x4xf32>) -> tensor<3x?x4xf32>
      attributes {leading = [[3, @dim.0]], lengths = [@dim.0, @dim.1], rows = [3, @dim.0], unit = #cfb<unit calls>} {
  ^bb0(%l: index, %k: index, %y: tensor<3x?x4xf32>):
    %any = cfb.widen %y(%k, %l) : tensor<3x?x4xf32> -> tensor<?x?x4xf32>
    %s = arith.mulf %any, %any : tensor<?x?x4xf32>
    %c = tensor.cast %s : tensor<?x?x4xf32> to tensor<3x?x4xf32>
    cfb.yield %c : tensor<3x?x4xf32>
  }
  return %r : tensor<3x?x4xf32>
}
