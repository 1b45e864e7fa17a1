// A product of a concatenation is split by the calls that its parts are made of, as far as leaves can share a part:
// here that of the left child, and not that of the right one, which is given by whoever calls.
// RUN: %batch-opt %s --share-leaf-products --canonicalize --cse | %FileCheck %s

cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.adt<@Tree>, tensor<64xf32>]]
ml_program.global private @emb(#ml_program.extern<tensor<9x64xf32>>) : tensor<9x64xf32>
ml_program.global private @w(#ml_program.extern<tensor<192x64xf32>>) : tensor<192x64xf32>

// CHECK-LABEL: func.func private @cell_1(
// CHECK: %[[ROW:.*]] = cfb.lookup
// CHECK: %[[FIRST:.*]] = tensor.extract_slice %{{.*}}[0, 0] [64, 64] [1, 1]
// CHECK: linalg.vecmat ins(%[[ROW]], %[[FIRST]]
// CHECK: ^bb0(%{{.*}}: !cfb.adt<@Tree>, %[[GIVEN:.*]]: tensor<64xf32>)
// CHECK: %[[LEFT:.*]] = func.call @cell_1(
// CHECK: %[[OTHERS:.*]] = tensor.concat dim(0) %[[GIVEN]], %[[GIVEN]]
// CHECK: %[[LAST:.*]] = tensor.extract_slice %{{.*}}[64, 0] [128, 64] [1, 1]
// CHECK: %[[RIGHT:.*]] = linalg.vecmat ins(%[[OTHERS]], %[[LAST]]
// CHECK: arith.addf %[[LEFT]], %[[RIGHT]]
func.func private @cell(%t: !cfb.adt<@Tree>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    cfb.yield %x : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %y: tensor<64xf32>):
    %h = func.call @cell(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %w = ml_program.global_load_const @w : tensor<192x64xf32>
    %c = tensor.concat dim(0) %h, %y, %y : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<192xf32>
    %p = linalg.vecmat ins(%c, %w : tensor<192xf32>, tensor<192x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    cfb.yield %p : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}
