// A product of a looked-up row is marked where other rows are added to it, also through what computes with the row
// alone; and so is that of an element of a list that some calls give as they looked it up. Left alone: what is made of the
// row alone up to the end, products of other rows, and small ones.
// RUN: %batch-opt %s --hoist-lookups | %FileCheck %s
// RUN: %batch-opt %s --hoist-lookups | %batch-opt - --hoist-lookups | %FileCheck %s

cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.array<!cfb.adt<@Tree>>]]
ml_program.global private @emb(#ml_program.extern<tensor<9x256xf32>>) : tensor<9x256xf32>
ml_program.global private @w(#ml_program.extern<tensor<256x256xf32>>) : tensor<256x256xf32>
ml_program.global private @n(#ml_program.extern<tensor<256x64xf32>>) : tensor<256x64xf32>

// CHECK-LABEL: func.func @step(
// CHECK: %[[X:.*]] = cfb.lookup
// CHECK: %[[T:.*]] = math.tanh %[[X]]
// CHECK: linalg.vecmat {cfb.hoisted} ins(%[[T]],
// CHECK: linalg.vecmat ins(%{{.*}},
func.func @step(%i: i32, %h: tensor<256xf32>) -> tensor<256xf32> {
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %emb = ml_program.global_load_const @emb : tensor<9x256xf32>
  %w = ml_program.global_load_const @w : tensor<256x256xf32>
  %x = cfb.lookup %emb[%i] : tensor<9x256xf32> -> tensor<256xf32>
  %t = math.tanh %x : tensor<256xf32>
  %p = linalg.vecmat ins(%t, %w : tensor<256xf32>, tensor<256x256xf32>) outs(%zero : tensor<256xf32>) -> tensor<256xf32>
  %q = linalg.vecmat ins(%h, %w : tensor<256xf32>, tensor<256x256xf32>) outs(%zero : tensor<256xf32>) -> tensor<256xf32>
  %s = arith.addf %p, %q : tensor<256xf32>
  return %s : tensor<256xf32>
}

// CHECK-LABEL: func.func @alone(
// CHECK-NOT: cfb.hoisted
func.func @alone(%i: i32) -> tensor<256xf32> {
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %emb = ml_program.global_load_const @emb : tensor<9x256xf32>
  %w = ml_program.global_load_const @w : tensor<256x256xf32>
  %x = cfb.lookup %emb[%i] : tensor<9x256xf32> -> tensor<256xf32>
  %p = linalg.vecmat ins(%x, %w : tensor<256xf32>, tensor<256x256xf32>) outs(%zero : tensor<256xf32>) -> tensor<256xf32>
  %s = arith.addf %p, %x : tensor<256xf32>
  return %s : tensor<256xf32>
}

// CHECK-LABEL: func.func @small(
// CHECK-NOT: cfb.hoisted
func.func @small(%i: i32, %h: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %emb = ml_program.global_load_const @emb : tensor<9x256xf32>
  %n = ml_program.global_load_const @n : tensor<256x64xf32>
  %x = cfb.lookup %emb[%i] : tensor<9x256xf32> -> tensor<256xf32>
  %p = linalg.vecmat ins(%x, %n : tensor<256xf32>, tensor<256x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
  %s = arith.addf %p, %h : tensor<64xf32>
  return %s : tensor<64xf32>
}

// CHECK-LABEL: func.func private @state(
// CHECK: cfb.fold
// CHECK-NEXT: ^bb0(%[[H:.*]]: tensor<256xf32>, %[[A:.*]]: tensor<256xf32>):
// CHECK: linalg.vecmat {cfb.hoisted} ins(%[[A]],
// CHECK: linalg.vecmat ins(%[[H]],
func.func private @state(%t: !cfb.adt<@Tree>) -> tensor<256xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %w = ml_program.global_load_const @w : tensor<256x256xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<256xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x256xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x256xf32> -> tensor<256xf32>
    cfb.yield %x : tensor<256xf32>
  }, {
  ^bb0(%children: !cfb.array<!cfb.adt<@Tree>>):
    %states = cfb.map %children : (!cfb.array<!cfb.adt<@Tree>>) -> !cfb.array<tensor<256xf32>> {
    ^bb0(%child: !cfb.adt<@Tree>):
      %s = func.call @state(%child) : (!cfb.adt<@Tree>) -> tensor<256xf32>
      cfb.yield %s : tensor<256xf32>
    }
    %all = cfb.fold %states init(%zero) : (!cfb.array<tensor<256xf32>>, tensor<256xf32>) -> tensor<256xf32> {
    ^bb0(%h: tensor<256xf32>, %a: tensor<256xf32>):
      %p = linalg.vecmat ins(%a, %w : tensor<256xf32>, tensor<256x256xf32>) outs(%zero : tensor<256xf32>) -> tensor<256xf32>
      %q = linalg.vecmat ins(%h, %w : tensor<256xf32>, tensor<256x256xf32>) outs(%zero : tensor<256xf32>) -> tensor<256xf32>
      %s = arith.addf %p, %q : tensor<256xf32>
      cfb.yield %s : tensor<256xf32>
    }
    cfb.yield %all : tensor<256xf32>
  })
  return %r : tensor<256xf32>
}
