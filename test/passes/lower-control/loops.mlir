// A loop whose length nobody knows beforehand counts a step each time round, so that it ends at the
// step limit at the latest. Values of the control program in it are lowered like everywhere.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

ml_program.global public @h(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[N:.*]]: i32)
// CHECK: scf.while (%{{[^ ]*}} = %[[N]], %{{.*}}) : (i32, i64) -> (i32, i64) {
// CHECK-NOT: @cohort_step
// CHECK: scf.condition
// CHECK: } do {
// CHECK: ^bb0(%{{.*}}: i32, %{{.*}}: i64):
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT: func.call @cohort_step(%[[CONTEXT]], %[[ONE]])
// CHECK: scf.yield
func.func @main(%n: i32) -> !cfb.lazy<tensor<4xf32>>
    attributes {cfb.entry, cfb.arguments = ["n"], cfb.argument_types = [i32], cfb.result_type = tensor<4xf32>} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %h = cfb.param @h : !cfb.lazy<tensor<4xf32>>
  %r:2 = scf.while (%i = %n, %x = %h) : (i32, !cfb.lazy<tensor<4xf32>>) -> (i32, !cfb.lazy<tensor<4xf32>>) {
    %more = arith.cmpi sgt, %i, %zero : i32
    scf.condition(%more) %i, %x : i32, !cfb.lazy<tensor<4xf32>>
  } do {
  ^bb0(%i: i32, %x: !cfb.lazy<tensor<4xf32>>):
    cfb.turn
    %next = arith.subi %i, %one : i32
    scf.yield %next, %x : i32, !cfb.lazy<tensor<4xf32>>
  }
  return %r#1 : !cfb.lazy<tensor<4xf32>>
}
