// Numbers that only choose rows of parameters are told from those that decide or are computed with: through
// calls, arrays, recursion and reversal.
// RUN: %batch-opt %s --structure-only | %FileCheck %s
// RUN: %batch-opt %s --structure-only | %batch-opt --structure-only | %FileCheck %s

ml_program.global private @emb(#ml_program.extern : tensor<7x4xf32>) : tensor<7x4xf32>
cfb.kernel @f {
^bb0(%rows: index, %x: tensor<?x4xf32>):
  cfb.yield %x : tensor<?x4xf32>
}

// The word of a leaf, and the words of a list; not how often something is done, nor what a kernel takes.
// CHECK: cfb.adt @Tree {{.*}} {cfb.chooses_rows = {{\[}}[0], [], [1], []]}
cfb.adt @Tree ["Leaf", "Node", "List", "Times"]
    [[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>], [!cfb.array<i32>, !cfb.array<i32>], [i32, !cfb.adt<@Tree>]]

// CHECK: func.func @main
// CHECK-SAME: cfb.chooses_rows = [1, 3]
func.func @main(%t: !cfb.adt<@Tree>, %w: i32, %n: i32, %ws: !cfb.array<i32>) -> !cfb.lazy<tensor<4xf32>>
    attributes {cfb.argument_types = [!cfb.adt<@Tree>, i32, i32, !cfb.array<i32>],
                cfb.arguments = ["t", "w", "n", "ws"], cfb.entry, cfb.result_type = tensor<4xf32>} {
  %0 = func.call @cell(%t, %w) : (!cfb.adt<@Tree>, i32) -> !cfb.lazy<tensor<4xf32>>
  %zero = arith.constant 0 : i32
  %is = arith.cmpi eq, %n, %zero : i32
  %1 = scf.if %is -> (!cfb.lazy<tensor<4xf32>>) {
    scf.yield %0 : !cfb.lazy<tensor<4xf32>>
  } else {
    %r = cfb.record @f(%0) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>>
    scf.yield %r : !cfb.lazy<tensor<4xf32>>
  }
  %back = cfb.array_reverse %ws : !cfb.array<i32>
  %2 = cfb.fold %back init(%1) : (!cfb.array<i32>, !cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>> {
  ^bb0(%h: !cfb.lazy<tensor<4xf32>>, %x: i32):
    %row = cfb.param_row @emb[%x] : !cfb.lazy<tensor<4xf32>>
    %r = cfb.record @f(%row) : (!cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>>
    cfb.yield %r : !cfb.lazy<tensor<4xf32>>
  }
  return %2 : !cfb.lazy<tensor<4xf32>>
}

func.func private @cell(%t: !cfb.adt<@Tree>, %w: i32) -> !cfb.lazy<tensor<4xf32>> {
  %own = cfb.param_row @emb[%w] : !cfb.lazy<tensor<4xf32>>
  %0 = cfb.match %t : !cfb.adt<@Tree> -> (!cfb.lazy<tensor<4xf32>>) ({
  ^bb0(%leaf: i32):
    %row = cfb.param_row @emb[%leaf] : !cfb.lazy<tensor<4xf32>>
    cfb.yield %row : !cfb.lazy<tensor<4xf32>>
  }, {
  ^bb0(%l: !cfb.adt<@Tree>, %r: !cfb.adt<@Tree>):
    %a = func.call @cell(%l, %w) : (!cfb.adt<@Tree>, i32) -> !cfb.lazy<tensor<4xf32>>
    cfb.yield %a : !cfb.lazy<tensor<4xf32>>
  }, {
  ^bb0(%places: !cfb.array<i32>, %words: !cfb.array<i32>):
    %s = cfb.fold %places init(%own) : (!cfb.array<i32>, !cfb.lazy<tensor<4xf32>>) -> !cfb.lazy<tensor<4xf32>> {
    ^bb0(%h: !cfb.lazy<tensor<4xf32>>, %place: i32):
      // An element that another number finds is a row's number; what finds it is more.
      %word = cfb.array_get %words[%place] : !cfb.array<i32> -> (i32)
      %row = cfb.param_row @emb[%word] : !cfb.lazy<tensor<4xf32>>
      cfb.yield %row : !cfb.lazy<tensor<4xf32>>
    }
    cfb.yield %s : !cfb.lazy<tensor<4xf32>>
  }, {
  ^bb0(%times: i32, %of: !cfb.adt<@Tree>):
    %one = arith.constant 1 : i32
    %next = arith.addi %times, %one : i32
    %row = cfb.param_row @emb[%next] : !cfb.lazy<tensor<4xf32>>
    cfb.yield %row : !cfb.lazy<tensor<4xf32>>
  })
  return %0 : !cfb.lazy<tensor<4xf32>>
}
