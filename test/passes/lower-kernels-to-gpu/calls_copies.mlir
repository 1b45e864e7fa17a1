// Copies of a product over calls have 16 bytes where rows of the operand begin at multiples of them, as
// its type says, and 4 elsewhere: then fewer k are in a buffer. A thread's neighbouring columns are
// stored at once.
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s

ml_program.global private @w64(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @w63(#ml_program.extern<tensor<63x64xf32>>) : tensor<63x64xf32>

// CHECK: gpu.func @wide$0_small(
// CHECK-NOT: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4,
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = {{ *}}cg
// CHECK: scf.for %{{.*}} step %c16_i64
// CHECK-NOT: llvm.store %{{.*}} : f32, !llvm.ptr<1>
// CHECK: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<1>
// CHECK: gpu.func @wide$0_large(
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK: gpu.func @narrow$0_small(
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache = {{ *}}ca
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = {{ *}}cg
// CHECK: scf.for %{{.*}} step %c8_i64
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

cfb.kernel @narrow attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
^bb0(%calls: index, %ln: tensor<?xindex>, %x: tensor<?x?x63xf32, #ragged.shape<@batch, @n(@batch), _>>):
  %w = ml_program.global_load_const @w63 : tensor<63x64xf32>
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c1 : tensor<?x?x63xf32, #ragged.shape<@batch, @n(@batch), _>>
  %e = tensor.empty(%calls, %d) : tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>) -> tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?x63xf32, #ragged.shape<@batch, @n(@batch), _>>, tensor<63x64xf32>) outs(%z : tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>) {
  ^bb1(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>
  cfb.yield %p : tensor<?x?x64xf32, #ragged.shape<@batch, @n(@batch), _>>
}
