// Any structured operation gains a leading parallel dim, which a shared input does not index;
// `linalg.index` counts one further.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

ml_program.global private @b(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>

// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[SHARED:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK: linalg.generic {indexing_maps = [#[[ROWS]], #[[SHARED]], #[[ROWS]]], iterator_types = ["parallel", "parallel"]}
// CHECK: linalg.index 1
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p_b = ml_program.global_load_const @b : tensor<4xf32>
  %r = cfb.block "f"(%x, %p_b) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
  ^bb0(%b_x: tensor<4xf32>, %b_p_b: tensor<4xf32>):
    %e = tensor.empty() : tensor<4xf32>
    %out = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%b_x, %b_p_b : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb1(%i: f32, %j: f32, %o: f32):
      %k = linalg.index 0 : index
      %ki = arith.index_cast %k : index to i32
      %kf = arith.sitofp %ki : i32 to f32
      %s = arith.addf %i, %j : f32
      %q = arith.addf %s, %kf : f32
      linalg.yield %q : f32
    } -> tensor<4xf32>
    cfb.yield %out : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
