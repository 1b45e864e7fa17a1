// What is shown to the user keeps its text and its type, whatever it is made of.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s

// CHECK-LABEL: func.func @show
func.func @show(%h: tensor<28xf32>, %k: i32, %l: !cfb.lazy<tensor<?xf32>>, %s: !cfb.str) {
  // CHECK: cfb.debug "two"(%{{.*}}, %{{.*}}) {type = tuple<tensor<28xf32>, i32>} : tensor<28xf32>, i32
  cfb.debug "two"(%h, %k) {type = tuple<tensor<28xf32>, i32>} : tensor<28xf32>, i32
  // CHECK: cfb.debug "held"(%{{.*}}) {type = tensor<?xf32>} : !cfb.lazy<tensor<?xf32>>
  cfb.debug "held"(%l) {type = tensor<?xf32>} : !cfb.lazy<tensor<?xf32>>
  // CHECK: cfb.debug "text"(%{{.*}}) {type = !cfb.str} : !cfb.str
  cfb.debug "text"(%s) {type = !cfb.str} : !cfb.str
  return
}
