// Every function of the control program takes the runtime's context first and passes it on, and counts
// a step each time that it is called; what
// the entry does not reach is dropped, and so are declarations that only the manifest needs.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

ml_program.global public @w(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>

// CHECK-NOT: ml_program.global
// CHECK-NOT: @unused
func.func private @unused(%x: i32) -> i32 {
  return %x : i32
}

// CHECK-LABEL: func.func private @coh.next
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %[[X:.*]]: i32) -> i32
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// CHECK: arith.subi
// CHECK: llvm.store
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[X]], %[[ONE]] : i32
// CHECK-NEXT: return %[[SUM]] : i32
func.func private @next(%x: i32) -> i32 {
  %one = arith.constant 1 : i32
  %sum = arith.addi %x, %one : i32
  return %sum : i32
}

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[N:.*]]: i32)
// CHECK-NEXT: call @coh.next(%[[CONTEXT]], %[[N]]) : (!llvm.ptr, i32) -> i32
func.func @main(%n: i32) -> i32
    attributes {cfb.entry, cfb.arguments = ["n"], cfb.argument_types = [i32], cfb.result_type = i32} {
  %r = func.call @next(%n) : (i32) -> i32
  return %r : i32
}
