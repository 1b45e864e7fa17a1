// Texts: that of the program keeps its characters.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s
// RUN: %batch-opt %s --mlir-print-op-generic | %batch-opt | %FileCheck %s

// CHECK-LABEL: func.func @same(%{{.*}}: !cfb.str)
func.func @same(%s: !cfb.str) -> i1 {
  // CHECK: %[[T:.*]] = cfb.str_constant "a \22quote\22"
  %t = cfb.str_constant "a \22quote\22"
  // CHECK: cfb.str_equal %{{.*}}, %[[T]]
  %same = cfb.str_equal %s, %t
  return %same : i1
}
