// What counts along an axis costs a kernel nothing, and would take memory as long as the axis; what is
// made of it by a function that is dear is computed once.
// RUN: %batch-opt %s --hoist-constants | %FileCheck %s

// CHECK: cfb.kernel @compute_0
// CHECK: math.sin
// CHECK: tensor<9xf32> {cfb.computed = @compute_0}
// CHECK-NOT: cfb.computed

// CHECK: cfb.kernel @k
// CHECK: linalg.index
// CHECK: ml_program.global_load_const @computed_0
cfb.kernel @k {
^bb0(%rows: index, %x: tensor<?x9xi32>, %y: tensor<?x9xf32>):
  %e = tensor.empty() : tensor<9xi32>
  %line = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<9xi32>) {
  ^bb0(%out: i32):
    %at = linalg.index 0 : index
    %number = arith.index_cast %at : index to i32
    linalg.yield %number : i32
  } -> tensor<9xi32>
  %all = tensor.empty(%rows) : tensor<?x9xi32>
  %lines = linalg.broadcast ins(%line : tensor<9xi32>) outs(%all : tensor<?x9xi32>) dimensions = [0]
  %sum = arith.addi %x, %lines : tensor<?x9xi32>
  %real = arith.sitofp %line : tensor<9xi32> to tensor<9xf32>
  %wave = math.sin %real : tensor<9xf32>
  %every = tensor.empty(%rows) : tensor<?x9xf32>
  %waves = linalg.broadcast ins(%wave : tensor<9xf32>) outs(%every : tensor<?x9xf32>) dimensions = [0]
  %moved = arith.addf %y, %waves : tensor<?x9xf32>
  cfb.yield %sum, %moved : tensor<?x9xi32>, tensor<?x9xf32>
}
