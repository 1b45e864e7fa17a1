// Where the registers hold 8 vectors of 16 numbers, as those of AVX2 and NEON do, a tile of 12 rows and two vectors is
// four calls of one of 6 rows and one vector, each at its place; what fits is as it is elsewhere.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

module attributes {cfb.vector_registers = 8 : i64} {
  ml_program.global private @w(#ml_program.extern<tensor<24x40xf32>>) : tensor<24x40xf32>

  // A single vector of a panel is every second one in memory, which the tile asks for before it needs it, up to the
  // last term.
  // CHECK: llvm.func internal @cohort_product_r6_v1({{.*}}) attributes {cfb.library = "cohort_product", no_inline}
  // CHECK: %[[LAST:[0-9]*]] = arith.subi %{{.*}} : i64
  // CHECK: %[[AHEAD:[0-9]*]] = arith.minsi %{{.*}}, %[[LAST]] : i64
  // CHECK: arith.muli %[[AHEAD]], %{{.*}} : i64
  // CHECK: llvm.intr.prefetch
  // CHECK-COUNT-6: vector.fma
  // CHECK-NOT: vector.fma
  // CHECK: llvm.return
  // CHECK: llvm.func internal @cohort_product_r12_v2
  // CHECK-NOT: vector.fma
  // CHECK: %[[ROW:[a-z0-9_]*]] = arith.constant 6 : i64
  // CHECK: llvm.call @cohort_product_r6_v1(%arg0,
  // CHECK: %[[SKIP:[0-9]*]] = arith.muli %arg1, %[[ROW]] : i64
  // CHECK: %[[A:[0-9]*]] = llvm.getelementptr %arg0[%[[SKIP]]]
  // CHECK: llvm.call @cohort_product_r6_v1(%[[A]],
  // CHECK: llvm.call @cohort_product_r6_v1
  // CHECK: llvm.call @cohort_product_r6_v1
  // CHECK-NEXT: llvm.return
  cfb.kernel @rows {
  ^bb0(%rows: index, %x: tensor<?x24xf32>):
    %zero = arith.constant 0.0 : f32
    %w = ml_program.global_load_const @w : tensor<24x40xf32>
    %e = tensor.empty(%rows) : tensor<?x40xf32>
    %s = linalg.fill ins(%zero : f32) outs(%e : tensor<?x40xf32>) -> tensor<?x40xf32>
    %q = linalg.matmul ins(%x, %w : tensor<?x24xf32>, tensor<24x40xf32>) outs(%s : tensor<?x40xf32>) -> tensor<?x40xf32>
    cfb.yield %q : tensor<?x40xf32>
  }
}
