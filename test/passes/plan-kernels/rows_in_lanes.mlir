// Where a row has one element, the lanes of vectors are rows; so are they where a row's few values are folded and the
// order makes no difference. What is printed is read back, and lowered to the same code.
// RUN: %batch-opt %s --plan-kernels | %FileCheck %s
// RUN: diff <(%batch-opt %s --plan-kernels | %batch-opt --lower-kernels | sed 's/location[^,]*,//') <(%batch-opt %s --plan-kernels --lower-kernels | sed 's/location[^,]*,//')

// CHECK-LABEL: ragged.kernel @single
// CHECK: ragged.nest over [] across_rows {
// CHECK: math.sin
cfb.kernel @single {
^bb0(%rows: index, %x: tensor<?xf32>):
  %y = math.sin %x : tensor<?xf32>
  cfb.yield %y : tensor<?xf32>
}

// Two elements are the lanes of one row.
// CHECK-LABEL: ragged.kernel @pair
// CHECK: ragged.nest over [2] lanes 0 {
cfb.kernel @pair {
^bb0(%rows: index, %x: tensor<?x2xf32>):
  %y = math.sin %x : tensor<?x2xf32>
  cfb.yield %y : tensor<?x2xf32>
}

#row = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: ragged.kernel @largest
// CHECK: ragged.fold over [3] folding [0] into %{{.*}} () -> (0) across_rows :
cfb.kernel @largest {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty(%rows) : tensor<?xf32>
  %s = linalg.fill ins(%least : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x3xf32>) outs(%s : tensor<?xf32>) {
  ^bb1(%a: f32, %b: f32):
    %m = arith.maximumf %b, %a : f32
    linalg.yield %m : f32
  } -> tensor<?xf32>
  cfb.yield %y : tensor<?xf32>
}

// A sum's bits follow from its order, which lanes along the values have.
// CHECK-LABEL: ragged.kernel @sum
// CHECK: ragged.fold over [3] folding [0] into %{{.*}} () -> (0) lanes 0 :
cfb.kernel @sum {
^bb0(%rows: index, %x: tensor<?x3xf32>):
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%rows) : tensor<?xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x3xf32>) outs(%s : tensor<?xf32>) {
  ^bb1(%a: f32, %b: f32):
    %m = arith.addf %b, %a : f32
    linalg.yield %m : f32
  } -> tensor<?xf32>
  cfb.yield %y : tensor<?xf32>
}

// Nine values are one vector of each row.
// CHECK-LABEL: ragged.kernel @largest_of_nine
// CHECK: ragged.fold over [9] folding [0] into %{{.*}} () -> (0) lanes 0 :
cfb.kernel @largest_of_nine {
^bb0(%rows: index, %x: tensor<?x9xf32>):
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty(%rows) : tensor<?xf32>
  %s = linalg.fill ins(%least : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x9xf32>) outs(%s : tensor<?xf32>) {
  ^bb1(%a: f32, %b: f32):
    %m = arith.maximumf %b, %a : f32
    linalg.yield %m : f32
  } -> tensor<?xf32>
  cfb.yield %y : tensor<?xf32>
}
