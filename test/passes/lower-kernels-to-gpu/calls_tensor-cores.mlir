// With a precision that the module names, products over calls are those of a warp as well. What is not a tile
// of a result, like the sum of a vector's products with a matrix, stays in f32, and a remark says so.
// RUN: %batch-opt %s --round-products-tf32 --plan-kernels-for-gpu --lower-kernels-to-gpu --verify-diagnostics | %FileCheck %s --check-prefix=TF32
// RUN: %batch-opt %s --round-products-bf16 --plan-kernels-for-gpu --lower-kernels-to-gpu --verify-diagnostics | %FileCheck %s --check-prefix=BF16

ml_program.global private @w64(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>

// TF32: fold = "{
// TF32-NOT: precision
// TF32-SAME: wide = "{
// TF32-SAME: \22precision\22:\22tf32\22
// TF32: gpu.func @wide$0_small
// TF32: nvvm.cp.async.wait.group 0
// TF32: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// TF32: nvvm.convert.float.to.tf32 %{{.*}} {rnd = #nvvm.fp_rnd_mode<rna>}
// TF32: %[[SUMS:.*]] = nvvm.mma.sync A{{.*}}type<tf32>{{.*}}k = 8>
// TF32: llvm.extractvalue %[[SUMS]][0]
// TF32: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
// TF32: gpu.func @wide$0_large
// TF32: gpu.func @fold$0
// TF32-NOT: nvvm.mma

// BF16: \22precision\22:\22bf16\22
// BF16: gpu.func @wide$0_small
// BF16: nvvm.convert.f32x2.to.bf16x2 %{{.*}} {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
// BF16: nvvm.mma.sync A{{.*}}type<bf16>{{.*}}k = 16>
#x = affine_map<(b, i, j, k) -> (b, i, k)>
#w = affine_map<(b, i, j, k) -> (k, j)>
#y = affine_map<(b, i, j, k) -> (b, i, j)>
cfb.kernel @wide attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
^bb0(%calls: index, %ln: tensor<?xindex>, %x: tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>):
  %w = ml_program.global_load_const @w64 : tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c1 : tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>
  %e = tensor.empty(%calls, %d) : tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>) -> tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>, tensor<64x64xf32>) outs(%z : tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>) {
  ^bb1(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>
  cfb.yield %p : tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>
}

cfb.kernel @fold attributes {lengths = [@n], rows = [], unit = #cfb<unit calls>} {
^bb0(%calls: index, %ln: tensor<?xindex>, %v: tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>, %x: tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%calls) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  // expected-remark-re @below {{a product of f32, not {{tf32|bf16}}: it does not compute a tile of a result}}
  %p = linalg.batch_vecmat ins(%v, %x : tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>, tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  cfb.yield %p : tensor<?x64xf32>
}
