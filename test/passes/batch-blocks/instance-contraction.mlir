// A sum of products over two instance dims, of which each row is a vector by a matrix, is one dense
// product over all rows.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: cfb.kernel @f_0 attributes {lengths = [@dim.0, @dim.1], rows = [@dim.0, @dim.1], {{.*}} unit = #cfb<unit rows>}
// CHECK-NEXT: ^bb0(%{{.*}}: index, %{{.*}}: tensor<?xindex>, %{{.*}}: tensor<?xindex>, %[[X:.*]]: tensor<?x8xf32>):
// CHECK: linalg.matmul ins(%[[X]], %{{.*}} : tensor<?x8xf32>, tensor<8x4xf32>)
ml_program.global private @w(#ml_program.extern<tensor<8x4xf32>>) : tensor<8x4xf32>
func.func @main(%x: tensor<?x?x8xf32>) -> tensor<?x?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x8xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?x8xf32>
  %w = ml_program.global_load_const @w : tensor<8x4xf32>
  %r = cfb.block "f"(%n, %m, %x, %w) : (index, index, tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
      attributes {leading = [[@dim.0, @dim.1], []], lengths = [@dim.0, @dim.1], reuse = [#cfb<reuse row>, #cfb<reuse row>, #cfb<reuse row>, #cfb<reuse shared>], rows = [@dim.0, @dim.1], unit = #cfb<unit rows>} {
  ^bb0(%k: index, %l: index, %a: tensor<?x?x8xf32>, %v: tensor<8x4xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%k, %l) : tensor<?x?x4xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
    %p = linalg.generic {indexing_maps = [affine_map<(i, r, j, k) -> (i, r, k)>, affine_map<(i, r, j, k) -> (k, j)>, affine_map<(i, r, j, k) -> (i, r, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %v : tensor<?x?x8xf32>, tensor<8x4xf32>) outs(%z : tensor<?x?x4xf32>) {
    ^bb0(%left: f32, %right: f32, %sum: f32):
      %product = arith.mulf %left, %right : f32
      %next = arith.addf %sum, %product : f32
      linalg.yield %next : f32
    } -> tensor<?x?x4xf32>
    cfb.yield %p : tensor<?x?x4xf32>
  }
  return %r : tensor<?x?x4xf32>
}
