// A length that had to stay one is its number in the control program.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-LABEL: func.func private @coh.main
// CHECK: %[[THREE:.*]] = arith.constant 3
// CHECK-NOT: cfb.length
// CHECK: return
func.func @main() -> i32
    attributes {cfb.entry, cfb.arguments = [], cfb.argument_types = [], cfb.argument_dims = [], cfb.result_type = i32} {
  %three = arith.constant 3 : index
  %n = cfb.length %three
  %r = arith.index_cast %n : index to i32
  return %r : i32
}
