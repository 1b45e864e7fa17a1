// A search over an instance dim is guarded like any other, whatever it is written with: folds, choices and
// comparisons of lengths that are known at run time only. What is made of indices alone hides nothing.
// RUN: %batch-opt %s --guard-decisions --verify-diagnostics
// RUN: %batch-opt %s --guard-decisions | %FileCheck %s

// CHECK-LABEL: func.func @first_largest
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>,
// CHECK: arith.cmpf oeq
// CHECK: %[[N:.*]] = arith.cmpf uno, %[[X]],
// CHECK: %[[ANY:.*]] = linalg.reduce { arith.ori } ins(%{{.*}} : tensor<?xi1>)
// CHECK: cfb.force %{{.*}} guard(%[[ANY]] : tensor<i1>) : tensor<i32> -> i32
func.func @first_largest(%x: tensor<?xf32>, %most: tensor<f32>) -> i32 {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %all = linalg.broadcast ins(%most : tensor<f32>) outs(%e : tensor<?xf32>) dimensions = [0]
  %is = arith.cmpf oeq, %x, %all : tensor<?xf32>
  %f = tensor.empty(%n) : tensor<?xi32>
  %at = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%f : tensor<?xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    linalg.yield %k : i32
  } -> tensor<?xi32>
  %max = arith.constant 2147483647 : i32
  %none = linalg.fill ins(%max : i32) outs(%f : tensor<?xi32>) -> tensor<?xi32>
  %of = arith.select %is, %at, %none : tensor<?xi1>, tensor<?xi32>
  %g = tensor.empty() : tensor<i32>
  %start = linalg.fill ins(%max : i32) outs(%g : tensor<i32>) -> tensor<i32>
  %first = linalg.reduce { arith.minsi } ins(%of : tensor<?xi32>) outs(%start : tensor<i32>) dimensions = [0]
  %d = cfb.force %first : tensor<i32> -> i32
  return %d : i32
}
