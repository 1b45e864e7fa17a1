// A strand that needs what earlier ones hand over begins by waiting for these, each once, and reads it from the scope.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

func.func @main(%x: !cfb.lazy<tensor<i1>>, %n: i32) -> i32
    attributes {cfb.entry, cfb.arguments = ["x", "n"], cfb.argument_types = [tensor<i1>, i32], cfb.result_type = i32} {
  %r:4 = cfb.fork {needs = array<i64: 0, 1>} -> (i1, i32, i1, i32) ({
    %q = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
    cfb.join %q, %n : i1, i32
  }, {
    %q = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
    cfb.join %q : i1
  }, {
  ^bb0(%p: i1, %m: i32):
    %q = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
    %k = arith.select %p, %m, %n : i32
    cfb.join %k : i32
  })
  return %r#3 : i32
}

// CHECK-LABEL: func.func private @cohort_strand_1
// CHECK-NOT: @cohort_await
// CHECK-LABEL: func.func private @cohort_strand_2
// CHECK-SAME: (%[[C:.*]]: !llvm.ptr, %[[SCOPE:.*]]: !llvm.ptr, %{{.*}}: i64)
// CHECK: %[[FIRST:.*]] = arith.constant 0 : i64
// CHECK: call @cohort_await(%[[C]], %[[SCOPE]], %[[FIRST]])
// CHECK-NOT: @cohort_await
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[SCOPE]][3]
// CHECK: llvm.load %[[SLOT]]
// CHECK: arith.trunci %{{.*}} : i32 to i1
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[SCOPE]][4]
// CHECK: llvm.load %[[NEXT]]
// CHECK: call @cohort_force
