// Panels that are kept in bf16 have half the bytes, and tiles of their own that widen the words of two columns: the lower
// halves are shifted up, of the upper ones the rest is cleared. A column alone is widened from halves. Each is in the
// manifest.
// RUN: %batch-opt %s --lower-kernels | %FileCheck %s

// CHECK-LABEL: func.func @cell
// CHECK-SAME: {\22panels\22:{\22param\22:\22w\22,\22width\22:32,\22format\22:\22bf16\22}}
// CHECK-SAME: {\22panels\22:{\22param\22:\22v\22,\22width\22:1,\22format\22:\22bf16\22}}
// CHECK: llvm.call @cohort_product_bf16(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %c1792_i64,
// CHECK: llvm.call @cohort_narrow_product_bf16(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %c56_i64,
ragged.kernel @cell {
  %x = ragged.operand row : memref<?x28xf32>
  %r = ragged.result : memref<?x40xf32>
  %w = ragged.param @w panels 32 bf16 : memref<28x40xf32>
  %v = ragged.param @v panels 1 bf16 : memref<28x1xf32>
  %s = ragged.scratch products 1 : memref<?x48xf32>
  %t = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    ragged.product %x (d0) -> (0) rows 1 k 28 columns 40 with %w row 0 into %s tile 12 : memref<?x28xf32>, memref<28x40xf32>, memref<?x48xf32>
    ragged.product %x (d0) -> (0) rows 1 k 28 columns 1 with %v row 0 into %t tile 4 : memref<?x28xf32>, memref<28x1xf32>, memref<?x16xf32>
    ragged.nest over [40] lanes 0 by 16 {
      %0 = ragged.load %s (d0) -> (d0) : memref<?x48xf32>
      %1 = ragged.load %t (d0) -> (0) : memref<?x16xf32>
      %2 = arith.addf %0, %1 : f32
      ragged.store %2, %r (d0) -> (d0) : memref<?x40xf32>
    }
  }
}

// CHECK-LABEL: llvm.func internal @cohort_product_bf16_r1_v2(
// CHECK-SAME: cfb.library = "cohort_product_bf16"
// CHECK: arith.constant dense<16> : vector<16xi32>
// CHECK: arith.constant dense<-65536> : vector<16xi32>
// CHECK: scf.for
// CHECK: %[[WORDS:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<16xi32>
// CHECK-NEXT: arith.andi %[[WORDS]],
// CHECK-NEXT: arith.shli %[[WORDS]],

// CHECK-LABEL: llvm.func internal @cohort_narrow_product_bf16(
// CHECK: %[[HALVES:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<16xi16>
// CHECK: %[[WIDE:.*]] = arith.extui %[[HALVES]] : vector<16xi16> to vector<16xi32>
// CHECK: arith.shli %[[WIDE]],
