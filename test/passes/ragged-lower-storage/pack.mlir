// Packing and unpacking touch what is within the lengths; padding keeps what was there.
// RUN: %batch-opt %s --ragged-lower-storage | %FileCheck %s

ragged.dim @batch
ragged.dim @seq(@batch)

// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[DENSE:.*]]: tensor<?x512x28xf32>, %[[FLAT:.*]]: tensor<?x28xf32>, %[[N:.*]]: tensor<?xindex>, %[[O:.*]]: tensor<?xindex>)
func.func @f(%dense: tensor<?x512x28xf32>, %flat: tensor<?x28xf32>, %n: tensor<?xindex>, %o: tensor<?xindex>) -> tensor<?x512x28xf32> {
  // CHECK: %[[ROWS:.*]] = tensor.dim %[[N]]
  // CHECK: %[[PACKED:.*]] = scf.for %[[B:.*]] = %{{.*}} to %[[ROWS]]
  // CHECK: %[[LENGTH:.*]] = tensor.extract %[[N]][%[[B]]]
  // CHECK: scf.for %[[S:.*]] = %{{.*}} to %[[LENGTH]]
  // CHECK: scf.for %[[D:.*]] = %{{.*}} to %{{.*}} step
  // CHECK: %[[E:.*]] = tensor.extract %[[DENSE]][%[[B]], %[[S]], %[[D]]]
  // CHECK: tensor.insert %[[E]] into %{{.*}} : tensor<?x28xf32>
  %e = ragged.from_storage %flat lengths(%n) offsets(%o) : tensor<?x28xf32>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?x28xf32, #ragged.shape<@batch, @seq(@batch) pad 4, _>>
  %x = ragged.pack %dense lengths(%n) into(%e) : tensor<?x512x28xf32>, (tensor<?xindex>) -> tensor<?x?x28xf32, #ragged.shape<@batch, @seq(@batch) pad 4, _>>
  // CHECK: scf.for
  // CHECK: tensor.extract %[[PACKED]]
  // CHECK: tensor.insert %{{.*}} into %{{.*}} : tensor<?x512x28xf32>
  %u = ragged.unpack %x lengths(%n) into(%dense) : tensor<?x?x28xf32, #ragged.shape<@batch, @seq(@batch) pad 4, _>>, (tensor<?xindex>) -> tensor<?x512x28xf32>
  // CHECK-NOT: ragged.{{[a-z]*}}_storage
  return %u : tensor<?x512x28xf32>
}
