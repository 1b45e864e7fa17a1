// Splitting lengths, and lists of rows by class and together again.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics

func.func @f(%n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_split_c1: expected a multiple of at least 2 and below 2^31, but got 1}}
  %main, %tail = ragged.split %n by 1 : tensor<?xindex>
  return
}

// -----

func.func @f(%n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_partition_c1: expected bounds that rise}}
  %a = ragged.partition %n at [] : tensor<?xindex> -> tensor<?xindex>
  return
}

// -----

func.func @f(%n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_partition_c1: expected bounds that rise}}
  %a:3 = ragged.partition %n at [64, 64] : tensor<?xindex> -> tensor<?xindex>, tensor<?xindex>, tensor<?xindex>
  return
}

// -----

func.func @f(%n: tensor<?xindex>) {
  // expected-error@+1 {{ragged_partition_c2: expected 2 lists, but got 1}}
  %a = ragged.partition %n at [64] : tensor<?xindex> -> tensor<?xindex>
  return
}

// -----

func.func @f(%n: tensor<28xindex>) {
  // expected-error@+1 {{ragged_partition_c3: expected a list of type 'tensor<?xindex>', but got 'tensor<14xindex>'}}
  %a:2 = ragged.partition %n at [64] : tensor<28xindex> -> tensor<14xindex>, tensor<14xindex>
  return
}

// -----

func.func @f() {
  // expected-error@+1 {{ragged_merge_c1: expected at least one list}}
  %a = "ragged.merge"() : () -> tensor<?xindex>
  return
}

// -----

func.func @f(%a: tensor<?xindex>, %b: tensor<?xi32>) {
  // expected-error@+1 {{ragged_merge_c2: expected lists of 'index', but got 'tensor<?xi32>'}}
  %m = ragged.merge %a, %b : tensor<?xindex>, tensor<?xi32> -> tensor<?xindex>
  return
}

// -----

func.func @f(%a: tensor<3xindex>, %b: tensor<?xindex>) {
  // expected-error@+1 {{ragged_merge_c3: expected a dynamic result, but got 'tensor<28xindex>'}}
  %m = ragged.merge %a, %b : tensor<3xindex>, tensor<?xindex> -> tensor<28xindex>
  return
}
