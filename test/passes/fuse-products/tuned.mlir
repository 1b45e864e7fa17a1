// A tuning says how wide products of a kernel may become together, whatever each of them is: wide ones are fused, and, with
// 1, narrow ones are not. Either way the kernel says what there is to choose; one without products of the same rows does not.
// RUN: %batch-opt %s --fuse-products --canonicalize | %FileCheck %s

// CHECK: module attributes {cfb.tuning = {narrow = {fused_columns = 1 : i64}, wide = {fused_columns = 256 : i64}}}
module attributes {cfb.tuning = {wide = {fused_columns = 256 : i64}, narrow = {fused_columns = 1 : i64}}} {
ml_program.global private @a(#ml_program.extern<tensor<4x100xf32>>) : tensor<4x100xf32>
ml_program.global private @b(#ml_program.extern<tensor<4x100xf32>>) : tensor<4x100xf32>
ml_program.global private @c(#ml_program.extern<tensor<4x4xf32>>) : tensor<4x4xf32>
ml_program.global private @d(#ml_program.extern<tensor<4x4xf32>>) : tensor<4x4xf32>

// CHECK: cfb.kernel @wide attributes {cfb.fused_columns = 200 : i64}
// CHECK: %[[W:.*]] = tensor.concat dim(1) %a, %b
// CHECK: linalg.matmul ins(%{{.*}}, %[[W]] :
cfb.kernel @wide {
^bb0(%rows: index, %x: tensor<?x4xf32>):
  %a = ml_program.global_load_const @a : tensor<4x100xf32>
  %b = ml_program.global_load_const @b : tensor<4x100xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x100xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<?x100xf32>) -> tensor<?x100xf32>
  %p = linalg.matmul ins(%x, %a : tensor<?x4xf32>, tensor<4x100xf32>) outs(%s : tensor<?x100xf32>) -> tensor<?x100xf32>
  %q = linalg.matmul ins(%x, %b : tensor<?x4xf32>, tensor<4x100xf32>) outs(%s : tensor<?x100xf32>) -> tensor<?x100xf32>
  cfb.yield %p, %q : tensor<?x100xf32>, tensor<?x100xf32>
}

// CHECK: cfb.kernel @narrow attributes {cfb.fused_columns = 4 : i64}
// CHECK: linalg.matmul ins(%{{.*}}, %c :
// CHECK: linalg.matmul ins(%{{.*}}, %d :
cfb.kernel @narrow {
^bb0(%rows: index, %x: tensor<?x4xf32>):
  %c = ml_program.global_load_const @c : tensor<4x4xf32>
  %d = ml_program.global_load_const @d : tensor<4x4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %p = linalg.matmul ins(%x, %c : tensor<?x4xf32>, tensor<4x4xf32>) outs(%s : tensor<?x4xf32>) -> tensor<?x4xf32>
  %q = linalg.matmul ins(%x, %d : tensor<?x4xf32>, tensor<4x4xf32>) outs(%s : tensor<?x4xf32>) -> tensor<?x4xf32>
  cfb.yield %p, %q : tensor<?x4xf32>, tensor<?x4xf32>
}

// CHECK: cfb.kernel @single {
cfb.kernel @single {
^bb0(%rows: index, %x: tensor<?x4xf32>):
  %c = ml_program.global_load_const @c : tensor<4x4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x4xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %p = linalg.matmul ins(%x, %c : tensor<?x4xf32>, tensor<4x4xf32>) outs(%s : tensor<?x4xf32>) -> tensor<?x4xf32>
  cfb.yield %p : tensor<?x4xf32>
}
}
