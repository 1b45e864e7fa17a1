// What a declaration of a data type must be.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{cfb_adt_c1: expected 2 lists of fields, but got 1}}
cfb.adt @A ["X", "Y"] [[]]

// -----

// expected-error@+1 {{cfb_adt_c2: expected at least one constructor}}
cfb.adt @A [] []

// -----

// expected-error@+1 {{cfb_adt_c3: constructor "X" appears twice}}
cfb.adt @A ["X", "X"] [[], []]

// -----

// expected-error@+1 {{cfb_adt_c4: '!cfb.adt<@B>' is not declared}}
cfb.adt @A ["X"] [[tuple<i32, !cfb.array<!cfb.adt<@B>>>]]

// -----

// expected-error@+1 {{cfb_adt_c5: expected 2 lists of names, but got 1}}
cfb.adt @A ["X", "Y"] [[], []] {names = [[]]}

// -----

// expected-error@+1 {{cfb_adt_c5: expected 2 names, but got 1}}
cfb.adt @A ["X"] [[i32, i32]] {names = [["a"]]}

// -----

// expected-error@+1 {{cfb_adt_c5: field "a" appears twice}}
cfb.adt @A ["X"] [[i32, i32]] {names = [["a", "a"]]}
