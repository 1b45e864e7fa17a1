// What is made of a length alone, as positions are, is a kernel over calls too: no argument has the dim,
// so its type tells what loops run along, and the size of its table stands for the size.
// RUN: %batch-opt %s --batch-blocks | %FileCheck %s

// CHECK: cfb.kernel @f_0
// CHECK-NEXT: ^bb0(%[[CALLS:.*]]: index, %[[N:.*]]: tensor<?xindex>):
// CHECK: %[[SIZE:.*]] = tensor.dim %[[N]]
// CHECK: tensor.empty(%[[CALLS]], %[[SIZE]]) : tensor<?x?xf32, #ragged.shape<@dim.batch, @dim.0(@dim.batch)>>
func.func @main(%n: index) -> tensor<?xf32> {
  %r = cfb.block "f"(%n) : (index) -> tensor<?xf32>
      attributes {leading = [], lengths = [@dim.0], rows = [@dim.0], unit = #cfb<unit calls>} {
  ^bb0(%l: index):
    %e = tensor.empty(%l) : tensor<?xf32>
    %i = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
    ^bb0(%o: f32):
      %k = linalg.index 0 : index
      %c = arith.index_cast %k : index to i32
      %f = arith.sitofp %c : i32 to f32
      linalg.yield %f : f32
    } -> tensor<?xf32>
    cfb.yield %i : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
