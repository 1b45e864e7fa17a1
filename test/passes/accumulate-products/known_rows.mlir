// A product whose rows are the same at some calls is added up apart, so that specialise-kernels finds it whole; one of
// zeros starts where others end, and so does one whose rows are not known, or that is small.
// RUN: %batch-opt %s --accumulate-products | %FileCheck %s
// RUN: %batch-opt %s --accumulate-products --specialise-kernels | %FileCheck %s --check-prefix=BASE

ml_program.global private @u(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @w(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @b(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
ml_program.global private @t(#ml_program.extern<tensor<64x2xf32>>) : tensor<64x2xf32>

// CHECK-LABEL: cfb.kernel @cell
// CHECK: ^bb0(%{{.*}}: index, %[[X:.*]]: tensor<?x64xf32>, %[[H:.*]]: tensor<?x64xf32>):
// CHECK: %[[ZERO:.*]] = linalg.fill
// CHECK: %[[A:.*]] = math.tanh %[[H]]
// CHECK: %[[B:.*]] = linalg.broadcast ins(%{{.*}} : tensor<64xf32>)
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[X]], %{{.*}}) outs(%[[B]] : tensor<?x64xf32>)
// CHECK: %[[Q:.*]] = linalg.matmul ins(%[[A]], %{{.*}}) outs(%[[ZERO]] : tensor<?x64xf32>)
// CHECK: %[[S:.*]] = arith.addf %[[P]], %[[Q]]
// CHECK: cfb.yield %[[S]]

// Where the rows are the constant, the copy takes one operand less.
// BASE-LABEL: cfb.kernel @cell_base
// BASE-NEXT: ^bb0(%{{.*}}: index, %[[X:.*]]: tensor<?x64xf32>):
// BASE: cfb.record @cell_base(
cfb.kernel @cell {
^bb0(%rows: index, %x: tensor<?x64xf32>, %h: tensor<?x64xf32>):
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %b = ml_program.global_load_const @b : tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %a = math.tanh %h : tensor<?x64xf32>
  %p = linalg.matmul ins(%x, %u : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %q = linalg.matmul ins(%a, %w : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %s = arith.addf %p, %q : tensor<?x64xf32>
  %bb = linalg.broadcast ins(%b : tensor<64xf32>) outs(%e : tensor<?x64xf32>) dimensions = [0]
  %r = arith.addf %s, %bb : tensor<?x64xf32>
  cfb.yield %r : tensor<?x64xf32>
}

// CHECK-LABEL: cfb.kernel @zeros
// CHECK: ^bb0(%{{.*}}: index, %[[X:.*]]: tensor<?x64xf32>, %[[H:.*]]: tensor<?x64xf32>):
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[X]], %{{.*}}) outs(%{{.*}} : tensor<?x64xf32>)
// CHECK: %[[Q:.*]] = linalg.matmul ins(%[[H]], %{{.*}}) outs(%[[P]] : tensor<?x64xf32>)
// CHECK: cfb.yield %[[Q]]
cfb.kernel @zeros {
^bb0(%rows: index, %x: tensor<?x64xf32>, %h: tensor<?x64xf32>):
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.matmul ins(%x, %u : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %q = linalg.matmul ins(%h, %w : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %s = arith.addf %p, %q : tensor<?x64xf32>
  cfb.yield %s : tensor<?x64xf32>
}

// CHECK-LABEL: cfb.kernel @small
// CHECK: ^bb0(%{{.*}}: index, %[[X:.*]]: tensor<?x64xf32>, %[[H:.*]]: tensor<?x64xf32>):
// CHECK: %[[A:.*]] = math.tanh %[[H]]
// CHECK: %[[P:.*]] = linalg.matmul ins(%[[X]], %{{.*}}) outs(%{{.*}} : tensor<?x2xf32>)
// CHECK: %[[Q:.*]] = linalg.matmul ins(%[[A]], %{{.*}}) outs(%[[P]] : tensor<?x2xf32>)
// CHECK: cfb.yield %[[Q]]
cfb.kernel @small {
^bb0(%rows: index, %x: tensor<?x64xf32>, %h: tensor<?x64xf32>):
  %t = ml_program.global_load_const @t : tensor<64x2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x2xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
  %a = math.tanh %h : tensor<?x64xf32>
  %p = linalg.matmul ins(%x, %t : tensor<?x64xf32>, tensor<64x2xf32>) outs(%z : tensor<?x2xf32>) -> tensor<?x2xf32>
  %q = linalg.matmul ins(%a, %t : tensor<?x64xf32>, tensor<64x2xf32>) outs(%z : tensor<?x2xf32>) -> tensor<?x2xf32>
  %s = arith.addf %p, %q : tensor<?x2xf32>
  cfb.yield %s : tensor<?x2xf32>
}

// The first step begins with zeros.
func.func @steps(%x: !cfb.lazy<tensor<64xf32>>) -> (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<2xf32>>) {
  %z = cfb.constant dense<0.0> : tensor<64xf32> -> !cfb.lazy<tensor<64xf32>>
  %a = cfb.record @cell(%x, %z) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
  %b = cfb.record @cell(%x, %a) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
  %c = cfb.record @zeros(%x, %z) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
  %d = cfb.record @small(%x, %z) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<2xf32>>
  return %b, %c, %d : !cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<2xf32>>
}
