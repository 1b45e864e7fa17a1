// The option of a command line is a fact of the module, which the lowering to GPUs reads.
// RUN: %batch-opt %s --round-products-tf32 | %FileCheck %s

// CHECK: module attributes {cfb.precision = #cfb<precision tf32>}
module {
}
