// What decides, loops, recurs or only passes values on is not a unit that could run as one, and what gives truth
// values must let decisions see what these are made of: the calls are inlined as ever.
// RUN: %batch-opt %s --keep-functions | %FileCheck %s

// CHECK-NOT: no_inline
func.func private @decides(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.if %c -> (tensor<4xf32>) {
    %e = math.exp %x : tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
func.func private @forces(%x: tensor<f32>) -> tensor<f32> {
  %e = math.exp %x : tensor<f32>
  %f = cfb.force %e : tensor<f32> -> f32
  %t = tensor.from_elements %f : tensor<f32>
  return %t : tensor<f32>
}
func.func private @recurs(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = math.exp %x : tensor<4xf32>
  %r = func.call @recurs(%e) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @maps(%a: !cfb.array<tensor<4xf32>>) -> !cfb.array<tensor<4xf32>> {
  %m = cfb.map %a : (!cfb.array<tensor<4xf32>>) -> !cfb.array<tensor<4xf32>> {
  ^bb0(%x: tensor<4xf32>):
    %e = math.exp %x : tensor<4xf32>
    cfb.yield %e : tensor<4xf32>
  }
  return %m : !cfb.array<tensor<4xf32>>
}
func.func private @passes_on(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @compares(%x: tensor<4xf32>) -> tensor<4xi1> {
  %c = arith.cmpf ogt, %x, %x : tensor<4xf32>
  return %c : tensor<4xi1>
}
func.func @main(%c: i1, %x: tensor<4xf32>, %s: tensor<f32>, %a: !cfb.array<tensor<4xf32>>) -> tensor<4xf32> {
  %0 = func.call @decides(%c, %x) : (i1, tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @forces(%s) : (tensor<f32>) -> tensor<f32>
  %2 = func.call @recurs(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = func.call @maps(%a) : (!cfb.array<tensor<4xf32>>) -> !cfb.array<tensor<4xf32>>
  %4 = func.call @passes_on(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = func.call @compares(%4) : (tensor<4xf32>) -> tensor<4xi1>
  return %4 : tensor<4xf32>
}
