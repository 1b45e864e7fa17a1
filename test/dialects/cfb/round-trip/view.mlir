// The rows of a tensor under other lengths, of values and of handles.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s

// CHECK-LABEL: func.func @view
func.func @view(%x: tensor<?x?x8xf32>, %n: index, %m: index) {
  // CHECK: cfb.view %{{.*}}(%{{.*}}) : tensor<?x?x8xf32> -> tensor<?x8xf32>
  %y = cfb.view %x(%n) : tensor<?x?x8xf32> -> tensor<?x8xf32>
  // CHECK: cfb.view %{{.*}}(%{{.*}}) : tensor<?x8xf32> -> tensor<3x?x8xf32>
  %z = cfb.view %y(%m) : tensor<?x8xf32> -> tensor<3x?x8xf32>
  // CHECK: cfb.view exact %{{.*}}(%{{.*}}, %{{.*}}) : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %w = cfb.view exact %x(%n, %m) : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  return
}

// CHECK-LABEL: func.func @handles
func.func @handles(%x: !cfb.lazy<tensor<?xf32>>, %n: index, %m: index) {
  // CHECK: cfb.view %{{.*}}(%{{.*}}, %{{.*}}) : !cfb.lazy<tensor<?xf32>> -> !cfb.lazy<tensor<?x?xf32>>
  %y = cfb.view %x(%n, %m) : !cfb.lazy<tensor<?xf32>> -> !cfb.lazy<tensor<?x?xf32>>
  return
}
