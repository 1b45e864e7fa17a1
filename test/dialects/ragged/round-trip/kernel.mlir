// The loop level: memory, stages in order, and what is chosen of them.
// RUN: %batch-opt %s | %batch-opt | %FileCheck %s

// CHECK-LABEL: ragged.kernel @stages row_products [0, 64] attributes {source = "main"} {
ragged.kernel @stages row_products [0, 64] attributes {source = "main"} {
  // CHECK: %[[X:.*]] = ragged.operand row : memref<?x4x8xf32>
  %x = ragged.operand row : memref<?x4x8xf32>
  // CHECK: ragged.operand list : memref<?x40xf32>
  %l = ragged.operand list : memref<?x40xf32>
  // CHECK: ragged.operand scalar : memref<?xi32>
  %n = ragged.operand scalar : memref<?xi32>
  // CHECK: ragged.result : memref<?x40xf32>
  %r = ragged.result : memref<?x40xf32>
  %i = ragged.result : memref<?xi32>
  // CHECK: ragged.param @w panels 32 : memref<8x40xf32>
  %w = ragged.param @w panels 32 : memref<8x40xf32>
  // CHECK: ragged.param @u panels 32 bf16 : memref<8x40xf32>
  %u = ragged.param @u panels 32 bf16 : memref<8x40xf32>
  // CHECK: ragged.param @b : memref<40xf32>
  %b = ragged.param @b : memref<40xf32>
  // CHECK: ragged.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32> : memref<2xf32>
  %c = ragged.constant dense<[1.0, 2.0]> : tensor<2xf32> : memref<2xf32>
  // CHECK: ragged.scratch products 4 : memref<?x4x48xf32>
  %p = ragged.scratch products 4 : memref<?x4x48xf32>
  // CHECK: ragged.scratch : memref<8x64xf32>
  %v = ragged.scratch : memref<8x64xf32>
  // CHECK: ragged.pack_panels over [8, 40] into %{{.*}} : memref<8x64xf32> {
  ragged.pack_panels over [8, 40] into %v : memref<8x64xf32> {
    // CHECK-NEXT: ragged.load %{{.*}} (d0, d1) -> (d1) : memref<40xf32>
    %0 = ragged.load %b (d0, d1) -> (d1) : memref<40xf32>
    // CHECK-NEXT: ragged.yield %{{.*}} : f32
    ragged.yield %0 : f32
  }
  // CHECK: ragged.blocks of 24 tile 12 {
  ragged.blocks of 24 tile 12 {
    // CHECK: ragged.product %[[X]] (d0) -> (d0 * 8) rows 4 k 8 columns 40 with %{{.*}} row 0 from %{{.*}} + 0 into %{{.*}} tile 8 : memref<?x4x8xf32>, memref<8x40xf32>, memref<?x4x48xf32>, memref<40xf32>
    ragged.product %x (d0) -> (d0 * 8) rows 4 k 8 columns 40 with %w row 0 from %b + 0 into %p tile 8
        : memref<?x4x8xf32>, memref<8x40xf32>, memref<?x4x48xf32>, memref<40xf32>
    // CHECK: ragged.product %[[X]] (d0) -> (d0 * 8) rows 4 k 8 columns 40 with %{{.*}} row 0 onto into %{{.*}} tile 12
    ragged.product %x (d0) -> (d0 * 8) rows 4 k 8 columns 40 with %v row 0 onto into %p tile 12
        : memref<?x4x8xf32>, memref<8x64xf32>, memref<?x4x48xf32>
    // CHECK: ragged.fold over [4, 40] folding [0] into %{{.*}} (d0) -> (d0) lanes 1 vectors 3 : memref<?x40xf32> from {
    ragged.fold over [4, 40] folding [0] into %r (d0) -> (d0) lanes 1 vectors 3 : memref<?x40xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    // CHECK: } by {
    } by {
    // CHECK-NEXT: ^bb0(%[[SUM:.*]]: f32):
    ^bb0(%sum: f32):
      %0 = ragged.load %p (d0, d1) -> (d0 * 48 + d1) : memref<?x4x48xf32>
      %1 = arith.addf %sum, %0 : f32
      ragged.yield %1 : f32
    }
    // CHECK: ragged.fold_list %{{.*}} over [40] into %{{.*}} (d0) -> (d0) vectors 3 : memref<?x40xf32>, memref<?x40xf32> from {
    ragged.fold_list %l over [40] into %r (d0) -> (d0) vectors 3 : memref<?x40xf32>, memref<?x40xf32> from {
      %0 = ragged.load %r (d0) -> (d0) : memref<?x40xf32>
      ragged.yield %0 : f32
    } by {
    ^bb0(%sum: f32, %e: f32):
      %0 = arith.addf %sum, %e : f32
      ragged.yield %0 : f32
    }
    // CHECK: ragged.loops over [40] folding [0] stored [1] into %{{.*}} [#map] : memref<?xi32> from {
    ragged.loops over [40] folding [0] stored [1] into %i [affine_map<(d0) -> (0)>] : memref<?xi32> from {
      %0 = ragged.load %r (d0) -> (0) : memref<?x40xf32>
      %1 = ragged.load %n (d0) -> (0) : memref<?xi32>
      ragged.yield %0, %1 : f32, i32
    } by {
    ^bb0(%most: f32, %at: i32):
      // CHECK: ragged.index 0 : i64
      %0 = ragged.index 0 : i64
      %1 = arith.trunci %0 : i64 to i32
      %2 = ragged.load %r (d0) -> (d0) : memref<?x40xf32>
      %3 = arith.cmpf ogt, %2, %most : f32
      %4 = arith.select %3, %2, %most : f32
      %5 = arith.select %3, %1, %at : i32
      ragged.yield %4, %5 : f32, i32
    }
    // CHECK: ragged.nest over [40] lanes 0 by 32 {
    ragged.nest over [40] lanes 0 by 32 {
      %0 = ragged.load %r (d0) -> (d0) : memref<?x40xf32>
      %1 = ragged.load %c (d0) -> (1) : memref<2xf32>
      %2 = arith.mulf %0, %1 : f32
      // CHECK: ragged.store %{{.*}}, %{{.*}} (d0) -> (d0) : memref<?x40xf32>
      ragged.store %2, %r (d0) -> (d0) : memref<?x40xf32>
      // CHECK-NEXT: }
    }
  }
}

// CHECK-LABEL: ragged.kernel @of_all_calls
ragged.kernel @of_all_calls attributes {lengths = [@n], rows = [@n], takes = [], unit = #cfb<unit rows>} {
  // CHECK: ragged.blocks fused of 96 tile 1 {
  ragged.blocks fused of 96 tile 1 {
  }
}
