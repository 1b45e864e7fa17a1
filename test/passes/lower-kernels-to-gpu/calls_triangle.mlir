// A product with a triangle ends, for each tile of rows, where its mask says: 64 rows together in tiles
// of every size, so that these give the same bits.
// RUN: %batch-opt %s --plan-kernels-for-gpu --bound-masks --lower-kernels-to-gpu | %FileCheck %s

// CHECK: gpu.func @triangle$0_small(
// CHECK: %[[GROUP:.*]] = arith.andi %{{.*}}, %c-64_i64 : i64
// CHECK: %[[END:.*]] = arith.addi %[[GROUP]], %c64_i64 : i64
// CHECK: %[[LAST:.*]] = arith.minsi %{{.*}}, %[[END]] : i64
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[LAST]] step
// CHECK: gpu.func @triangle$0_large(
// CHECK: arith.andi %{{.*}}, %c-64_i64 : i64
#map = affine_map<(b, i, j) -> (b, i, j)>
cfb.kernel @triangle attributes {lengths = [@n, @m], rows = [@n, @m], unit = #cfb<unit calls>} {
^bb0(%calls: index, %ln: tensor<?xindex>, %lm: tensor<?xindex>,
     %a: tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>,
     %b: tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>):
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %dn = tensor.dim %b, %c1 : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>
  %dm = tensor.dim %b, %c2 : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>
  %en = tensor.empty(%calls, %dn, %dn) : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
  %t = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>) outs(%en : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>) {
  ^bb1(%x: f32, %o: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %r = arith.cmpi sge, %i, %j : index
    %s = arith.select %r, %x, %zero : f32
    linalg.yield %s : f32
  } -> tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
  %e = tensor.empty(%calls, %dn, %dm) : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>) -> tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>
  %p = linalg.batch_matmul ins(%t, %b : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>, tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>) outs(%z : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>) -> tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>
  cfb.yield %p : tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>
}
