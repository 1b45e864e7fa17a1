// Random numbers are keyed by the instance, whose key is in the context: nothing of the batch comes in.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr)
// CHECK: %[[ADDRESS:.*]] = llvm.getelementptr %[[CONTEXT]][4] {{.*}}: (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[KEY:.*]] = llvm.load %[[ADDRESS]] : !llvm.ptr -> i64
// CHECK: %[[HALF:.*]] = arith.constant 32 : i64
// CHECK: %[[UPPER:.*]] = arith.shrui %[[KEY]], %[[HALF]] : i64
// CHECK: %[[LOW:.*]] = arith.trunci %[[KEY]] : i64 to i32
// CHECK: %[[HIGH:.*]] = arith.trunci %[[UPPER]] : i64 to i32
// CHECK: return %[[LOW]], %[[HIGH]] : i32, i32
func.func @main() -> (i32, i32)
    attributes {cfb.entry, cfb.arguments = [], cfb.argument_types = [], cfb.result_type = tuple<i32, i32>} {
  %low, %high = cfb.instance_key
  return %low, %high : i32, i32
}
