// A value that is shown lies in slots, tuples taken apart, and the manifest says its text and its form. A
// tensor stacked from rows is the array of them.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK: \22debugs\22:[{\22text\22:\22pair\22,\22type\22:{\22tuple\22:[{\22scalar\22:\22i32\22},{\22tensor\22:{\22pool\22:0}}]}},{\22text\22:\22rows\22,\22type\22:{\22stacked\22:{\22pool\22:0}}}]
// CHECK: func.func private @cohort_debug(!llvm.ptr, i32, !llvm.ptr) attributes {passthrough = ["nounwind"]}

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[K:.*]]: i32, %[[X:.*]]: i64, %[[XS:.*]]: !llvm.ptr)
// CHECK: %[[SLOTS:.*]] = llvm.alloca
// CHECK: %[[WIDE:.*]] = arith.extui %[[K]] : i32 to i64
// CHECK: llvm.store %[[WIDE]], %[[SLOTS]]
// CHECK: llvm.store %[[X]], %{{.*}}
// CHECK: %[[N0:.*]] = arith.constant 0 : i32
// CHECK: call @cohort_debug(%[[CONTEXT]], %[[N0]], %[[SLOTS]])
// CHECK: llvm.store %[[XS]], %[[SLOTS]]
// CHECK: %[[N1:.*]] = arith.constant 1 : i32
// CHECK: call @cohort_debug(%[[CONTEXT]], %[[N1]], %[[SLOTS]])
func.func @main(%k: i32, %x: !cfb.lazy<tensor<3xf32>>, %xs: !cfb.array<!cfb.lazy<tensor<3xf32>>>) -> i32
    attributes {cfb.entry, cfb.arguments = ["k", "x", "xs"],
                cfb.argument_types = [i32, tensor<3xf32>, !cfb.array<tensor<3xf32>>],
                cfb.result_type = i32} {
  cfb.debug "pair"(%k, %x) {type = tuple<i32, !cfb.lazy<tensor<3xf32>>>} : i32, !cfb.lazy<tensor<3xf32>>
  %rows = cfb.stack %xs : !cfb.array<!cfb.lazy<tensor<3xf32>>> -> !cfb.lazy<tensor<?x3xf32>>
  cfb.debug "rows"(%rows) {type = !cfb.lazy<tensor<?x3xf32>>} : !cfb.lazy<tensor<?x3xf32>>
  return %k : i32
}
