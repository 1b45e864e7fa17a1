// A kernel over calls needs an operand that is as long as each of its dims; one without is refused
// where it stands.
// RUN: %batch-opt %s --batch-blocks --verify-diagnostics

func.func @main(%n: index) -> tensor<?xf32> {
  %r = cfb.block "f"(%n) : (index) -> tensor<?xf32>
      attributes {leading = [], lengths = [@dim.0], rows = [@dim.0], unit = "calls"} {
  ^bb0(%l: index):
    // expected-error @+1 {{not supported yet: a length that no operand of the kernel has}}
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
