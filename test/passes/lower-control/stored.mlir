// The names under which a parameter is stored are in the manifest.
// RUN: %batch-opt %s --plan-kernels --lower-kernels --lower-control | %FileCheck %s

// CHECK: \22params\22:[{\22name\22:\22w\22,\22elem\22:\22f32\22,\22shape\22:[2,4,4],\22stored\22:{\22name\22:\22layer.{}.w\22,\22transposed\22:true}}
// CHECK-SAME: {\22name\22:\22b\22,\22elem\22:\22f32\22,\22shape\22:[4],\22stored\22:{\22name\22:\22bias\22}}
ml_program.global public @w(#ml_program.extern<tensor<2x4x4xf32>>) : tensor<2x4x4xf32> {cfb.stored = {name = "layer.{}.w", transposed}}
ml_program.global public @b(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32> {cfb.stored = {name = "bias"}}
func.func @main(%x: i32) -> i32 attributes {cfb.entry, cfb.arguments = ["x"], cfb.argument_types = [i32], cfb.result_type = i32} {
  return %x : i32
}
