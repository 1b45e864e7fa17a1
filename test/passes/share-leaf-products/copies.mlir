// A function gets a copy for each of the products that its own calls need, behind both of its ends; calls that need the
// same have one copy, and an end that hands on what a call returns hands on what one of the copy does. What nobody
// uses any more is no result. Who calls it from outside gets the first copy, and
// multiplies by itself.
// RUN: %batch-opt %s --share-leaf-products --symbol-dce --canonicalize --cse --verify-diagnostics -o %t
// RUN: %FileCheck %s < %t
// RUN: %batch-opt %t --share-leaf-products | %FileCheck %s --check-prefix=AGAIN

// AGAIN-COUNT-2: func.func private
// AGAIN-NOT: func.func private
cfb.adt @Tree ["Leaf", "Same", "Node"] [[i32], [!cfb.adt<@Tree>], [!cfb.adt<@Tree>, !cfb.adt<@Tree>, !cfb.adt<@Tree>]]
ml_program.global private @emb(#ml_program.extern<tensor<9x64xf32>>) : tensor<9x64xf32>
ml_program.global private @u(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @v(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>

// CHECK-NOT: @cell(
// CHECK-LABEL: func.func private @cell_1(
// CHECK-SAME: -> (tensor<64xf32>, tensor<64xf32>)
// CHECK: %[[ROW:.*]] = cfb.lookup
// CHECK: %[[LEAF:.*]] = arith.mulf %[[ROW]], %[[ROW]]
// CHECK: %[[U:.*]] = ml_program.global_load_const @u
// CHECK: %[[P:.*]] = linalg.vecmat ins(%[[ROW]], %[[U]]
// CHECK: cfb.yield %[[LEAF]], %[[P]]
// CHECK: ^bb0(%[[SAME:.*]]: !cfb.adt<@Tree>):
// CHECK-NEXT: %[[S:.*]]:2 = func.call @cell_1(%[[SAME]])
// CHECK-NEXT: cfb.yield %[[S]]#0, %[[S]]#1
// CHECK: %[[A:.*]]:2 = func.call @cell_1(
// CHECK: %[[B:.*]] = func.call @cell_2(
// CHECK: %[[C:.*]]:2 = func.call @cell_1(
// CHECK: %[[AB:.*]] = arith.addf %[[A]]#1, %[[B]]
// CHECK: %[[ABC:.*]] = arith.addf %[[AB]], %[[C]]#1
// CHECK: %[[D:.*]] = arith.mulf %[[ABC]], %[[C]]#0
// CHECK: %[[Q:.*]] = linalg.vecmat ins(%[[ABC]],
// CHECK: cfb.yield %[[D]], %[[Q]]
// CHECK-LABEL: func.func private @cell_2(
// CHECK-SAME: -> tensor<64xf32>
// CHECK: %[[T:.*]] = math.tanh
// CHECK: linalg.vecmat ins(%[[T]],
// expected-remark @+1 {{`cell` is called as `cell_1` and `cell_2`: a call computes what its caller multiplies the result with, and equal leaves share that}}
func.func private @cell(%t: !cfb.adt<@Tree>) -> (tensor<64xf32>, tensor<64xf32>) attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r:2 = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>, tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    %y = arith.mulf %x, %x : tensor<64xf32>
    cfb.yield %x, %y : tensor<64xf32>, tensor<64xf32>
  }, {
  ^bb0(%same: !cfb.adt<@Tree>):
    %h:2 = func.call @cell(%same) : (!cfb.adt<@Tree>) -> (tensor<64xf32>, tensor<64xf32>)
    cfb.yield %h#0, %h#1 : tensor<64xf32>, tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>, %c: !cfb.adt<@Tree>):
    %ha:2 = func.call @cell(%a) : (!cfb.adt<@Tree>) -> (tensor<64xf32>, tensor<64xf32>)
    %hb:2 = func.call @cell(%b) : (!cfb.adt<@Tree>) -> (tensor<64xf32>, tensor<64xf32>)
    %hc:2 = func.call @cell(%c) : (!cfb.adt<@Tree>) -> (tensor<64xf32>, tensor<64xf32>)
    %u = ml_program.global_load_const @u : tensor<64x64xf32>
    %v = ml_program.global_load_const @v : tensor<64x64xf32>
    %p = linalg.vecmat ins(%ha#0, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    %s = math.tanh %hb#0 : tensor<64xf32>
    %q = linalg.vecmat ins(%s, %v : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    %o = linalg.vecmat ins(%hc#0, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    %pq = arith.addf %p, %q : tensor<64xf32>
    %h = arith.addf %pq, %o : tensor<64xf32>
    %d = arith.mulf %h, %hc#1 : tensor<64xf32>
    cfb.yield %h, %d : tensor<64xf32>, tensor<64xf32>
  })
  return %r#0, %r#1 : tensor<64xf32>, tensor<64xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK: %[[ROOT:.*]]:2 = call @cell_1(
// CHECK: linalg.vecmat ins(%[[ROOT]]#0,
func.func @main(%t: !cfb.adt<@Tree>) -> tensor<64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %h:2 = func.call @cell(%t) : (!cfb.adt<@Tree>) -> (tensor<64xf32>, tensor<64xf32>)
  %p = linalg.vecmat ins(%h#1, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  return %p : tensor<64xf32>
}
