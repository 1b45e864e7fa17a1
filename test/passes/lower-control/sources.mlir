// A parameter, a row of one and a constant exist before anything is recorded: their handles are
// constants, each source is listed once, and only a computed row is checked.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-DAG: \22params\22:[{\22name\22:\22emb\22,\22elem\22:\22f32\22,\22shape\22:[40,4]},{\22name\22:\22h\22,\22elem\22:\22f32\22,\22shape\22:[4]}]
// CHECK-DAG: \22row_pools\22:[{\22elem\22:\22f32\22,\22shape\22:[4]},{\22elem\22:\22i32\22,\22shape\22:[2]}]
// CHECK-DAG: \22sources\22:[{\22table\22:{\22param\22:0,\22pool\22:0}},{\22whole\22:{\22param\22:1,\22pool\22:0}},{\22splat\22:{\22bits\22:1065353216,\22pool\22:0}},{\22dense\22:{\22bits\22:[7,4294967295],\22pool\22:1}}]
ml_program.global public @emb(#ml_program.extern<tensor<40x4xf32>>) : tensor<40x4xf32>
ml_program.global public @h(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[W:.*]]: i32)
// CHECK: %[[INDEX:.*]] = arith.extsi %[[W]] : i32 to i64
// CHECK: %[[ROWS:.*]] = arith.constant 40 : i64
// CHECK: %[[OUTSIDE:.*]] = arith.cmpi uge, %[[INDEX]], %[[ROWS]] : i64
// CHECK: scf.if %[[OUTSIDE]] {
// CHECK: %[[CODE:.*]] = arith.constant 5 : i32
// CHECK: call @cohort_fail(%[[CONTEXT]], %[[CODE]], %[[INDEX]], %[[ROWS]], %{{.*}})
// CHECK: %[[TABLE:.*]] = arith.constant 0 : i64
// CHECK: %[[ROW:.*]] = arith.addi %[[TABLE]], %[[INDEX]] : i64
// CHECK: %[[WHOLE:.*]] = arith.constant 1099511627776 : i64
// CHECK: %[[ONES:.*]] = arith.constant 2199023255552 : i64
// CHECK: %[[DENSE:.*]] = arith.constant 3298534883328 : i64
// CHECK: %[[AGAIN:.*]] = arith.constant 1099511627776 : i64
// CHECK: return %[[ROW]], %[[WHOLE]], %[[ONES]], %[[DENSE]], %[[AGAIN]]
func.func @main(%w: i32)
    -> (!cfb.lazy<tensor<4xf32>>, !cfb.lazy<tensor<4xf32>>, !cfb.lazy<tensor<4xf32>>, !cfb.lazy<tensor<2xi32>>, !cfb.lazy<tensor<4xf32>>)
    attributes {cfb.entry, cfb.arguments = ["w"], cfb.argument_types = [i32],
                cfb.result_type = tuple<tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xi32>, tensor<4xf32>>} {
  %row = cfb.param_row @emb[%w] : !cfb.lazy<tensor<4xf32>>
  %whole = cfb.param @h : !cfb.lazy<tensor<4xf32>>
  %ones = cfb.constant dense<1.0> : tensor<4xf32> -> !cfb.lazy<tensor<4xf32>>
  %dense = cfb.constant dense<[7, -1]> : tensor<2xi32> -> !cfb.lazy<tensor<2xi32>>
  %again = cfb.param @h : !cfb.lazy<tensor<4xf32>>
  return %row, %whole, %ones, %dense, %again
      : !cfb.lazy<tensor<4xf32>>, !cfb.lazy<tensor<4xf32>>, !cfb.lazy<tensor<4xf32>>, !cfb.lazy<tensor<2xi32>>, !cfb.lazy<tensor<4xf32>>
}
