// Each choice sets a number of the stages of the kernel that it names, and the work items of a call follow from it. Kernels
// that are not named keep what was planned, panels of one column their only micro-kernel, and one vector stays one.
// RUN: %batch-opt %s --apply-tuning | %FileCheck %s
// RUN: %batch-opt %s --apply-tuning --divide-calls | %FileCheck --check-prefix=DIVIDED %s

// CHECK: module {
module attributes {cfb.tuning = {
  cell = {rows = 48 : i64, tile = 6 : i64, width = 16 : i64},
  attend = {softmax_rows = 24 : i64, tails = 0 : i64},
  multiply = {product_rows = 36 : i64, product_columns = 64 : i64, product_terms = 128 : i64, tails = 16 : i64},
  each = {fused_rows = 0 : i64},
  all = {fused_rows = 1 : i64},
  gates = {fused_columns = 128 : i64}
}} {

// CHECK-LABEL: ragged.kernel @cell
// CHECK: ragged.blocks of 48 tile 12 {
// CHECK: ragged.product {{.*}} tile 6 :
// CHECK: ragged.product {{.*}} tile 4 :
// CHECK: ragged.nest over [40] lanes 0 {
// CHECK: ragged.nest over [20] lanes 0 {
ragged.kernel @cell {
  %x = ragged.operand row : memref<?x28xf32>
  %r = ragged.result : memref<?x40xf32>
  %q = ragged.result : memref<?x20xf32>
  %w = ragged.param @w panels 32 : memref<28x40xf32>
  %v = ragged.param @v panels 1 : memref<28x1xf32>
  %s = ragged.scratch products 1 : memref<?x48xf32>
  %t = ragged.scratch products 1 : memref<?x16xf32>
  ragged.blocks of 96 tile 12 {
    ragged.product %x (d0) -> (0) rows 1 k 28 columns 40 with %w row 0 into %s tile 12 : memref<?x28xf32>, memref<28x40xf32>, memref<?x48xf32>
    ragged.product %x (d0) -> (0) rows 1 k 28 columns 1 with %v row 0 into %t tile 4 : memref<?x28xf32>, memref<28x1xf32>, memref<?x16xf32>
    ragged.nest over [40] lanes 0 by 32 {
      %0 = ragged.load %s (d0) -> (d0) : memref<?x48xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x40xf32>
    }
    ragged.nest over [20] lanes 0 by 16 {
      %0 = ragged.load %s (d0) -> (d0) : memref<?x48xf32>
      ragged.store %0, %q (d0) -> (d0) : memref<?x20xf32>
    }
  }
}

// A kernel that was made for host scalars is named after the one that it was made of.
// CHECK-LABEL: ragged.kernel @cell_scalar
// CHECK: ragged.blocks of 48 tile 1 {
ragged.kernel @cell_scalar attributes {source = "cell"} {
  %x = ragged.operand row : memref<?x28xf32>
  %r = ragged.result : memref<?x28xf32>
  ragged.blocks of 96 tile 1 {
    ragged.nest over [28] lanes 0 by 16 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x28xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x28xf32>
    }
  }
}

// CHECK-LABEL: ragged.kernel @attend
// CHECK: ragged.calls {
// CHECK: ragged.online_softmax over [@n, 8] keys [@n] depth 8 blocks [24, 256] into
// DIVIDED-LABEL: ragged.kernel @attend
// DIVIDED: ragged.calls grain 24 shared 0 {
ragged.kernel @attend attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
  ragged.operand length : memref<?xi32>
  %x = ragged.operand expanded of [@n] : memref<?x?x8xf32>
  %r = ragged.result of [@n] : memref<?x?x8xf32>
  ragged.calls split 16 {
    ragged.online_softmax over [@n, 8] keys [@n] depth 8 blocks [96, 256] into %r (d0, d1) -> (d0, d1) : memref<?x?x8xf32> left {
      %a = ragged.load %x (d0, d1, d2, d3) -> (d0, d3) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } right {
      %a = ragged.load %x (d0, d1, d2, d3) -> (d2, d3) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } scores {
    ^bb0(%p: f32):
      ragged.yield %p : f32
    } values {
      %a = ragged.load %x (d0, d1, d2) -> (d2, d1) : memref<?x?x8xf32>
      ragged.yield %a : f32
    } finish {
    ^bb0(%sums: memref<?x?x8xf32>):
      %a = ragged.load %sums (d0, d1) -> (d0, d1) : memref<?x?x8xf32>
      ragged.yield %a : f32
    }
  }
}

