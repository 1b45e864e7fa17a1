// A number that a call gives is known when the instance is recorded, where no tensor decides in it: the second
// call waits for the first one's number only, so that the products of both results are one block. Where a
// tensor decides, the second call comes later, and the first product need not wait for it.
// RUN: %batch-opt %s --hoist-operators --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func private @counted
// CHECK: call @counted
// CHECK: call @counted
// CHECK: cfb.block "counted"
// CHECK: linalg.vecmat
// CHECK: linalg.vecmat
// CHECK-NOT: cfb.block
// CHECK: return
func.func private @counted(%t: !cfb.adt<@Tree>, %k: i32, %w: tensor<4x4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, i32) {
  %one = arith.constant 1 : i32
  %l, %i = func.call @counted(%t, %k, %w, %z) : (!cfb.adt<@Tree>, i32, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, i32)
  %r, %j = func.call @counted(%t, %i, %w, %z) : (!cfb.adt<@Tree>, i32, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, i32)
  %p = linalg.vecmat ins(%l, %w : tensor<4xf32>, tensor<4x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
  %q = linalg.vecmat ins(%r, %w : tensor<4xf32>, tensor<4x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
  %s = arith.addf %p, %q : tensor<4xf32>
  %next = arith.addi %j, %one : i32
  return %s, %next : tensor<4xf32>, i32
}

// CHECK-LABEL: func.func private @decided
// CHECK: call @decided
// CHECK: call @decided
// CHECK: %[[FIRST:.*]] = cfb.block "decided"
// CHECK: linalg.vecmat
// CHECK-NEXT: cfb.yield
// CHECK: cfb.block "decided"({{.*}}, %[[FIRST]])
// CHECK: linalg.vecmat
// CHECK: return
func.func private @decided(%t: !cfb.adt<@Tree>, %k: i32, %d: tensor<i32>, %w: tensor<4x4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, i32) {
  %l, %i = func.call @decided(%t, %k, %d, %w, %z) : (!cfb.adt<@Tree>, i32, tensor<i32>, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, i32)
  %r, %j = func.call @decided(%t, %i, %d, %w, %z) : (!cfb.adt<@Tree>, i32, tensor<i32>, tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, i32)
  %p = linalg.vecmat ins(%l, %w : tensor<4xf32>, tensor<4x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
  %q = linalg.vecmat ins(%r, %w : tensor<4xf32>, tensor<4x4xf32>) outs(%z : tensor<4xf32>) -> tensor<4xf32>
  %s = arith.addf %p, %q : tensor<4xf32>
  %told = cfb.force %d : tensor<i32> -> i32
  %next = arith.addi %j, %told : i32
  return %s, %next : tensor<4xf32>, i32
}

cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]]
