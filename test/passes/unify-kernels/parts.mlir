// Functions that begin to read their constants at other places are equal once that is in the description:
// of an address from which on all is read, and of one that a loop moves. What reads a constant from its
// beginning on too, or hands its address on, is left.
// RUN: %batch-opt %s --unify-kernels | %FileCheck %s

// CHECK-LABEL: func.func @a(
// CHECK-SAME: \22constants\22:[{\22part\22:{\22of\22:{\22plain\22:{\22param\22:\22w\22}},\22from\22:256}}]
// CHECK: %[[C:.*]] = llvm.load
// CHECK: %[[P:.*]] = llvm.getelementptr %[[C]][%{{.*}}]
// CHECK-NEXT: llvm.load %[[P]]
// CHECK: llvm.getelementptr %[[C]][64]
func.func @a(%begin: i64, %end: i64, %operands: !llvm.ptr, %results: !llvm.ptr, %constants: !llvm.ptr, %scratch: !llvm.ptr) attributes {cfb.kernel = "{\22name\22:\22a\22,\22symbol\22:\22a\22,\22location\22:\22\22,\22operands\22:[],\22results\22:[],\22constants\22:[{\22plain\22:{\22param\22:\22w\22}}],\22scratch_bytes\22:0,\22row_tile\22:1,\22flops_per_row\22:0}"} {
  %c = llvm.load %constants : !llvm.ptr -> !llvm.ptr
  %m = llvm.getelementptr %c[%begin] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %p = llvm.getelementptr %m[256] : (!llvm.ptr) -> !llvm.ptr, i8
  %x = llvm.load %p : !llvm.ptr -> f32
  %q = llvm.getelementptr %c[320] : (!llvm.ptr) -> !llvm.ptr, i8
  %y = llvm.load %q : !llvm.ptr -> f32
  %z = arith.addf %x, %y : f32
  llvm.store %z, %scratch : f32, !llvm.ptr
  return
}

// CHECK: func.func private @b(
// CHECK-SAME: \22symbol\22:\22a\22
// CHECK-SAME: \22from\22:512}}]
// CHECK-NOT: llvm.load
func.func @b(%begin: i64, %end: i64, %operands: !llvm.ptr, %results: !llvm.ptr, %constants: !llvm.ptr, %scratch: !llvm.ptr) attributes {cfb.kernel = "{\22name\22:\22b\22,\22symbol\22:\22b\22,\22location\22:\22\22,\22operands\22:[],\22results\22:[],\22constants\22:[{\22plain\22:{\22param\22:\22w\22}}],\22scratch_bytes\22:0,\22row_tile\22:1,\22flops_per_row\22:0}"} {
  %c = llvm.load %constants : !llvm.ptr -> !llvm.ptr
  %m = llvm.getelementptr %c[%begin] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %p = llvm.getelementptr %m[512] : (!llvm.ptr) -> !llvm.ptr, i8
  %x = llvm.load %p : !llvm.ptr -> f32
  %q = llvm.getelementptr %c[576] : (!llvm.ptr) -> !llvm.ptr, i8
  %y = llvm.load %q : !llvm.ptr -> f32
  %z = arith.addf %x, %y : f32
  llvm.store %z, %scratch : f32, !llvm.ptr
  return
}

// CHECK-LABEL: func.func @c(
// CHECK-SAME: \22constants\22:[{\22plain\22:{\22param\22:\22w\22}}]
// CHECK: llvm.getelementptr %{{.*}}[512]
func.func @c(%begin: i64, %end: i64, %operands: !llvm.ptr, %results: !llvm.ptr, %constants: !llvm.ptr, %scratch: !llvm.ptr) attributes {cfb.kernel = "{\22name\22:\22c\22,\22symbol\22:\22c\22,\22location\22:\22\22,\22operands\22:[],\22results\22:[],\22constants\22:[{\22plain\22:{\22param\22:\22w\22}}],\22scratch_bytes\22:0,\22row_tile\22:1,\22flops_per_row\22:0}"} {
  %c = llvm.load %constants : !llvm.ptr -> !llvm.ptr
  %p = llvm.getelementptr %c[512] : (!llvm.ptr) -> !llvm.ptr, i8
  %x = llvm.load %p : !llvm.ptr -> f32
  %y = llvm.load %c : !llvm.ptr -> f32
  %z = arith.addf %x, %y : f32
  llvm.store %z, %scratch : f32, !llvm.ptr
  return
}
