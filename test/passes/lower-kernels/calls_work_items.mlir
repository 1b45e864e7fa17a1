// One call must not keep all threads but one waiting: where each row of its results can be computed by
// itself, the function counts work items, reads of each its call and its range of rows, and its description
// says where work items may begin, what each costs besides, and which operations grow along the rows. Where
// all rows need a fold over them, a call stays whole.
// RUN: %batch-opt %s --plan-kernels --bound-masks --divide-calls --lower-kernels | %FileCheck %s

!a = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @n(@batch)>>
!b = tensor<?x?x?xf32, #ragged.shape<@batch, @n(@batch), @m(@batch)>>
!x = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>
!s = tensor<?xf32>

// CHECK: func.func @triangle(%[[BEGIN:.*]]: i64, %[[END:.*]]: i64
// CHECK-SAME: \22division\22:{\22length\22:0,\22tile\22:12,\22shared\22:16,\22rising\22:[0]}
// CHECK: %[[BYTES:.*]] = arith.constant 12 : i64
// CHECK: scf.for %[[ITEM:.*]] = %[[BEGIN]] to %[[END]]
// CHECK: %[[AT:.*]] = arith.muli %[[ITEM]], %[[BYTES]]
// CHECK: llvm.getelementptr %{{.*}}[%[[AT]]]
// CHECK: %[[CALL:.*]] = arith.extui
// CHECK: %[[FROM:.*]] = arith.extui
// CHECK: %[[TO:.*]] = arith.extui
// CHECK: scf.for %{{.*}} = %[[FROM]] to %
// CHECK: llvm.call @cohort_block
cfb.kernel @triangle attributes {unit = #cfb<unit calls>, lengths = [@n, @m], rows = [@n, @m]} {
^bb0(%calls: index, %ln: tensor<?xindex>, %lm: tensor<?xindex>, %a: !a, %b: !b):
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %b, %c1 : !b
  %m = tensor.dim %b, %c2 : !b
  %ea = tensor.empty(%calls, %n, %n) : !a
  %t = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : !a) outs(%ea : !a) {
  ^bb0(%v: f32, %o: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %r = arith.cmpi sge, %i, %j : index
    %s = arith.select %r, %v, %zero : f32
    linalg.yield %s : f32
  } -> !a
  %e = tensor.empty(%calls, %n, %m) : !b
  %z = linalg.fill ins(%zero : f32) outs(%e : !b) -> !b
  %p = linalg.batch_matmul ins(%t, %b : !a, !b) outs(%z : !b) -> !b
  cfb.yield %p : !b
}

// CHECK: func.func @centered(
// CHECK-SAME: \22flops\22:[]}
cfb.kernel @centered attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %ln: tensor<?xindex>, %x: !x):
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c1 : !x
  %es = tensor.empty(%calls) : !s
  %zs = linalg.fill ins(%zero : f32) outs(%es : !s) -> !s
  %s = linalg.reduce { arith.addf } ins(%x : !x) outs(%zs : !s) dimensions = [1]
  %e = tensor.empty(%calls, %n) : !x
  %sb = linalg.broadcast ins(%s : !s) outs(%e : !x) dimensions = [1]
  %y = arith.subf %x, %sb : !x
  cfb.yield %y : !x
}
