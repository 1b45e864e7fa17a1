// A tensor with instance dims is its handle and a slot a length, in arguments, calls and results; a row
// of it is the handle plus an index within the length, and a record's result is as long as its rows.
// RUN: %batch-opt %s --plan-kernels --lower-kernels --lower-control | %FileCheck %s

// CHECK: cfb.manifest = "
// CHECK-SAME: \22type\22:{\22ragged\22:{\22pool\22:[[S:[0-9]+]],\22dims\22:[{\22named\22:0}]}}
// CHECK-SAME: \22result\22:{\22tuple\22:[{\22ragged\22:{\22pool\22:[[S]],\22dims\22:[\22any\22]}}
// CHECK-SAME: \22dims\22:[\22n\22]
// CHECK-SAME: \22operands\22:[\22length\22,{\22ragged\22:{\22pool\22:[[S]],\22extent\22:0}},{\22row\22:{\22pool\22:[[S]]}}]
// CHECK-SAME: \22call\22:{\22extents\22:[{\22lengths\22:[0],\22times\22:1}],\22rows\22:0,\22unit\22:\22rows\22
cfb.kernel @scale attributes {lengths = [@n], rows = [@n], takes = [#cfb<takes ragged>, #cfb<takes row>], unit = #cfb<unit rows>} {
^bb0(%rows: index, %n: tensor<?xindex>, %x: tensor<?x8xf32>, %g: tensor<?x8xf32>):
  %y = arith.mulf %x, %g : tensor<?x8xf32>
  cfb.yield %y : tensor<?x8xf32>
}

// CHECK: func.func private @coh.main(%[[CTX:.*]]: !llvm.ptr, %[[H:.*]]: i64, %[[LEN:.*]]: i64, %[[I:.*]]: i32) -> (i64, i64, i64)
func.func @main(%x: !cfb.lazy<tensor<?x8xf32>>, %i: i32) -> (!cfb.lazy<tensor<?x8xf32>>, !cfb.lazy<tensor<8xf32>>)
    attributes {cfb.entry, cfb.arguments = ["x", "i"], cfb.argument_types = [tensor<?x8xf32>, i32],
                cfb.argument_dims = [["n"], []], cfb.result_type = tuple<tensor<?x8xf32>, tensor<8xf32>>} {
  // CHECK: %[[IDX:.*]] = arith.extsi %[[I]]
  // CHECK: arith.cmpi uge, %[[IDX]], %[[LEN]]
  // CHECK: func.call @cohort_fail
  // CHECK: %[[ROW:.*]] = arith.addi %[[H]], %[[IDX]]
  %r = cfb.row %x[%i] : !cfb.lazy<tensor<?x8xf32>> -> !cfb.lazy<tensor<8xf32>>
  %n = cfb.dim %x, 0 : !cfb.lazy<tensor<?x8xf32>>
  // CHECK: %[[N:.*]] = arith.index_cast %[[LEN]] : i64 to index
  // CHECK: %[[Y:.*]] = call @cohort_record
  // CHECK: %[[YLEN:.*]] = arith.index_cast %[[N]] : index to i64
  // CHECK: return %[[Y]], %[[YLEN]], %[[ROW]]
  %y = cfb.record @scale(%n, %x, %r) : (index, !cfb.lazy<tensor<?x8xf32>>, !cfb.lazy<tensor<8xf32>>) -> !cfb.lazy<tensor<?x8xf32>>
  return %y, %r : !cfb.lazy<tensor<?x8xf32>>, !cfb.lazy<tensor<8xf32>>
}