// CHECK-LABEL: ragged.kernel @multiply
// CHECK: ragged.calls split 16 {
// CHECK: ragged.matmul over [@n, 32] depth [@n] rows 36 blocks [64, 128] into
ragged.kernel @multiply attributes {lengths = [@n], rows = [@n], unit = #cfb<unit calls>} {
  ragged.operand length : memref<?xi32>
  %a = ragged.operand expanded of [@n, @n] : memref<?x?x?xf32>
  %x = ragged.operand expanded of [@n] : memref<?x?x32xf32>
  %r = ragged.result of [@n] : memref<?x?x32xf32>
  ragged.calls {
    ragged.matmul over [@n, 32] depth [@n] rows 96 blocks [32, 256] into %r (d0, d1) -> (d0, d1) : memref<?x?x32xf32> left along_depth {
      %0 = ragged.load %a (d0, d1, d2) -> (d0, d2) : memref<?x?x?xf32>
      ragged.yield %0 : f32
    } right {
      %0 = ragged.load %x (d0, d1, d2) -> (d2, d1) : memref<?x?x32xf32>
      ragged.yield %0 : f32
    }
  }
}

// CHECK-LABEL: ragged.kernel @other
// CHECK: ragged.blocks of 96 tile 1 {
ragged.kernel @other {
  %x = ragged.operand row : memref<?x28xf32>
  %r = ragged.result : memref<?x28xf32>
  ragged.blocks of 96 tile 1 {
    ragged.nest over [28] lanes 0 by 16 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x28xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x28xf32>
    }
  }
}
// CHECK-LABEL: ragged.kernel @each
// CHECK: ragged.blocks of 96 tile 1 {
ragged.kernel @each attributes {lengths = [@n], rows = [@n], unit = #cfb<unit rows>} {
  ragged.operand length : memref<?xi32>
  %x = ragged.operand row : memref<?x28xf32>
  %r = ragged.result : memref<?x28xf32>
  ragged.blocks fused of 96 tile 1 {
    ragged.nest over [28] lanes 0 by 16 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x28xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x28xf32>
    }
  }
}

// CHECK-LABEL: ragged.kernel @all
// CHECK: ragged.blocks fused of 96 tile 1 {
ragged.kernel @all attributes {lengths = [@n], rows = [@n], unit = #cfb<unit rows>} {
  ragged.operand length : memref<?xi32>
  %x = ragged.operand row : memref<?x28xf32>
  %r = ragged.result : memref<?x28xf32>
  ragged.blocks of 96 tile 1 {
    ragged.nest over [28] lanes 0 by 16 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x28xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x28xf32>
    }
  }
}

// Its products were fused before it was planned; it stays as it is, without a warning.
// CHECK-LABEL: ragged.kernel @gates attributes {cfb.fused_columns = 128 : i64}
ragged.kernel @gates attributes {cfb.fused_columns = 128 : i64} {
  %x = ragged.operand row : memref<?x28xf32>
  %r = ragged.result : memref<?x28xf32>
  ragged.blocks of 96 tile 1 {
    ragged.nest over [28] lanes 0 by 16 {
      %0 = ragged.load %x (d0) -> (d0) : memref<?x28xf32>
      ragged.store %0, %r (d0) -> (d0) : memref<?x28xf32>
    }
  }
}
}
