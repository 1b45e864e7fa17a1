// A declaration keeps its constructors' order, recursion, tuples, and constructors without fields.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s

// CHECK: cfb.adt @Tree ["Leaf", "Node"] {{\[}}[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]]
cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]]

// CHECK: cfb.adt @Cell ["Cell"] {{\[}}[tuple<tensor<3xf32>, tuple<i32, f32>>, !cfb.array<!cfb.adt<@Tree>>]]
cfb.adt @Cell ["Cell"] [[tuple<tensor<3xf32>, tuple<i32, f32>>, !cfb.array<!cfb.adt<@Tree>>]]

// CHECK: cfb.adt @Side ["Left", "Right"] {{\[}}[], []] {note = "no fields"}
cfb.adt @Side ["Left", "Right"] [[], []] {note = "no fields"}

// CHECK: cfb.adt @Named ["None", "Some"] {{\[}}[], [i32, i32]] {names = {{\[}}[], ["first", "second"]]}
cfb.adt @Named ["None", "Some"] [[], [i32, i32]] {names = [[], ["first", "second"]]}
