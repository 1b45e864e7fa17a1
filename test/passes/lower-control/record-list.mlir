// A list operand is the array's address in the record's slot, and the manifest says so. The record
// has read the list when it returns, so an array that grows turn by turn may do so in place.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK: cfb.manifest = "{{.*}}\22operands\22:[{\22rows\22:{\22pool\22:0}}]
func.func private @sum_0(i64, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) attributes {cfb.kernel = "{\22name\22:\22sum\22,\22symbol\22:\22sum_0\22,\22location\22:\22\22,\22operands\22:[{\22rows\22:{\22pool\22:{\22elem\22:\22f32\22,\22shape\22:[4]}}}],\22results\22:[{\22elem\22:\22f32\22,\22shape\22:[4]}],\22constants\22:[],\22scratch_bytes\22:0,\22row_tile\22:1,\22flops_per_row\22:0}"}

// CHECK-LABEL: func.func private @coh.main
// CHECK: %[[SLOTS:.*]] = llvm.alloca
// CHECK: scf.for
// CHECK-NOT: cohort_alloc
// CHECK-NOT: memcpy
// CHECK: llvm.store %{{.*}}, %[[SLOTS]] : !llvm.ptr, !llvm.ptr
// CHECK: %[[H:.*]] = {{.*}}call @cohort_record(%{{.*}}, %{{.*}}, %[[SLOTS]])
// CHECK-NOT: cohort_alloc
// CHECK-NOT: memcpy
// CHECK: llvm.store %[[H]], %{{.*}} : i64
// CHECK: scf.yield
func.func @main(%turns: !cfb.array<i32>) -> !cfb.array<!cfb.lazy<tensor<4xf32>>>
    attributes {cfb.entry, cfb.arguments = ["turns"], cfb.argument_types = [!cfb.array<i32>], cfb.result_type = !cfb.array<tensor<4xf32>>} {
  %none = cfb.array_create : () -> !cfb.array<!cfb.lazy<tensor<4xf32>>>
  %r = cfb.fold %turns init(%none) : (!cfb.array<i32>, !cfb.array<!cfb.lazy<tensor<4xf32>>>) -> !cfb.array<!cfb.lazy<tensor<4xf32>>> {
  ^bb0(%states: !cfb.array<!cfb.lazy<tensor<4xf32>>>, %turn: i32):
    %h = cfb.record @sum_0(%states) : (!cfb.array<!cfb.lazy<tensor<4xf32>>>) -> !cfb.lazy<tensor<4xf32>>
    %more = cfb.array_push %states, (%h) : !cfb.array<!cfb.lazy<tensor<4xf32>>>, (!cfb.lazy<tensor<4xf32>>)
    cfb.yield %more : !cfb.array<!cfb.lazy<tensor<4xf32>>>
  }
  return %r : !cfb.array<!cfb.lazy<tensor<4xf32>>>
}
