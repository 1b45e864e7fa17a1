// A record writes its operands to stack slots that all records of the function share, and names its
// kernel by number; a later result's handle is the first one's with the result's number in it.
// RUN: %batch-opt %s --lower-control | %FileCheck %s

// CHECK-LABEL: func.func private @cell_0(i64, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr){{$}}
func.func private @cell_0(i64, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) attributes {cfb.kernel = "{\22name\22:\22cell\22,\22symbol\22:\22cell_0\22,\22location\22:\22m.coh:3:5\22,\22operands\22:[{\22row\22:{\22pool\22:{\22elem\22:\22f32\22,\22shape\22:[4]}}},{\22scalar\22:\22f32\22}],\22results\22:[{\22elem\22:\22f32\22,\22shape\22:[4]},{\22elem\22:\22f32\22,\22shape\22:[2]}],\22constants\22:[],\22scratch_bytes\22:0,\22row_tile\22:1,\22flops_per_row\22:0}"}

// CHECK-LABEL: func.func private @coh.main
// CHECK-SAME: (%[[CONTEXT:.*]]: !llvm.ptr, %[[H:.*]]: i64, %[[K:.*]]: f32)
// CHECK: %[[TWO:.*]] = arith.constant 2 : i64
// CHECK: %[[SLOTS:.*]] = llvm.alloca %[[TWO]] x i64
// CHECK-NOT: llvm.alloca
// CHECK: llvm.store %[[H]], %[[SLOTS]] : i64
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[SLOTS]][1]
// CHECK: %[[BITS:.*]] = arith.bitcast %[[K]] : f32 to i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[BITS]] : i32 to i64
// CHECK: llvm.store %[[WIDE]], %[[SECOND]]
// CHECK: %[[NUMBER:.*]] = arith.constant 0 : i32
// CHECK: %[[A:.*]] = call @cohort_record(%[[CONTEXT]], %[[NUMBER]], %[[SLOTS]])
// CHECK: llvm.store %[[A]], %[[SLOTS]] : i64
// CHECK: %[[B:.*]] = call @cohort_record(%[[CONTEXT]], %{{.*}}, %[[SLOTS]])
// CHECK: %[[SHIFT:.*]] = arith.constant 4294967296 : i64
// CHECK: %[[B1:.*]] = arith.addi %[[B]], %[[SHIFT]] : i64
// CHECK: return %[[B1]] : i64
func.func @main(%h: !cfb.lazy<tensor<4xf32>>, %k: f32) -> !cfb.lazy<tensor<2xf32>>
    attributes {cfb.entry, cfb.arguments = ["h", "k"], cfb.argument_types = [tensor<4xf32>, f32],
                cfb.result_type = tensor<2xf32>} {
  %a:2 = cfb.record @cell_0(%h, %k) : (!cfb.lazy<tensor<4xf32>>, f32)
      -> (!cfb.lazy<tensor<4xf32>>, !cfb.lazy<tensor<2xf32>>)
  %b:2 = cfb.record @cell_0(%a#0, %k) : (!cfb.lazy<tensor<4xf32>>, f32)
      -> (!cfb.lazy<tensor<4xf32>>, !cfb.lazy<tensor<2xf32>>)
  return %b#1 : !cfb.lazy<tensor<2xf32>>
}
