module {
  cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]]
  cfb.adt @P ["P"] [[tuple<tensor<3xf32>, tuple<i32, f32>>]]
  cfb.adt @U ["A", "B"] [[], []]
  ml_program.global private @emb(#ml_program.extern<tensor<40x13xf32>>) : tensor<40x13xf32>
  ml_program.global private @hf(#ml_program.extern<tensor<28xf32>>) : tensor<28xf32>
  func.func @a(%l: !cfb.adt<@Tree>, %x: tensor<3xf32>, %i: i32, %f: f32, %p: tensor<i1>, %aa: !cfb.array<tuple<f32, i32>>, %ts: !cfb.array<tensor<3xf32>>, %h: !cfb.lazy<tensor<28xf32>>) {
    %t = cfb.construct "Node"(%l, %l) : (!cfb.adt<@Tree>, !cfb.adt<@Tree>) -> !cfb.adt<@Tree>
    %u = cfb.construct "A"() : () -> !cfb.adt<@U>
    %q = cfb.construct "P"(%x, %i, %f) : (tensor<3xf32>, i32, f32) -> !cfb.adt<@P>
    cfb.match %u : !cfb.adt<@U> -> () ({
      cfb.yield
    }, {
      cfb.yield
    })
    %c = cfb.array_create %f, %i, %f, %i : (f32, i32, f32, i32) -> !cfb.array<tuple<f32, i32>>
    %e = cfb.array_create : () -> !cfb.array<i32>
    %n = cfb.array_len %aa : !cfb.array<tuple<f32, i32>>
    %g:2 = cfb.array_get %aa[%i] : !cfb.array<tuple<f32, i32>> -> (f32, i32)
    %pu = cfb.array_push %aa, (%f, %i) : !cfb.array<tuple<f32, i32>>, (f32, i32)
    %r = cfb.array_reverse %aa : !cfb.array<tuple<f32, i32>>
    %ra = cfb.array_range %n : !cfb.array<i32>
    %m = cfb.map %aa, %ra : (!cfb.array<tuple<f32, i32>>, !cfb.array<i32>) -> !cfb.array<f32> {
    ^bb0(%x0: f32, %x1: i32, %x2: i32):
      cfb.yield %x0 : f32
    }
    %s = cfb.fold %m init(%f) : (!cfb.array<f32>, f32) -> (f32) {
    ^bb0(%acc: f32, %y: f32):
      %z = arith.addf %acc, %y : f32
      cfb.yield %z : f32
    }
    %st = cfb.stack %ts : !cfb.array<tensor<3xf32>> -> tensor<?x3xf32>
    %row = cfb.lookup %st[%i] : tensor<?x3xf32> -> tensor<3xf32>
    %b = cfb.force %p : tensor<i1> -> i1
    %k:2 = cfb.block "name" (%x, %f) : (tensor<3xf32>, f32) -> (tensor<3xf32>, tensor<3xf32>) attributes {reuse = [#cfb<reuse row>, #cfb<reuse shared>]} {
    ^bb0(%k0: tensor<3xf32>, %k1: f32):
      cfb.yield %k0, %k0 : tensor<3xf32>, tensor<3xf32>
    }
    cfb.phase 1
    %gh = cfb.ghost %h {levels = 1} : !cfb.lazy<tensor<28xf32>>
    %pa = cfb.param @hf : !cfb.lazy<tensor<28xf32>>
    %pr = cfb.param_row @emb[%i] : !cfb.lazy<tensor<13xf32>>
    %co = cfb.constant dense<0.0> : tensor<28xf32> -> !cfb.lazy<tensor<28xf32>>
    %re = cfb.record @k0(%pr, %f) : (!cfb.lazy<tensor<13xf32>>, f32) -> (!cfb.lazy<tensor<28xf32>>)
    return
  }
  cfb.kernel @k0 attributes {foo = 1 : i32} {
  ^bb0(%rows: index, %x: tensor<?x13xf32>, %s: tensor<?xf32>):
    %e = tensor.empty(%rows) : tensor<?x28xf32>
    cfb.yield %e : tensor<?x28xf32>
  }
}
