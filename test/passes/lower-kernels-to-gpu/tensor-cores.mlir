// With a precision that the module names, products are those of a warp: both factors are rounded
// explicitly, sums stay in registers over all steps and are what pointwise work reads. What is no tile
// of products, like the fold of few columns, is not rounded, which a remark says, and the description
// tells of the precision where there is one.
// RUN: %batch-opt %s --round-products-tf32 --lower-kernels-to-gpu | %FileCheck %s --check-prefix=TF32
// RUN: %batch-opt %s --round-products-tf32 --lower-kernels-to-gpu > %t.out 2> %t
// RUN: %FileCheck --check-prefix=REMARK --input-file %t %s
// RUN: %batch-opt %s --lower-kernels-to-gpu > %t.out 2> %t; test ! -s %t
// RUN: %batch-opt %s --round-products-bf16 --lower-kernels-to-gpu | %FileCheck %s --check-prefix=BF16
// RUN: %batch-opt %s --lower-kernels-to-gpu | %FileCheck %s --check-prefix=F32

ml_program.global private @w(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @v(#ml_program.extern<tensor<64x3xf32>>) : tensor<64x3xf32>

// REMARK-NOT: remark
// REMARK: tensor-cores.mlir:[[#@LINE+50]]:8: remark: this product is of f32, not tf32: it has 3 columns, too few for tensor cores
// REMARK-NOT: remark

// TF32: cfb.precision = "tf32"
// TF32: narrow = "{
// TF32-NOT: precision
// TF32-SAME: wide = "{
// TF32-SAME: \22precision\22:\22tf32\22
// TF32: gpu.func @wide$0_small
// TF32: scf.for
// TF32: nvvm.cp.async.wait.group 0
// TF32: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// TF32: nvvm.convert.float.to.tf32 %{{.*}} {rnd = #nvvm.fp_rnd_mode<rna>}
// TF32: %[[SUMS:.*]] = nvvm.mma.sync A{{.*}}type<tf32>{{.*}}k = 8>
// TF32: %[[SUM:.*]] = llvm.extractvalue %[[SUMS]][0]
// TF32: gpu.barrier
// TF32: llvm.store %{{.*}} : vector<2xf32>, !llvm.ptr<3>
// TF32: gpu.barrier
// TF32: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// TF32: arith.negf
// TF32: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<1>
// TF32: gpu.func @wide$0_large
// TF32: gpu.func @narrow$0
// TF32-NOT: nvvm.mma

// BF16: \22precision\22:\22bf16\22
// BF16: gpu.func @wide$0_small
// BF16: nvvm.convert.f32x2.to.bf16x2 %{{.*}} {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
// BF16: nvvm.mma.sync A{{.*}}type<bf16>{{.*}}k = 16>

// F32-NOT: precision
// F32: math.fma
// F32-NOT: nvvm.mma
cfb.kernel @wide {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %h = arith.negf %p : tensor<?x64xf32>
  cfb.yield %h : tensor<?x64xf32>
}

cfb.kernel @narrow {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %v = ml_program.global_load_const @v : tensor<64x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %p = linalg.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x3xf32>) outs(%z : tensor<?x3xf32>) -> tensor<?x3xf32>
  cfb.yield %p : tensor<?x3xf32>
}
