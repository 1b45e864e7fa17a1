// Upstream fills a concatenation of empty tensors where filled ones were concatenated. A block that fills
// it makes an empty tensor of the joined lengths, since no other block computes what is only written to.
// RUN: %batch-opt %s --form-blocks | %FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: tensor.concat
// CHECK: %[[JOINED:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK: cfb.block "main"(
// CHECK: tensor.empty(%{{.*}}) : tensor<?x5xf32>
// CHECK-NOT: tensor.concat
// CHECK: return
func.func @main(%x: tensor<?x2xf32>, %y: tensor<?x3xf32>) -> (tensor<?x5xf32>, tensor<?x2xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x2xf32>
  %m = tensor.dim %y, %c0 : tensor<?x3xf32>
  %a = tensor.empty(%n) : tensor<?x2xf32>
  %b = tensor.empty(%n) : tensor<?x3xf32>
  %c = tensor.concat dim(1) %a, %b : (tensor<?x2xf32>, tensor<?x3xf32>) -> tensor<?x5xf32>
  %f = linalg.fill ins(%one : f32) outs(%c : tensor<?x5xf32>) -> tensor<?x5xf32>
  %d = tensor.empty(%m) : tensor<?x2xf32>
  %e = tensor.concat dim(0) %a, %d : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %g = linalg.fill ins(%one : f32) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
  return %f, %g : tensor<?x5xf32>, tensor<?x2xf32>
}
