// Where every call knows the constructor, the function itself is not called any more, so that no product is
// kept from those of other calls: also an arm that multiplies is copied.
// RUN: %batch-opt %s --specialise-constructors --symbol-dce --canonicalize | %FileCheck %s

cfb.adt @Stack ["Bottom", "Push"] [[], [tensor<64xf32>, !cfb.adt<@Stack>]]
ml_program.global private @w(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>

// CHECK-NOT: func.func private @reduce(
// CHECK-LABEL: func.func private @reduce_Push(
// CHECK-SAME: %{{[a-z0-9]*}}: tensor<64xf32>, %[[TOP:[a-z0-9]*]]: tensor<64xf32>, %[[REST:[a-z0-9]*]]: !cfb.adt<@Stack>
// CHECK: cfb.match %[[REST]]
// CHECK: %[[NEW:.*]] = linalg.vecmat ins(%[[TOP]],
// CHECK: func.call @reduce_Push(%{{[a-z0-9]*}}, %[[NEW]], %{{[a-z0-9]*}})
func.func private @reduce(%s: !cfb.adt<@Stack>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {no_inline} {
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %r = cfb.match %s : !cfb.adt<@Stack> -> (tensor<64xf32>) ({
    cfb.yield %y : tensor<64xf32>
  }, {
  ^bb0(%top: tensor<64xf32>, %rest: !cfb.adt<@Stack>):
    %below = cfb.match %rest : !cfb.adt<@Stack> -> (tensor<64xf32>) ({
      cfb.yield %top : tensor<64xf32>
    }, {
    ^bb0(%second: tensor<64xf32>, %others: !cfb.adt<@Stack>):
      %p = linalg.vecmat ins(%top, %w : tensor<64xf32>, tensor<64x64xf32>) outs(%second : tensor<64xf32>) -> tensor<64xf32>
      %shorter = cfb.construct "Push"(%p, %others) : (tensor<64xf32>, !cfb.adt<@Stack>) -> !cfb.adt<@Stack>
      %h = func.call @reduce(%shorter, %y) : (!cfb.adt<@Stack>, tensor<64xf32>) -> tensor<64xf32>
      cfb.yield %h : tensor<64xf32>
    })
    cfb.yield %below : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %bottom = cfb.construct "Bottom"() : () -> !cfb.adt<@Stack>
  %one = cfb.construct "Push"(%x, %bottom) : (tensor<64xf32>, !cfb.adt<@Stack>) -> !cfb.adt<@Stack>
  %r = func.call @reduce(%one, %x) : (!cfb.adt<@Stack>, tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}
