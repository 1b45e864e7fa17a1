// The runtime calls one function: arguments come from slots, tuples flattened, and the result goes to
// slots. The manifest tells the runtime their types, and kernels with spaces by number.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-DAG: \22entry\22:\22cohort_entry\22
// CHECK-DAG: \22arguments\22:[{\22name\22:\22p\22,\22type\22:{\22tuple\22:[{\22scalar\22:\22i32\22},{\22tensor\22:{\22pool\22:0}}]}},{\22name\22:\22t\22,\22type\22:{\22array\22:{\22adt\22:0}}}]
// CHECK-DAG: \22result\22:{\22tuple\22:[{\22array\22:{\22adt\22:0}},{\22stacked\22:{\22pool\22:0}},{\22scalar\22:\22i32\22}]}
// CHECK-DAG: \22adts\22:[{\22name\22:\22Tree\22,\22constructors\22:[{\22name\22:\22Tree\22,\22fields\22:[{\22scalar\22:\22bool\22},{\22array\22:{\22adt\22:0}}]}]}]
// CHECK-DAG: \22operands\22:[{\22row\22:{\22pool\22:0}},{\22scalar\22:\22f32\22}],\22results\22:[0,1]
cfb.adt @Tree ["Tree"] [[i1, !cfb.array<!cfb.adt<@Tree>>]]
func.func private @cell_0(i64, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) attributes {cfb.kernel = "{\22name\22:\22cell\22,\22symbol\22:\22cell_0\22,\22location\22:\22m.coh:3:5\22,\22operands\22:[{\22row\22:{\22pool\22:{\22elem\22:\22f32\22,\22shape\22:[4]}}},{\22scalar\22:\22f32\22}],\22results\22:[{\22elem\22:\22f32\22,\22shape\22:[4]},{\22elem\22:\22f32\22,\22shape\22:[2]}],\22constants\22:[],\22scratch_bytes\22:0,\22row_tile\22:1,\22flops_per_row\22:0}"}

// CHECK-LABEL: func.func @cohort_entry
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[ARGUMENTS:.*]]: !llvm.ptr, %[[RESULTS:.*]]: !llvm.ptr)
// CHECK: %[[N:.*]] = llvm.load %[[ARGUMENTS]] : !llvm.ptr -> i32
// CHECK: %[[AT_H:.*]] = llvm.getelementptr %[[ARGUMENTS]][1]
// CHECK: %[[H:.*]] = llvm.load %[[AT_H]] : !llvm.ptr -> i64
// CHECK: %[[AT_T:.*]] = llvm.getelementptr %[[ARGUMENTS]][2]
// CHECK: %[[T:.*]] = llvm.load %[[AT_T]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[R:.*]]:3 = call @coh.main(%[[CONTEXT]], %[[N]], %[[H]], %[[T]])
// CHECK: llvm.store %[[R]]#0, %[[RESULTS]] : !llvm.ptr
// CHECK: %[[AT_S:.*]] = llvm.getelementptr %[[RESULTS]][1]
// CHECK: llvm.store %[[R]]#1, %[[AT_S]] : !llvm.ptr
// CHECK: %[[AT_N:.*]] = llvm.getelementptr %[[RESULTS]][2]
// CHECK: %[[WIDE:.*]] = arith.extui %[[R]]#2 : i32 to i64
// CHECK: llvm.store %[[WIDE]], %[[AT_N]] : i64
func.func @main(%n: i32, %h: !cfb.lazy<tensor<4xf32>>, %t: !cfb.array<!cfb.adt<@Tree>>)
    -> (!cfb.array<!cfb.adt<@Tree>>, !cfb.lazy<tensor<?x4xf32>>, i32)
    attributes {cfb.entry, cfb.arguments = ["p", "t"],
                cfb.argument_types = [tuple<i32, tensor<4xf32>>, !cfb.array<!cfb.adt<@Tree>>],
                cfb.result_type = tuple<!cfb.array<!cfb.adt<@Tree>>, tensor<?x4xf32>, i32>} {
  %hs = cfb.array_create %h, %h : (!cfb.lazy<tensor<4xf32>>, !cfb.lazy<tensor<4xf32>>) -> !cfb.array<!cfb.lazy<tensor<4xf32>>>
  %s = cfb.stack %hs : !cfb.array<!cfb.lazy<tensor<4xf32>>> -> !cfb.lazy<tensor<?x4xf32>>
  return %t, %s, %n : !cfb.array<!cfb.adt<@Tree>>, !cfb.lazy<tensor<?x4xf32>>, i32
}
