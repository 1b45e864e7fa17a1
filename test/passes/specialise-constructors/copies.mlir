// A call with a value just built calls a copy that takes its fields; calls for the same constructor share
// it. What the copy calls is looked at, too, but not in an arm that it never takes.
// RUN: %batch-opt %s --specialise-constructors | %FileCheck %s
// RUN: %batch-opt %s --specialise-constructors --canonicalize | %FileCheck %s --check-prefix=FOLDED

cfb.adt @Tree ["Leaf", "Node"] [[tensor<4xf32>], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]]

// CHECK: func.func private @f_Leaf(%[[S:[a-z0-9]*]]: f32, %[[X:[a-z0-9]*]]: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: %[[T:.*]] = cfb.construct "Leaf"(%[[X]])
// CHECK-NEXT: cfb.match %[[T]]
// CHECK: func.func private @f(
// CHECK-NOT: func.func private @f
// FOLDED-LABEL: func.func private @f_Leaf(
// FOLDED-SAME: %{{.*}}: f32, %[[X:[a-z0-9]*]]: tensor<4xf32>
// FOLDED-NEXT: return %[[X]]
func.func private @f(%t: !cfb.adt<@Tree>, %s: f32) -> tensor<4xf32> attributes {no_inline} {
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<4xf32>) ({
  ^bb0(%x: tensor<4xf32>):
    cfb.yield %x : tensor<4xf32>
  }, {
  ^bb0(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>):
    %a = func.call @f(%l, %s) : (!cfb.adt<@Tree>, f32) -> tensor<4xf32>
    %b = func.call @g(%l, %r) : (!cfb.adt<@Tree>, !cfb.adt<@Tree>) -> tensor<4xf32>
    %c = arith.addf %a, %b : tensor<4xf32>
    cfb.yield %c : tensor<4xf32>
  })
  return %r : tensor<4xf32>
}

func.func private @g(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>) -> tensor<4xf32> attributes {no_inline} {
  %s = arith.constant 1.0 : f32
  %h = func.call @f(%l, %s) : (!cfb.adt<@Tree>, f32) -> tensor<4xf32>
  return %h : tensor<4xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<4xf32>, %[[U:[a-z0-9]*]]: !cfb.adt<@Tree>, %[[K:[a-z0-9]*]]: f32
// CHECK: call @f_Leaf(%[[K]], %[[A]])
// CHECK: call @f_Leaf(%[[K]], %[[A]])
// CHECK: call @f(%[[U]], %[[K]])
// CHECK: cfb.match %[[U]]
// CHECK-NEXT: ^bb0(%[[FIELD:.*]]: tensor<4xf32>):
// CHECK-NEXT: func.call @f_Leaf(%[[K]], %[[FIELD]])
func.func @main(%a: tensor<4xf32>, %u: !cfb.adt<@Tree>, %k: f32) {
  %leaf = cfb.construct "Leaf"(%a) : (tensor<4xf32>) -> !cfb.adt<@Tree>
  %0 = func.call @f(%leaf, %k) : (!cfb.adt<@Tree>, f32) -> tensor<4xf32>
  %1 = func.call @f(%leaf, %k) : (!cfb.adt<@Tree>, f32) -> tensor<4xf32>
  %2 = func.call @f(%u, %k) : (!cfb.adt<@Tree>, f32) -> tensor<4xf32>
  %3 = cfb.match %u : !cfb.adt<@Tree> -> (tensor<4xf32>) ({
  ^bb0(%x: tensor<4xf32>):
    %4 = func.call @f(%u, %k) : (!cfb.adt<@Tree>, f32) -> tensor<4xf32>
    cfb.yield %4 : tensor<4xf32>
  }, {
  ^bb0(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>):
    cfb.yield %a : tensor<4xf32>
  })
  return
}
