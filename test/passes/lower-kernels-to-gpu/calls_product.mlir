// A product over calls of any lengths is one launch in two sizes of tile. A block reads from a list
// which tile of which call is its own, and both sides go through shared memory, in two buffers: what lies
// in the device's memory is copied asynchronously, the next k while the last are multiplied, and what is
// elementwise before the product is computed. Nothing but the result is written to the device's memory.
// RUN: %batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu | %FileCheck %s

// CHECK: cfb.gpu_kernels = {product = "{\22constants\22:[],\22scratch_bytes\22:0,\22scratch_bytes_per_row\22:0
// CHECK-SAME: \22symbol\22:\22product$0_small\22,\22from_rows\22:0
// CHECK-SAME: \22calls\22:{\22dims\22:[{\22length\22:{\22lengths\22:[0],\22times\22:1},\22tile\22:16},{\22length\22:{\22lengths\22:[2],\22times\22:1},\22tile\22:32}],\22work\22:{\22lengths\22:[1],\22times\22:1}}
// CHECK-SAME: \22symbol\22:\22product$0_large\22
// CHECK-SAME: \22tile\22:64},{\22length\22:{\22lengths\22:[2],\22times\22:1},\22tile\22:64}]
// CHECK: llvm.mlir.global internal @product$0_small$shared() {addr_space = 3 : i32
// CHECK: gpu.func @product$0_small(%[[CALLS:.*]]: i64,
// CHECK: gpu.block_id
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK: scf.if
// CHECK: arith.negf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache = {{ *}}ca
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
// CHECK: scf.if
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: arith.negf
// CHECK: math.fma
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK-NOT: gpu.barrier
// CHECK: scf.if
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>
// CHECK: gpu.return
// CHECK: gpu.func @product$0_large(
// CHECK: cfb.kernel @product
cfb.kernel @product attributes {lengths = [@m, @k, @n], rows = [@m, @n], unit = #cfb<unit calls>} {
^bb0(%calls: index, %lm: tensor<?xindex>, %lk: tensor<?xindex>, %ln: tensor<?xindex>,
     %a: tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @k(@batch)>>,
     %b: tensor<?x?x?xf32, #ragged.shape<@batch, @k(@batch), @n(@batch)>>):
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %dm = tensor.dim %a, %c1 : tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @k(@batch)>>
  %dn = tensor.dim %b, %c2 : tensor<?x?x?xf32, #ragged.shape<@batch, @k(@batch), @n(@batch)>>
  %x = arith.negf %a : tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @k(@batch)>>
  %e = tensor.empty(%calls, %dm, %dn) : tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>) -> tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>
  %p = linalg.batch_matmul ins(%x, %b : tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @k(@batch)>>, tensor<?x?x?xf32, #ragged.shape<@batch, @k(@batch), @n(@batch)>>) outs(%z : tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>) -> tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>
  cfb.yield %p : tensor<?x?x?xf32, #ragged.shape<@batch, @m(@batch), @n(@batch)>>
}
