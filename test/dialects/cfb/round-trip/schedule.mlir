// Marks of phases and ghosts keep their numbers, a turn its place.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s

// CHECK-LABEL: func.func @schedule
func.func @schedule(%h: !cfb.lazy<tensor<28xf32>>) {
  // CHECK: cfb.phase 1
  cfb.phase 1
  // CHECK: cfb.ghost %{{.*}} {levels = 2 : i64} : !cfb.lazy<tensor<28xf32>>
  %0 = cfb.ghost %h {levels = 2} : !cfb.lazy<tensor<28xf32>>
  return
}

// CHECK-LABEL: func.func @turn
func.func @turn(%go: i1) {
  scf.while : () -> () {
    scf.condition(%go)
  } do {
    // CHECK: do {
    // CHECK-NEXT: cfb.turn
    // CHECK-NEXT: scf.yield
    cfb.turn
    scf.yield
  }
  return
}
