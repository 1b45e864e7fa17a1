// What is not an elementwise reduction stays a fold, and the remark says at which operation it fails.
// RUN: %batch-opt %s --recognise-reductions --split-input-file --verify-diagnostics | %FileCheck %s

// CHECK-LABEL: func.func @recurrent
// CHECK: cfb.fold
func.func @recurrent(%list: !cfb.array<tensor<4xf32>>, %start: tensor<4xf32>, %w: tensor<4x4xf32>) -> tensor<4xf32> {
  %s = cfb.fold %list init(%start) : (!cfb.array<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    // expected-remark@+1 {{left as a fold: `linalg.vecmat` does not combine what it carries element by element}}
    %p = linalg.vecmat ins(%acc, %w : tensor<4xf32>, tensor<4x4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
    cfb.yield %p : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @outside
// CHECK: cfb.fold
func.func @outside(%list: !cfb.array<tensor<4xf32>>, %start: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %s = cfb.fold %list init(%start) : (!cfb.array<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    // expected-remark@+1 {{left as a fold: it combines what it carries with a value from outside}}
    %d = arith.mulf %acc, %g : tensor<4xf32>
    %n = arith.addf %d, %x : tensor<4xf32>
    cfb.yield %n : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @two_values
// CHECK: cfb.fold
func.func @two_values(%list: !cfb.array<tuple<tensor<4xf32>, tensor<4xf32>>>, %start: tensor<4xf32>) -> tensor<4xf32> {
  %s = cfb.fold %list init(%start) : (!cfb.array<tuple<tensor<4xf32>, tensor<4xf32>>>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>, %y: tensor<4xf32>):
    %d = arith.mulf %acc, %x : tensor<4xf32>
    // expected-remark@+1 {{left as a fold: it combines what it carries with two values of an element}}
    %n = arith.addf %d, %y : tensor<4xf32>
    cfb.yield %n : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @last
// CHECK: cfb.fold
func.func @last(%list: !cfb.array<tensor<4xf32>>, %start: tensor<4xf32>) -> tensor<4xf32> {
  %s = cfb.fold %list init(%start) : (!cfb.array<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%acc: tensor<4xf32>, %x: tensor<4xf32>):
    // expected-remark@+1 {{left as a fold: it does not combine what it carries}}
    cfb.yield %x : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @other_type
// CHECK: cfb.fold
func.func @other_type(%list: !cfb.array<tensor<4xf32>>, %start: tensor<4xi1>, %zero: tensor<4xf32>) -> tensor<4xi1> {
  %none = arith.constant dense<0.0> : tensor<4xf32>
  // expected-remark@+1 {{left as a fold: an element has another type than what it carries}}
  %s = cfb.fold %list init(%start) : (!cfb.array<tensor<4xf32>>, tensor<4xi1>) -> tensor<4xi1> {
  ^bb0(%acc: tensor<4xi1>, %x: tensor<4xf32>):
    %d = arith.select %acc, %x, %none : tensor<4xi1>, tensor<4xf32>
    %n = arith.cmpf ogt, %d, %none : tensor<4xf32>
    cfb.yield %n : tensor<4xi1>
  }
  return %s : tensor<4xi1>
}

// -----

// A count on the host is not a tensor: no candidate, so no remark.
// CHECK-LABEL: func.func @host
// CHECK: cfb.fold
func.func @host(%list: !cfb.array<i32>, %start: i32) -> i32 {
  %s = cfb.fold %list init(%start) : (!cfb.array<i32>, i32) -> i32 {
  ^bb0(%acc: i32, %x: i32):
    %n = arith.addi %acc, %x : i32
    cfb.yield %n : i32
  }
  return %s : i32
}
