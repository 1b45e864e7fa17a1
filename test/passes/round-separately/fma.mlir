// A processor without fused multiply-adds would call a function of the C library for each, a number at a time: there
// every one becomes a product that is rounded, and a sum. What a GPU runs is as it was, and so is code for other
// processors.
// RUN: %batch-opt %s --split-input-file --round-separately | %FileCheck %s

// CHECK-LABEL: func.func @host
// CHECK: %[[P:.*]] = arith.mulf %arg0, %arg1 : vector<16xf32>
// CHECK: %[[S:.*]] = arith.addf %[[P]], %arg2 : vector<16xf32>
// CHECK: scf.if
// CHECK: %[[Q:.*]] = arith.mulf %[[S]], %arg1 : vector<16xf32>
// CHECK: arith.addf %[[Q]], %arg2 : vector<16xf32>
// CHECK-NOT: .fma
// CHECK: gpu.module
// CHECK: math.fma
module attributes {cfb.rounding = #cfb<rounding separate>} {
  func.func @host(%a: vector<16xf32>, %b: vector<16xf32>, %c: vector<16xf32>, %d: i1) -> vector<16xf32> {
    %s = vector.fma %a, %b, %c : vector<16xf32>
    %t = scf.if %d -> vector<16xf32> {
      %u = math.fma %s, %b, %c : vector<16xf32>
      scf.yield %u : vector<16xf32>
    } else {
      scf.yield %s : vector<16xf32>
    }
    return %t : vector<16xf32>
  }
  gpu.module @kernels {
    func.func @device(%a: f32) -> f32 {
      %s = math.fma %a, %a, %a : f32
      return %s : f32
    }
  }
}

// -----

// CHECK-LABEL: func.func @fused
// CHECK: math.fma
module {
  func.func @fused(%a: f32) -> f32 {
    %s = math.fma %a, %a, %a : f32
    return %s : f32
  }
}
