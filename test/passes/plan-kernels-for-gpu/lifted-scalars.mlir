// A kernel that is recorded with a number of the host in one place and with a tensor in another takes a
// tensor in both: another kernel makes one of the number.
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s

// CHECK: cfb.gpu_kernels = {difference = "
// CHECK-SAME: lift_i32 = "
// CHECK: cfb.kernel @lift_i32 attributes {sym_visibility = "private"}
// CHECK-NEXT: ^bb0(%arg0: index, %[[ROWS:.*]]: tensor<?xi32>):
// CHECK-NEXT: cfb.yield %[[ROWS]] : tensor<?xi32>
cfb.kernel @difference {
^bb0(%rows: index, %x: tensor<?xi32>, %y: tensor<?xi32>):
  %r = arith.subi %x, %y : tensor<?xi32>
  cfb.yield %r : tensor<?xi32>
}

// CHECK: func.func @main(%[[K:.*]]: i32, %[[X:.*]]: !cfb.lazy<tensor<i32>>)
// CHECK: cfb.record @difference(%[[X]], %[[X]])
// CHECK: %[[T:.*]] = cfb.record @lift_i32(%[[K]]) : (i32) -> !cfb.lazy<tensor<i32>>
// CHECK: cfb.record @difference(%[[T]], %[[X]]) : (!cfb.lazy<tensor<i32>>, !cfb.lazy<tensor<i32>>)
func.func @main(%k: i32, %x: !cfb.lazy<tensor<i32>>) -> (!cfb.lazy<tensor<i32>>, !cfb.lazy<tensor<i32>>) {
  %a = cfb.record @difference(%x, %x) : (!cfb.lazy<tensor<i32>>, !cfb.lazy<tensor<i32>>) -> !cfb.lazy<tensor<i32>>
  %b = cfb.record @difference(%k, %x) : (i32, !cfb.lazy<tensor<i32>>) -> !cfb.lazy<tensor<i32>>
  return %a, %b : !cfb.lazy<tensor<i32>>, !cfb.lazy<tensor<i32>>
}
