// With a precision that the module names, products are those of a warp: both factors are rounded
// explicitly, sums stay in registers over all steps and are what pointwise work reads. Weights that are
// parameters are rounded once, when they are loaded: words are multiplied as they are. What is not a tile
// of products, like the fold of few columns, is not rounded, and the description
// tells of the precision where there is one.
// RUN: %batch-opt %s --round-products-tf32 --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s --check-prefix=TF32
// RUN: %batch-opt %s --round-products-bf16 --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s --check-prefix=BF16
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s --check-prefix=F32

ml_program.global private @w(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @v(#ml_program.extern<tensor<64x3xf32>>) : tensor<64x3xf32>

// TF32: cfb.precision = #cfb<precision tf32>
// TF32: narrow = "{
// TF32-NOT: precision
// TF32-SAME: wide = "{\22constants\22:[{\22rounded\22:{\22precision\22:\22tf32\22,\22param\22:\22w\22,\22offset\22:0,\22strides\22:[64,1],\22k\22:64,\22columns\22:64}}]
// TF32-SAME: \22precision\22:\22tf32\22
// TF32: gpu.func @wide$0_small
// TF32: scf.for
// TF32: nvvm.cp.async.wait.group 0
// TF32: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// TF32: nvvm.convert.float.to.tf32 %{{.*}} {rnd = #nvvm.fp_rnd_mode<rna>}
// TF32: %[[B0:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// TF32: %[[B1:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// TF32: %[[SUMS:.*]] = nvvm.mma.sync A[{{.*}}]  B[%[[B0]], %[[B1]]]{{.*}}type<tf32>{{.*}}k = 8>
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
// TF32: gpu.func @computed$0

// A weight that is computed is rounded as it is read: four conversions for the left side, two for the
// right one.
// BF16: computed = "{\22constants\22:[{\22plain\22:{\22param\22:\22w\22}}]
// BF16-SAME: \22precision\22:\22bf16\22
// BF16-SAME: \22rounded\22:{\22precision\22:\22bf16\22,\22param\22:\22w\22
// BF16: gpu.func @wide$0_small
// BF16-COUNT-4: nvvm.convert.f32x2.to.bf16x2 %{{.*}} {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
// BF16-NOT: nvvm.convert
// BF16: nvvm.mma.sync A{{.*}}type<bf16>{{.*}}k = 16>
// BF16: gpu.func @computed$1_small
// BF16-COUNT-6: nvvm.convert.f32x2.to.bf16x2
// BF16: nvvm.mma.sync
// BF16: gpu.func @computed$1_large

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

cfb.kernel @computed {
^bb0(%rows: index, %x: tensor<?x64xf32>):
  %w = ml_program.global_load_const @w : tensor<64x64xf32>
  %v = math.sqrt %w : tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = linalg.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  cfb.yield %p : tensor<?x64xf32>
}
