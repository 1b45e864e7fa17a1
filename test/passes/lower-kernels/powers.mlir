// A power of integers is a loop over the bits of the exponent, of vectors.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

// CHECK-LABEL: func.func @power
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<{{.*}}xi32>, vector<{{.*}}xi32>, vector<{{.*}}xi32>)
// CHECK: arith.shrui %{{.*}} : vector<
// CHECK-NOT: math.ipowi
cfb.kernel @power {
^bb0(%rows: index, %x: tensor<?x64xi32>, %y: tensor<?x64xi32>):
  %p = math.ipowi %x, %y : tensor<?x64xi32>
  %q = arith.addi %p, %p : tensor<?x64xi32>
  cfb.yield %q : tensor<?x64xi32>
}
