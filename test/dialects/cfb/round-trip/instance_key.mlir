// The key of an instance is two words, and needs no types.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s

// CHECK-LABEL: func.func @key
func.func @key() -> i32 {
  // CHECK: %[[LOW:.*]], %[[HIGH:.*]] = cfb.instance_key
  %low, %high = cfb.instance_key
  // CHECK: arith.xori %[[LOW]], %[[HIGH]] : i32
  %0 = arith.xori %low, %high : i32
  return %0 : i32
}
