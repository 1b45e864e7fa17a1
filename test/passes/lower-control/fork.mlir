// A strand is a function of the context, its scope and its index. The caller begins all but the last, runs
// that and whichever was refused, joins, and reads what they wrote to the scope. The elements of a map are strands
// of one function.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%[[C:.*]]: !llvm.ptr, %[[X:.*]]: i64, %[[N:.*]]: i32, %[[A:.*]]: !llvm.ptr)
// CHECK-DAG: %[[SCOPE:.*]] = llvm.alloca
// CHECK: llvm.store %{{.*}}, %[[SCOPE]] : i64
// CHECK: %[[F:.*]] = constant @cohort_strand_0 : (!llvm.ptr, !llvm.ptr, i64) -> ()
// CHECK: %[[BEGUN:.*]] = call @cohort_fork(%[[C]], %[[F]], %[[SCOPE]], %{{.*}})
// CHECK: %[[LEFT:.*]] = arith.cmpi eq, %[[BEGUN]], %{{.*}} : i32
// CHECK: scf.if %[[LEFT]] {
// CHECK: func.call @cohort_strand_0(%[[C]], %[[SCOPE]], %{{.*}})
// CHECK: }
// CHECK-NOT: @cohort_fork
// CHECK: call @cohort_strand_1(%[[C]], %[[SCOPE]], %{{.*}})
// CHECK: call @cohort_join(%[[C]], %[[SCOPE]])
// CHECK: scf.for
// CHECK: scf.if
// CHECK: func.call @cohort_strand_2(
// CHECK: } else {
// CHECK: func.call @cohort_fork(
// CHECK: func.call @cohort_strand_2(
// CHECK: call @cohort_join(
// CHECK: return
func.func @main(%x: !cfb.lazy<tensor<i1>>, %n: i32, %a: !cfb.array<i32>) -> (i32, !cfb.array<i32>)
    attributes {cfb.entry, cfb.arguments = ["x", "n", "a"],
      cfb.argument_types = [tensor<i1>, i32, !cfb.array<i32>],
      cfb.result_type = tuple<i32, !cfb.array<i32>>} {
  %p, %m = cfb.fork -> (i1, i32) ({
    %q = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
    cfb.join %q : i1
  }, {
    %q = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
    %k = arith.select %q, %n, %n : i32
    cfb.join %k : i32
  })
  %r = arith.select %p, %m, %n : i32
  %b = cfb.map %a : (!cfb.array<i32>) -> !cfb.array<i32> attributes {cfb.fork} {
  ^bb0(%i: i32):
    %q = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
    %k = arith.select %q, %i, %r : i32
    cfb.yield %k : i32
  }
  return %r, %b : i32, !cfb.array<i32>
}

// CHECK-LABEL: func.func private @cohort_strand_0
// CHECK: call @cohort_force
// CHECK: llvm.store
// CHECK: return
// CHECK-LABEL: func.func private @cohort_strand_2
// CHECK: call @cohort_force
// CHECK: llvm.store
// CHECK: return
