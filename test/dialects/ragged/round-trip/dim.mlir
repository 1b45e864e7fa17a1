// Dims of one length, and of one for each row of others.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --symbol-dce | %FileCheck %s

// CHECK: ragged.dim @batch{{$}}
ragged.dim @batch
// CHECK: ragged.dim @seq(@batch) max 512
ragged.dim @seq(@batch) max 512
// CHECK: ragged.dim @word(@batch, @seq)
ragged.dim @word(@batch, @seq)
// CHECK: ragged.dim @kept {note = "kept"}
ragged.dim @kept {note = "kept"}
