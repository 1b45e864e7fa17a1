// A softmax between two products that is marked online is one launch: the scores of some rows and keys
// are in shared memory, the largest score and the sums go from step to step in registers, and what is
// stored to the device's memory is the result alone. The second product's right side is copied while the
// first product is computed, and the next keys while scores become weights; the last wait leaves these
// on their way.
//
// On tensor cores a warp has 16 rows of its own, and their factors, scores and weights stay in its registers: the four lanes of a
// row exchange its largest score and the sum of its weights, and what they have of the weights is a factor of the second product.
// RUN: %batch-opt %s --plan-kernels-for-gpu --online-folds --lower-kernels-to-gpu | %FileCheck %s
// RUN: %batch-opt %s --round-products-bf16 --plan-kernels-for-gpu --online-folds | %FileCheck %s --check-prefix=LOOPS
// RUN: %batch-opt %s --round-products-bf16 --plan-kernels-for-gpu --online-folds --lower-kernels-to-gpu | %FileCheck %s --check-prefixes=WARPS,BF16
// RUN: %batch-opt %s --round-products-tf32 --plan-kernels-for-gpu --online-folds --lower-kernels-to-gpu | %FileCheck %s --check-prefixes=WARPS,TF32

// LOOPS: ragged.online_softmax over [@n, 16] keys [@n] depth 16 blocks [64, 32] into

// WARPS: \22dims\22:[{\22length\22:{\22lengths\22:[0],\22times\22:1},\22tile\22:64}
// WARPS: gpu.func @attend$0(
// WARPS: nvvm.cp.async.wait.group 0
// WARPS-NEXT: gpu.barrier
// BF16: nvvm.convert.f32x2.to.bf16x2
// TF32: nvvm.convert.float.to.tf32
// WARPS: gpu.barrier
// WARPS: scf.for %{{.*}} iter_args
// WARPS-NEXT: nvvm.cp.async.wait.group 0
// WARPS-NEXT: gpu.barrier
// BF16: nvvm.mma.sync A{{.*}}type<bf16>{{.*}}k = 16>
// TF32: nvvm.mma.sync A{{.*}}type<tf32>{{.*}}k = 8>
// WARPS-NOT: llvm.store {{.*}} !llvm.ptr<3>
// WARPS: gpu.barrier
// WARPS-NOT: llvm.store {{.*}} !llvm.ptr<3>
// WARPS: %[[LANE:.*]], %{{.*}} = gpu.shuffle {{ *}}xor %[[MOST:[0-9]+]], %{{.*}}, %{{.*}} : f32
// WARPS-NEXT: %[[PAIR:.*]] = arith.maximumf %[[LANE]], %[[MOST]] : f32
// WARPS-NEXT: gpu.shuffle {{ *}}xor %[[PAIR]], %{{.*}}, %{{.*}} : f32
// WARPS-NEXT: arith.maximumf
// WARPS: %[[OTHER:.*]], %{{.*}} = gpu.shuffle {{ *}}xor %[[SUM:[0-9]+]], %{{.*}}, %{{.*}} : f32
// WARPS-NEXT: arith.addf %[[SUM]], %[[OTHER]] : f32
// WARPS-NOT: llvm.store {{.*}} !llvm.ptr<3>
// WARPS: nvvm.cp.async.wait.group 1
// WARPS-NEXT: gpu.barrier
// BF16: nvvm.mma.sync A{{.*}}type<bf16>{{.*}}k = 16>
// TF32: nvvm.mma.sync A{{.*}}type<tf32>{{.*}}k = 8>
// WARPS-NOT: llvm.store {{.*}} !llvm.ptr<3>
// WARPS: scf.yield
// WARPS: arith.divf
// WARPS: llvm.store {{.*}}, !llvm.ptr<1>
// WARPS: gpu.return


// CHECK: cfb.gpu_kernels = {attend = "{\22constants\22:[],\22scratch_bytes\22:0
// CHECK-SAME: \22dims\22:[{\22length\22:{\22lengths\22:[0],\22times\22:1},\22tile\22:32},{\22length\22:{\22lengths\22:[],\22times\22:16},\22tile\22:16}]
// CHECK-NOT: attend$1
// CHECK: gpu.func @attend$0(
// CHECK-NOT: llvm.store {{.*}} !llvm.ptr<1>
// CHECK: scf.for %{{.*}} iter_args
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = {{ *}}cg
// CHECK: nvvm.cp.async.commit.group
// CHECK: math.fma
// CHECK-NOT: llvm.store {{.*}} !llvm.ptr<1>
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = {{ *}}cg
// CHECK: nvvm.cp.async.commit.group
// CHECK: gpu.barrier
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: gpu.barrier
// CHECK: arith.mulf
// CHECK: math.fma
// CHECK: gpu.barrier
// CHECK: arith.divf
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>
// CHECK: gpu.return
cfb.kernel @attend attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
^bb0(%calls: index, %ln: tensor<?xindex>,
     %q: tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>,
     %k: tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>,
     %v: tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>):
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %c1 = arith.constant 1 : index
  %d = tensor.dim %q, %c1 : tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>
  %ek = tensor.empty(%calls, %d) : tensor<?x16x?xf32, #ragged.shape<@batch, _, @n(@batch)>>
  %e = tensor.empty(%calls, %d, %d) : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
  %en = tensor.empty(%calls, %d) : tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>
  %eo = tensor.empty(%calls, %d) : tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>) -> tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
  %zn = linalg.fill ins(%zero : f32) outs(%en : tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>) -> tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>
  %l = linalg.fill ins(%low : f32) outs(%en : tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>) -> tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>) -> tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>
  %kt = linalg.transpose ins(%k : tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>) outs(%ek : tensor<?x16x?xf32, #ragged.shape<@batch, _, @n(@batch)>>) permutation = [0, 2, 1]
  %s = linalg.batch_matmul ins(%q, %kt : tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>, tensor<?x16x?xf32, #ragged.shape<@batch, _, @n(@batch)>>) outs(%z : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>) -> tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
  %m = linalg.reduce { arith.maximumf } ins(%s : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>) outs(%l : tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>) dimensions = [2]
  %mb = linalg.broadcast ins(%m : tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>) outs(%e : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>) dimensions = [2]
  %x = arith.subf %s, %mb : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
  %w = math.exp %x : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
  %t = linalg.reduce { arith.addf } ins(%w : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>) outs(%zn : tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>) dimensions = [2]
  %tb = linalg.broadcast ins(%t : tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>) outs(%e : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>) dimensions = [2]
  %y = arith.divf %w, %tb : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
  %o = linalg.batch_matmul ins(%y, %v : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>, tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>) outs(%zo : tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>) -> tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>
  cfb.yield %o : tensor<?x?x16xf32, #ragged.shape<@batch, @n(@batch), _>>
}
