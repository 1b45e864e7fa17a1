// A table over ragged dims is the list of its entries in order of storage, and one over dense dims is
// collapsed: offsets take as much space as there are rows, never as the longest would make them.
// RUN: %batch-opt %s --ragged-lower-prelude | %FileCheck %s

ragged.dim @doc
ragged.dim @sent(@doc)
ragged.dim @word(@doc, @sent)
ragged.dim @column
ragged.dim @cell(@doc, @column)

// CHECK-LABEL: func.func @nested
// CHECK-SAME: (%[[LIST:.*]]: tensor<?xindex>, %[[N:.*]]: tensor<?xindex>, %[[O:.*]]: tensor<?xindex>)
func.func @nested(%list: tensor<?xindex>, %n: tensor<?xindex>, %o: tensor<?xindex>) -> (tensor<?xindex>, tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>>) {
  // CHECK: %[[TABLE:.*]] = ragged.from_storage %[[LIST]]
  %w = ragged.from_storage %list lengths(%n) offsets(%o) : tensor<?xindex>, (tensor<?xindex>), tensor<?xindex> -> tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>>
  // CHECK: %[[ROWS:.*]] = ragged.to_storage %[[TABLE]]
  // CHECK: %[[COUNT:.*]] = tensor.dim %[[ROWS]]
  // CHECK: scf.for %[[ROW:[^ ]*]] = %{{[^ ]*}} to %{{[^ ]*}} step
  // CHECK: tensor.extract %[[ROWS]][%[[ROW]]] : tensor<?xindex>
  %p = ragged.offsets @word(%w) : tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>> -> tensor<?xindex>
  // The aligned part of each has the table's rows.
  // CHECK: ragged.from_storage %{{.*}} lengths(%[[N]]) offsets(%[[O]]) : tensor<?xindex>
  %main, %tail = ragged.split %w by 4 : tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>>
  return %p, %main : tensor<?xindex>, tensor<?x?xindex, #ragged.shape<@doc, @sent(@doc)>>
}

// CHECK-LABEL: func.func @dense
func.func @dense(%n: tensor<?x3xindex>) -> tensor<?xindex> {
  // CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1]] : tensor<?x3xindex> into tensor<?xindex>
  %o = ragged.offsets @cell(%n) : tensor<?x3xindex> -> tensor<?xindex>
  return %o : tensor<?xindex>
}
