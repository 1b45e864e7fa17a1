// What folds a row is one launch of stages. A fold of few results has warps (`lanes`), what only these stages need is on the
// chip, and threads take four neighbours where rows are multiples of them; a width of 25 is not.
// RUN: %batch-opt %s --plan-kernels-for-gpu | %FileCheck %s
// RUN: diff <(%batch-opt %s --plan-kernels-for-gpu | %batch-opt --lower-kernels-to-gpu) <(%batch-opt %s --plan-kernels-for-gpu --lower-kernels-to-gpu)

// CHECK: ragged.kernel @centre {
// CHECK: %[[S:.*]] = ragged.scratch on_chip : memref<?xf32>
// CHECK: ragged.blocks of 10 tile 1 {
// CHECK-NEXT: ragged.fold over [100] folding [0] into %[[S]] () -> (0) lanes 0 vectors 4 : memref<?xf32>
// CHECK: ragged.nest over [100] by 4 {
// CHECK-NOT: ragged.blocks
// CHECK: ragged.kernel @awkward {
// CHECK: ragged.blocks of 40 tile 1 {
// CHECK-NEXT: ragged.nest over [25] by 1 {
// CHECK: ragged.kernel @total {
// CHECK: ragged.blocks of 32 tile 1 {
// CHECK-NEXT: ragged.fold_list %{{.*}} over [32] into %{{.*}} (d0) -> (d0) vectors 4 :
// CHECK: cfb.kernel @centre
cfb.kernel @centre {
^bb0(%rows: index, %x: tensor<?x100xf32>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x100xf32>) outs(%z : tensor<?xf32>) dimensions = [1]
  %e1 = tensor.empty(%rows) : tensor<?x100xf32>
  %m = linalg.broadcast ins(%s : tensor<?xf32>) outs(%e1 : tensor<?x100xf32>) dimensions = [1]
  %y = arith.subf %x, %m : tensor<?x100xf32>
  cfb.yield %y : tensor<?x100xf32>
}

cfb.kernel @awkward {
^bb0(%rows: index, %x: tensor<?x25xf32>):
  %y = arith.negf %x : tensor<?x25xf32>
  cfb.yield %y : tensor<?x25xf32>
}

cfb.kernel @total {
^bb0(%rows: index, %list: !cfb.rows<tensor<32xf32>>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %s = cfb.reduce_rows %list init(%z) : (!cfb.rows<tensor<32xf32>>, tensor<?x32xf32>) -> tensor<?x32xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    cfb.yield %c : f32
  }
  cfb.yield %s : tensor<?x32xf32>
}
