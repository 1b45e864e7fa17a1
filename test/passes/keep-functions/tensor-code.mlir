// A call of a function that is tensor code only stays a call, so that its body is one block; what
// that function calls is inlined into it. The result is one block a function: @outer's is not merged
// with what @main computes from it.
// RUN: %batch-opt %s --keep-functions | %FileCheck %s
// RUN: %batch-opt %s --pass-pipeline='builtin.module(keep-functions,inline,form-blocks)' | %FileCheck %s --check-prefix=BLOCKS

// CHECK: module attributes {cfb.granularity = #cfb<granularity function>}
// CHECK-LABEL: func.func private @outer
// CHECK: call @inner(%{{.*}}) : (
// CHECK-LABEL: func.func @main
// CHECK: call @outer(%{{.*}}) {no_inline} : (

// BLOCKS-LABEL: func.func private @outer
// BLOCKS: cfb.block "outer"
// BLOCKS: math.tanh
// BLOCKS: math.exp
// BLOCKS-LABEL: func.func @main
// BLOCKS: call @outer
// BLOCKS: cfb.block "main"
// BLOCKS: math.sqrt
// BLOCKS-NOT: cfb.block
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = math.tanh %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @outer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %t = func.call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %r = math.exp %t : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %a: !cfb.array<i32>) -> (tensor<4xf32>, i32) {
  %n = cfb.array_len %a : !cfb.array<i32>
  %t = func.call @outer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %r = math.sqrt %t : tensor<4xf32>
  return %r, %n : tensor<4xf32>, i32
}
