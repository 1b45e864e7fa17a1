// There is no instruction for a power of integers: it is a loop over the bits of the exponent.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %[[A:arg[0-9]]]: i32, %[[B:arg[0-9]]]: i32)
// CHECK: %[[P:[0-9]+]]:3 = scf.for {{.*}} iter_args(%[[PRODUCT:arg[0-9]+]] = %{{[a-z0-9_]+}}, %[[SQUARE:arg[0-9]+]] = %[[A]], %[[REST:arg[0-9]+]] = %[[B]])
// CHECK: %[[BIT:.*]] = arith.andi %[[REST]]
// CHECK: %[[IS_SET:.*]] = arith.cmpi ne, %[[BIT]]
// CHECK: %[[FACTOR:.*]] = arith.select %[[IS_SET]], %[[SQUARE]]
// CHECK: arith.muli %[[PRODUCT]], %[[FACTOR]]
// CHECK: arith.muli %[[SQUARE]], %[[SQUARE]]
// CHECK: arith.shrui %[[REST]]
// CHECK: %[[IS_NEGATIVE:.*]] = arith.cmpi slt, %[[B]]
// CHECK: %[[R:.*]] = arith.select %[[IS_NEGATIVE]], %{{.*}}, %[[P]]#0
// CHECK: return %[[R]]
// CHECK-NOT: math.ipowi
func.func @main(%a: i32, %b: i32) -> i32
    attributes {cfb.entry, cfb.arguments = ["a", "b"], cfb.argument_types = [i32, i32], cfb.result_type = i32} {
  %p = math.ipowi %a, %b : i32
  return %p : i32
}
