// A decision is a call of the runtime that may suspend the instance; its 32 bits become the host
// scalar, and the manifest lists the place and the row's space. A guard is read after it, and where
// it holds the instance is given up.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK: \22forces\22:[{\22location\22:\22m.coh:3:1\22,\22pool\22:0},{\22location\22:\22m.coh:4:1\22,\22pool\22:1},{\22location\22:\22m.coh:5:1\22,\22pool\22:2},{\22location\22:\22m.coh:5:1\22,\22pool\22:0}]
// CHECK: func.func private @cohort_force(!llvm.ptr, i64, i32) -> i32 attributes {passthrough = ["nounwind"]}

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[P:.*]]: i64, %[[K:.*]]: i64, %[[X:.*]]: i64)
// CHECK: %[[N0:.*]] = arith.constant 0 : i32
// CHECK: %[[BITS:.*]] = call @cohort_force(%[[CONTEXT]], %[[P]], %[[N0]])
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[B:.*]] = arith.cmpi ne, %[[BITS]], %[[ZERO]] : i32
// CHECK: %[[N1:.*]] = arith.constant 1 : i32
// CHECK: %[[I:.*]] = call @cohort_force(%[[CONTEXT]], %[[K]], %[[N1]])
// CHECK: %[[N2:.*]] = arith.constant 2 : i32
// CHECK: %[[BITS:.*]] = call @cohort_force(%[[CONTEXT]], %[[X]], %[[N2]])
// CHECK: %[[F:.*]] = arith.bitcast %[[BITS]] : i32 to f32
// CHECK: %[[BITS:.*]] = call @cohort_force(%[[CONTEXT]], %[[P]], %{{.*}})
// CHECK: %[[NAN:.*]] = arith.cmpi ne, %[[BITS]]
// CHECK: scf.if %[[NAN]] {
// CHECK: %[[CODE:.*]] = arith.constant 8 : i32
// CHECK: func.call @cohort_fail(%[[CONTEXT]], %[[CODE]]
// CHECK: return %[[B]], %[[I]], %[[F]]
func.func @main(%p: !cfb.lazy<tensor<i1>>, %k: !cfb.lazy<tensor<i32>>, %x: !cfb.lazy<tensor<f32>>)
    -> (i1, i32, f32)
    attributes {cfb.entry, cfb.arguments = ["p", "k", "x"],
                cfb.argument_types = [tensor<i1>, tensor<i32>, tensor<f32>],
                cfb.result_type = tuple<i1, i32, f32>} {
  %b = cfb.force %p : !cfb.lazy<tensor<i1>> -> i1 loc("m.coh":3:1)
  %i = cfb.force %k : !cfb.lazy<tensor<i32>> -> i32 loc("m.coh":4:1)
  %f = cfb.force %x guard(%p : !cfb.lazy<tensor<i1>>) : !cfb.lazy<tensor<f32>> -> f32 loc("m.coh":5:1)
  return %b, %i, %f : i1, i32, f32
}
