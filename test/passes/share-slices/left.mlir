// What would not pay stays as it is: small matrices, more parts than there is code for, which a remark
// tells of, and a lookup that no product reads.
// RUN: %batch-opt %s --share-slices --split-input-file --verify-diagnostics | %FileCheck %s

ml_program.global private @small(#ml_program.extern<tensor<3x8x8xf32>>) : tensor<3x8x8xf32>

// CHECK-LABEL: func.func @smaller
// CHECK-NOT: scf.if
// CHECK: return
func.func @smaller(%x: tensor<8xf32>, %k: i32) -> tensor<8xf32> {
  %w = ml_program.global_load_const @small : tensor<3x8x8xf32>
  %m = cfb.lookup %w[%k] : tensor<3x8x8xf32> -> tensor<8x8xf32>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %p = linalg.vecmat ins(%x, %m : tensor<8xf32>, tensor<8x8xf32>) outs(%zero : tensor<8xf32>) -> tensor<8xf32>
  return %p : tensor<8xf32>
}

// -----

ml_program.global private @many(#ml_program.extern<tensor<65x64x64xf32>>) : tensor<65x64x64xf32>

// CHECK-LABEL: func.func @more
// CHECK-NOT: scf.if
// CHECK: return
func.func @more(%x: tensor<64xf32>, %k: i32) -> tensor<64xf32> {
  %w = ml_program.global_load_const @many : tensor<65x64x64xf32>
  %m = cfb.lookup %w[%k] : tensor<65x64x64xf32> -> tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  // expected-remark@+1 {{takes one matrix a row: the host chooses it of 65, and at most 64 get code of their own}}
  %p = linalg.vecmat ins(%x, %m : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  return %p : tensor<64xf32>
}

// -----

ml_program.global private @rows(#ml_program.extern<tensor<3x64x64xf32>>) : tensor<3x64x64xf32>

// CHECK-LABEL: func.func @no_product
// CHECK-NOT: scf.if
// CHECK: return
func.func @no_product(%x: tensor<64x64xf32>, %k: i32) -> tensor<64x64xf32> {
  %w = ml_program.global_load_const @rows : tensor<3x64x64xf32>
  %m = cfb.lookup %w[%k] : tensor<3x64x64xf32> -> tensor<64x64xf32>
  %p = arith.addf %x, %m : tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}
