// What the loop level says is obeyed: changed in the text, the code changes. A kernel stands by itself; no
// record and no other level is needed.
// RUN: %batch-opt %s --lower-kernels | %FileCheck %s
// RUN: sed -e 's/of 96 tile 12/of 24 tile 8/' %s | %batch-opt --lower-kernels | %FileCheck %s --check-prefix=ROWS
// RUN: sed -e 's/into %p tile 12/into %p tile 4/' %s | %batch-opt --lower-kernels | %FileCheck %s --check-prefix=TILE
// RUN: sed -e 's/panels 32/panels 1/' -e 's/into %p tile 12/into %p tile 4/' %s | %batch-opt --lower-kernels | %FileCheck %s --check-prefix=PANELS
// RUN: sed -e 's/lanes 0 by 32/lanes 0 by 16/' %s | %batch-opt --lower-kernels | %FileCheck %s --check-prefix=NARROW
// RUN: sed -e 's/lanes 0 by 32//' %s | %batch-opt --lower-kernels | %FileCheck %s --check-prefix=NONE
// RUN: sed -e 's/lanes 1 neighbours 4/lanes 0 vectors 1/' %s | %batch-opt --lower-kernels | %FileCheck %s --check-prefix=KEPT
// RUN: sed -e 's/lanes 1 neighbours 4/lanes 1 neighbours 2/' %s | %batch-opt --lower-kernels | %FileCheck %s --check-prefix=TWO

// CHECK: \22row_tile\22:12,\22flops_per_row\22:480
// ROWS: \22row_tile\22:8,
// CHECK: %[[ROWS:.*]] = arith.constant 96 : i64
// CHECK: scf.for %{{.*}} = %arg0 to %arg1 step %[[ROWS]]
// ROWS: %[[ROWS:.*]] = arith.constant 24 : i64
// ROWS: scf.for %{{.*}} = %arg0 to %arg1 step %[[ROWS]]

// The product is one call, or one for each tile of four rows.
// TILE: scf.for %{{.*}} = %c0_i64 to %{{.*}} step %c4_i64
// TILE: llvm.call @cohort_product(
// TILE: arith.negf
// PANELS: \22panels\22:{\22param\22:\22w\22,\22width\22:1}
// PANELS: llvm.call @cohort_narrow_product(
// CHECK: llvm.call @cohort_product(

// CHECK: vector<32xf32>
// NARROW-LABEL: func.func @cell
// NARROW-NOT: vector<32xf32>
// NARROW: llvm.func internal @cohort_product
// NONE-LABEL: func.func @cell
// NONE-NOT: vector<32xf32>
// NONE: vector.extract %{{.*}}[0] : f32 from vector<16xf32>

// Folded along the lanes, four results at once or two; or kept along them.
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// TWO: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>)
// TWO-NOT: -> (vector<16xf32>, vector<16xf32>, vector<16xf32>)
// TWO: llvm.func internal @cohort_product
// KEPT: llvm.intr.masked.gather
ml_program.global private @w(#ml_program.extern<tensor<6x40xf32>>) : tensor<6x40xf32>

ragged.kernel @cell {
  %x = ragged.operand row : memref<?x6xf32>
  %m = ragged.operand row : memref<?x8x64xf32>
  %h = ragged.result : memref<?x40xf32>
  %f = ragged.result : memref<?x8xf32>
  %w = ragged.param @w panels 32 : memref<6x40xf32>
  %p = ragged.scratch products 1 : memref<?x48xf32>
  ragged.blocks of 96 tile 12 {
    ragged.product %x (d0) -> (0) rows 1 k 6 columns 40 with %w row 0 into %p tile 12
        : memref<?x6xf32>, memref<6x40xf32>, memref<?x48xf32>
    ragged.nest over [40] lanes 0 by 32 {
      %0 = ragged.load %p (d0) -> (d0) : memref<?x48xf32>
      %1 = arith.negf %0 : f32
      ragged.store %1, %h (d0) -> (d0) : memref<?x40xf32>
    }
    ragged.fold over [8, 64] folding [1] into %f (d0) -> (d0) lanes 1 neighbours 4 : memref<?x8xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%sum: f32):
      %0 = ragged.load %m (d0, d1) -> (d0 * 64 + d1) : memref<?x8x64xf32>
      %1 = arith.addf %sum, %0 : f32
      ragged.yield %1 : f32
    }
  }
}
