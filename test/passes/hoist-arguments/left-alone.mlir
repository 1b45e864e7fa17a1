// Nothing moves where no call hands the argument on, where the kernel is not recorded in each call, where products are
// small, and where what is made of the argument is a result as it is.
// RUN: %batch-opt %s --hoist-arguments | %FileCheck %s
// CHECK-NOT: _head

ml_program.global private @u(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @w(#ml_program.extern<tensor<8x8xf32>>) : tensor<8x8xf32>

cfb.kernel @new {
^bb0(%rows: index, %p: tensor<?x64xf32>, %l: tensor<?x64xf32>):
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %a = linalg.matmul ins(%p, %u : tensor<?x64xf32>, tensor<64x64xf32>) outs(%l : tensor<?x64xf32>) -> tensor<?x64xf32>
  %h = math.tanh %a : tensor<?x64xf32>
  cfb.yield %h : tensor<?x64xf32>
}

// The product starts from what changes.
func.func private @walk(%p: !cfb.lazy<tensor<64xf32>>, %l: !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>> {
  %h = cfb.record @new(%p, %l) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
  %r = func.call @walk(%p, %h) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
  return %r : !cfb.lazy<tensor<64xf32>>
}

cfb.kernel @small {
^bb0(%rows: index, %p: tensor<?x8xf32>, %l: tensor<?x8xf32>):
  %zero = arith.constant 0.0 : f32
  %w = ml_program.global_load_const @w : tensor<8x8xf32>
  %e = tensor.empty(%rows) : tensor<?x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %a = linalg.matmul ins(%p, %w : tensor<?x8xf32>, tensor<8x8xf32>) outs(%z : tensor<?x8xf32>) -> tensor<?x8xf32>
  %h = arith.addf %a, %l : tensor<?x8xf32>
  cfb.yield %h : tensor<?x8xf32>
}

func.func private @stroll(%p: !cfb.lazy<tensor<8xf32>>, %l: !cfb.lazy<tensor<8xf32>>) -> !cfb.lazy<tensor<8xf32>> {
  %h = cfb.record @small(%p, %l) : (!cfb.lazy<tensor<8xf32>>, !cfb.lazy<tensor<8xf32>>) -> !cfb.lazy<tensor<8xf32>>
  %r = func.call @stroll(%p, %h) : (!cfb.lazy<tensor<8xf32>>, !cfb.lazy<tensor<8xf32>>) -> !cfb.lazy<tensor<8xf32>>
  return %r : !cfb.lazy<tensor<8xf32>>
}

cfb.kernel @sometimes {
^bb0(%rows: index, %p: tensor<?x64xf32>, %l: tensor<?x64xf32>):
  %zero = arith.constant 0.0 : f32
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %a = linalg.matmul ins(%p, %u : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %h = arith.addf %a, %l : tensor<?x64xf32>
  cfb.yield %h : tensor<?x64xf32>
}

func.func private @run(%p: !cfb.lazy<tensor<64xf32>>, %l: !cfb.lazy<tensor<64xf32>>, %go: i1) -> !cfb.lazy<tensor<64xf32>> {
  %h = scf.if %go -> (!cfb.lazy<tensor<64xf32>>) {
    %a = cfb.record @sometimes(%p, %l) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
    scf.yield %a : !cfb.lazy<tensor<64xf32>>
  } else {
    scf.yield %l : !cfb.lazy<tensor<64xf32>>
  }
  %r = func.call @run(%p, %h, %go) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>, i1) -> !cfb.lazy<tensor<64xf32>>
  return %r : !cfb.lazy<tensor<64xf32>>
}

cfb.kernel @own {
^bb0(%rows: index, %p: tensor<?x64xf32>, %l: tensor<?x64xf32>):
  %zero = arith.constant 0.0 : f32
  %u = ml_program.global_load_const @u : tensor<64x64xf32>
  %e = tensor.empty(%rows) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %a = linalg.matmul ins(%p, %u : tensor<?x64xf32>, tensor<64x64xf32>) outs(%z : tensor<?x64xf32>) -> tensor<?x64xf32>
  %h = arith.addf %a, %l : tensor<?x64xf32>
  cfb.yield %h, %a : tensor<?x64xf32>, tensor<?x64xf32>
}

func.func private @keep(%p: !cfb.lazy<tensor<64xf32>>, %l: !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>> {
  %h:2 = cfb.record @own(%p, %l) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>)
  %r = func.call @keep(%p, %h#0) : (!cfb.lazy<tensor<64xf32>>, !cfb.lazy<tensor<64xf32>>) -> !cfb.lazy<tensor<64xf32>>
  return %r : !cfb.lazy<tensor<64xf32>>
}
