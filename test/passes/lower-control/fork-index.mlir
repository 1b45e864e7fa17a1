// A length that strands use, an index, lies in their scope as 64 bits.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-LABEL: func.func private @coh.main
// CHECK: %[[BITS:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK: llvm.store %[[BITS]], %{{.*}} : i64, !llvm.ptr
// CHECK: call @cohort_join(
func.func @main(%x: !cfb.lazy<tensor<i1>>, %n: i32) -> i32
    attributes {cfb.entry, cfb.arguments = ["x", "n"], cfb.argument_types = [tensor<i1>, i32], cfb.result_type = i32} {
  %length = arith.index_cast %n : i32 to index
  %p, %m = cfb.fork -> (i1, i32) ({
    %q = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
    cfb.join %q : i1
  }, {
    %q = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
    %k = arith.index_cast %length : index to i32
    %l = arith.select %q, %k, %n : i32
    cfb.join %l : i32
  })
  %r = arith.select %p, %m, %n : i32
  return %r : i32
}

// CHECK-LABEL: func.func private @cohort_strand_1
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK: arith.index_cast %{{.*}} : i64 to index
