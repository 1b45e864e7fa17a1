// An element of a ragged tensor is one of its storage: the first of its row, as offsets say, and the
// place in the row, within which every dim has one extent, padding included.
// RUN: %batch-opt %s --ragged-lower-storage | %FileCheck %s

ragged.dim @batch
ragged.dim @seq(@batch)
ragged.dim @sent(@batch)
ragged.dim @word(@batch, @sent)

// CHECK-NOT: ragged.dim
// CHECK-LABEL: func.func @scores
// CHECK-SAME: (%[[FLAT:.*]]: tensor<?x16xf32>, %[[N:.*]]: tensor<?xindex>, %[[O:.*]]: tensor<?xindex>, %[[B:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index)
func.func @scores(%flat: tensor<?x16xf32>, %n: tensor<?xindex>, %o: tensor<?xindex>, %b: index, %i: index, %j: index) -> f32 {
  %x = ragged.from_storage %flat lengths(%n) offsets(%o) : tensor<?x16xf32>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?x?x13xf32, #ragged.shape<@batch, @seq(@batch), @seq(@batch) pad 4, _ pad 16>>
  // CHECK: %[[LENGTH:.*]] = tensor.extract %[[N]][%[[B]]]
  // CHECK: %[[BLOCKS:.*]] = arith.ceildivsi %[[LENGTH]], %[[FOUR:.*]] : index
  // CHECK: %[[EXTENT:.*]] = arith.muli %[[BLOCKS]], %[[FOUR]] : index
  // CHECK: %[[BEFORE:.*]] = arith.muli %[[I]], %[[EXTENT]] : index
  // CHECK: %[[WITHIN:.*]] = arith.addi %[[BEFORE]], %[[J]] : index
  // CHECK: %[[FIRST:.*]] = tensor.extract %[[O]][%[[B]]]
  // CHECK: %[[AT:.*]] = arith.addi %[[FIRST]], %[[WITHIN]] : index
  // CHECK: tensor.extract %[[FLAT]][%[[AT]], %{{.*}}] : tensor<?x16xf32>
  %c = arith.constant 3 : index
  // What is done to each element is done to storage, as to one dense tensor.
  // CHECK-NEXT: %[[ALL:.*]] = arith.mulf %[[FLAT]], %[[FLAT]] : tensor<?x16xf32>
  // CHECK-NEXT: %[[LESS:.*]] = arith.cmpf olt, %[[ALL]], %[[FLAT]] : tensor<?x16xf32>
  // CHECK-NEXT: arith.select %[[LESS]], %[[ALL]], %[[FLAT]] : tensor<?x16xi1>, tensor<?x16xf32>
  %e = tensor.extract %x[%b, %i, %j, %c] : tensor<?x?x?x13xf32, #ragged.shape<@batch, @seq(@batch), @seq(@batch) pad 4, _ pad 16>>
  %m = arith.mulf %x, %x : tensor<?x?x?x13xf32, #ragged.shape<@batch, @seq(@batch), @seq(@batch) pad 4, _ pad 16>>
  %l = arith.cmpf olt, %m, %x : tensor<?x?x?x13xf32, #ragged.shape<@batch, @seq(@batch), @seq(@batch) pad 4, _ pad 16>>
  %s = arith.select %l, %m, %x : tensor<?x?x?x13xi1, #ragged.shape<@batch, @seq(@batch), @seq(@batch) pad 4, _ pad 16>>, tensor<?x?x?x13xf32, #ragged.shape<@batch, @seq(@batch), @seq(@batch) pad 4, _ pad 16>>
  return %e : f32
}

// Rows of two dims are numbered as the table of lengths over them stores them, and what a loop carries
// is storage.
// CHECK-LABEL: func.func @text
// CHECK-SAME: (%[[FLAT:.*]]: tensor<?xf32>, %[[N:.*]]: tensor<?xindex>, %[[S:.*]]: tensor<?xindex>, %[[W:.*]]: tensor<?xindex>, %[[O:.*]]: tensor<?xindex>
func.func @text(%flat: tensor<?xf32>, %n: tensor<?xindex>, %s: tensor<?xindex>, %w: tensor<?xindex>, %o: tensor<?xindex>, %from: index, %to: index, %v: f32) -> tensor<?xf32> {
  %words = ragged.from_storage %w lengths(%n) offsets(%s) : tensor<?xindex>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?xindex, #ragged.shape<@batch, @sent(@batch)>>
  %x = ragged.from_storage %flat lengths(%n, %words) offsets(%o) : tensor<?xf32>, (tensor<?xindex>, tensor<?x?xindex, #ragged.shape<@batch, @sent(@batch)>>), tensor<?xindex> -> tensor<?x?x?xf32, #ragged.shape<@batch, @sent(@batch), @word(@batch, @sent)>>
  // CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[Y:.*]] = %[[FLAT]]) -> (tensor<?xf32>) {
  // CHECK: %[[DOC:.*]] = tensor.extract %[[S]][%[[I]]]
  // CHECK: %[[ROW:.*]] = arith.addi %[[DOC]], %[[I]] : index
  // CHECK: %[[FIRST:.*]] = tensor.extract %[[O]][%[[ROW]]]
  // CHECK: %[[AT:.*]] = arith.addi %[[FIRST]], %[[I]] : index
  // CHECK: tensor.insert %{{.*}} into %[[Y]][%[[AT]]] : tensor<?xf32>
  %r = scf.for %i = %from to %to step %to iter_args(%y = %x) -> (tensor<?x?x?xf32, #ragged.shape<@batch, @sent(@batch), @word(@batch, @sent)>>) {
    %z = tensor.insert %v into %y[%i, %i, %i] : tensor<?x?x?xf32, #ragged.shape<@batch, @sent(@batch), @word(@batch, @sent)>>
    scf.yield %z : tensor<?x?x?xf32, #ragged.shape<@batch, @sent(@batch), @word(@batch, @sent)>>
  }
  // CHECK: return %[[LOOP]] : tensor<?xf32>
  %u = ragged.to_storage %r : tensor<?x?x?xf32, #ragged.shape<@batch, @sent(@batch), @word(@batch, @sent)>> -> tensor<?xf32>
  return %u : tensor<?xf32>
}
