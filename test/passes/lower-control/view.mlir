// A view is the handle it had with other lengths, once these are seen to make as many rows; an exact one
// once each is seen to be what it was.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK: func.func private @coh.main(%{{.*}}: !llvm.ptr, %[[H:.*]]: i64, %[[N:.*]]: i64, %[[M:.*]]: i64)
func.func @main(%x: !cfb.lazy<tensor<?x?x8xf32>>) -> (!cfb.lazy<tensor<?x8xf32>>, !cfb.lazy<tensor<?x?x8xf32>>)
    attributes {cfb.entry, cfb.arguments = ["x"], cfb.argument_types = [tensor<?x?x8xf32>],
                cfb.argument_dims = [["n", "m"]], cfb.result_type = tuple<tensor<?x8xf32>, tensor<?x?x8xf32>>} {
  %n = cfb.dim %x, 0 : !cfb.lazy<tensor<?x?x8xf32>>
  %m = cfb.dim %x, 1 : !cfb.lazy<tensor<?x?x8xf32>>
  %k = arith.muli %n, %m : index
  // CHECK: %[[K:.*]] = arith.index_cast %{{.*}} : index to i64
  // CHECK: arith.cmpi uge, %[[K]]
  // CHECK: func.call @cohort_fail
  // CHECK: arith.cmpi ne
  // CHECK: func.call @cohort_fail
  %y = cfb.view %x(%k) : !cfb.lazy<tensor<?x?x8xf32>> -> !cfb.lazy<tensor<?x8xf32>>
  // CHECK: %[[N2:.*]] = arith.index_cast %{{.*}} : index to i64
  // CHECK: %[[M2:.*]] = arith.index_cast %{{.*}} : index to i64
  // CHECK: arith.cmpi ne, %[[N2]], %[[N]]
  // CHECK: arith.cmpi ne, %[[M2]], %[[M]]
  %z = cfb.view exact %x(%n, %n) : !cfb.lazy<tensor<?x?x8xf32>> -> !cfb.lazy<tensor<?x?x8xf32>>
  // CHECK: return %[[H]], %[[K]], %[[H]], %[[N2]], %[[M2]]
  return %y, %z : !cfb.lazy<tensor<?x8xf32>>, !cfb.lazy<tensor<?x?x8xf32>>
}
