// A match whose constructor is known gives way to the region that is taken.
// RUN: %batch-opt %s --canonicalize | %FileCheck %s

cfb.adt @Option ["None", "Some"] [[], [tensor<4xf32>]]

// A value that the program has built.
// CHECK-LABEL: func.func @built(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4xf32>, %[[Y:[a-z0-9]*]]: tensor<4xf32>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK-NEXT: return %[[SUM]], %[[Y]]
func.func @built(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %some = cfb.construct "Some"(%x) : (tensor<4xf32>) -> !cfb.adt<@Option>
  %none = cfb.construct "None"() : () -> !cfb.adt<@Option>
  %a = cfb.match %some : !cfb.adt<@Option> -> (tensor<4xf32>) ({
    cfb.yield %y : tensor<4xf32>
  }, {
  ^bb0(%field: tensor<4xf32>):
    %sum = arith.addf %field, %y : tensor<4xf32>
    cfb.yield %sum : tensor<4xf32>
  })
  %b = cfb.match %none : !cfb.adt<@Option> -> (tensor<4xf32>) ({
    cfb.yield %y : tensor<4xf32>
  }, {
  ^bb0(%field: tensor<4xf32>):
    cfb.yield %field : tensor<4xf32>
  })
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// One that a match around it takes apart already.
// CHECK-LABEL: func.func @around(
// CHECK: cfb.match
// CHECK-NEXT: cfb.yield
// CHECK: ^bb0(%[[FIELD:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[TWICE:.*]] = arith.addf %[[FIELD]], %[[FIELD]]
// CHECK-NEXT: cfb.yield %[[TWICE]]
// CHECK-NOT: cfb.match
func.func @around(%o: !cfb.adt<@Option>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %r = cfb.match %o : !cfb.adt<@Option> -> (tensor<4xf32>) ({
    cfb.yield %y : tensor<4xf32>
  }, {
  ^bb0(%x: tensor<4xf32>):
    %again = cfb.match %o : !cfb.adt<@Option> -> (tensor<4xf32>) ({
      cfb.yield %y : tensor<4xf32>
    }, {
    ^bb0(%field: tensor<4xf32>):
      %twice = arith.addf %x, %field : tensor<4xf32>
      cfb.yield %twice : tensor<4xf32>
    })
    cfb.yield %again : tensor<4xf32>
  })
  return %r : tensor<4xf32>
}

// A field that one holds as a tensor, the other as its handle, is left as it is.
// CHECK-LABEL: func.func @held(
// CHECK: cfb.match
func.func @held(%x: !cfb.lazy<tensor<4xf32>>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %some = cfb.construct "Some"(%x) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.adt<@Option>
  %r = cfb.match %some : !cfb.adt<@Option> -> (tensor<4xf32>) ({
    cfb.yield %y : tensor<4xf32>
  }, {
  ^bb0(%field: tensor<4xf32>):
    cfb.yield %field : tensor<4xf32>
  })
  return %r : tensor<4xf32>
}
