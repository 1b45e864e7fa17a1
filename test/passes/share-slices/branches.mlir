// A branch for each part of the parameter, each with a matrix that is known when compiling; the bias at
// the same index and what follows the product are its own, and the index is checked once.
// RUN: %batch-opt %s --share-slices --canonicalize --cse | %FileCheck %s

ml_program.global private @w(#ml_program.extern<tensor<3x64x64xf32>>) : tensor<3x64x64xf32>
ml_program.global private @b(#ml_program.extern<tensor<3x64xf32>>) : tensor<3x64xf32>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<64xf32>, %[[K:.*]]: i32)
// CHECK-NOT: cfb.lookup
// CHECK: %[[I:.*]] = cfb.within %[[K]] of %c3
// CHECK: %[[FIRST:.*]] = arith.cmpi slt, %[[I]], %c1_i32
// CHECK: %[[R:.*]] = scf.if %[[FIRST]] -> (tensor<64xf32>)
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0] [1, 64, 64]
// CHECK: linalg.vecmat ins(%[[X]],
// CHECK: tensor.extract_slice %{{.*}}[0, 0] [1, 64]
// CHECK: arith.addf
// CHECK: math.tanh
// CHECK: } else {
// CHECK: %[[SECOND:.*]] = arith.cmpi slt, %[[I]], %c2_i32
// CHECK: scf.if %[[SECOND]] -> (tensor<64xf32>)
// CHECK: tensor.extract_slice %{{.*}}[1, 0, 0] [1, 64, 64]
// CHECK: } else {
// CHECK: tensor.extract_slice %{{.*}}[2, 0, 0] [1, 64, 64]
// CHECK: return %[[R]]
func.func @main(%x: tensor<64xf32>, %k: i32) -> tensor<64xf32> {
  %w = ml_program.global_load_const @w : tensor<3x64x64xf32>
  %b = ml_program.global_load_const @b : tensor<3x64xf32>
  %m = cfb.lookup %w[%k] : tensor<3x64x64xf32> -> tensor<64x64xf32>
  %v = cfb.lookup %b[%k] : tensor<3x64xf32> -> tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %p = linalg.vecmat ins(%x, %m : tensor<64xf32>, tensor<64x64xf32>) outs(%z : tensor<64xf32>) -> tensor<64xf32>
  %s = arith.addf %p, %v : tensor<64xf32>
  %t = math.tanh %s : tensor<64xf32>
  return %t : tensor<64xf32>
}
