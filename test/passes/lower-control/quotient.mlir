// A length that is a quotient of others gives the instance up where something is left over, or where it is
// divided by a length of 0.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%{{.*}}: !llvm.ptr,
// CHECK-DAG: %[[DIVIDEND:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK-DAG: %[[DIVISOR:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK: %[[NOTHING:.*]] = arith.cmpi eq, %[[DIVISOR]]
// CHECK: %[[SAFE:.*]] = arith.select %[[NOTHING]]
// CHECK: %[[QUOTIENT:.*]] = arith.divsi %[[DIVIDEND]], %[[SAFE]]
// CHECK: %[[WHOLE:.*]] = arith.muli %[[QUOTIENT]], %[[DIVISOR]]
// CHECK: %[[DIFFERS:.*]] = arith.cmpi ne, %[[DIVIDEND]], %[[WHOLE]]
// CHECK: %[[FAILS:.*]] = arith.ori %[[NOTHING]], %[[DIFFERS]]
// CHECK: scf.if %[[FAILS]]
// CHECK: arith.constant 9 : i32
// CHECK: @cohort_fail
func.func @main(%x: !cfb.lazy<tensor<?x8xf32>>, %y: !cfb.lazy<tensor<?x8xf32>>) -> i32
    attributes {cfb.entry, cfb.arguments = ["x", "y"], cfb.argument_types = [tensor<?x8xf32>, tensor<?x8xf32>],
                cfb.argument_dims = [["n"], ["k"]], cfb.result_type = i32} {
  %n = cfb.dim %x, 0 : !cfb.lazy<tensor<?x8xf32>>
  %k = cfb.dim %y, 0 : !cfb.lazy<tensor<?x8xf32>>
  %q = cfb.quotient %n by %k
  %r = arith.index_cast %q : index to i32
  return %r : i32
}
