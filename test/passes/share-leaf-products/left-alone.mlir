// Left as they are: a product too short to be stored, one longer than what it is made of, and too large a one; a recursion of
// which no end depends on one row alone, or on none at all; one that may be called from outside; a product with what is no
// parameter, or of two calls, or in a choice of its own; and one of which callers need five products. A function that some
// of its calls need as it is stays beside its copy.
// RUN: %batch-opt %s --share-leaf-products --verify-diagnostics -o %t
// RUN: %FileCheck %s < %t

cfb.adt @Tree ["Leaf", "Node"] [[i32], [!cfb.adt<@Tree>, !cfb.adt<@Tree>]]
ml_program.global private @few(#ml_program.extern<tensor<9x63xf32>>) : tensor<9x63xf32>
ml_program.global private @narrow(#ml_program.extern<tensor<63x63xf32>>) : tensor<63x63xf32>
ml_program.global private @emb(#ml_program.extern<tensor<9x64xf32>>) : tensor<9x64xf32>
ml_program.global private @u(#ml_program.extern<tensor<64x64xf32>>) : tensor<64x64xf32>
ml_program.global private @longer(#ml_program.extern<tensor<64x65xf32>>) : tensor<64x65xf32>
ml_program.global private @wide(#ml_program.extern<tensor<64x4096xf32>>) : tensor<64x4096xf32>
ml_program.global private @back(#ml_program.extern<tensor<4096x64xf32>>) : tensor<4096x64xf32>

// CHECK-NOT: @short_
func.func private @short(%t: !cfb.adt<@Tree>) -> tensor<63xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<63xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<63xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @few : tensor<9x63xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x63xf32> -> tensor<63xf32>
    cfb.yield %x : tensor<63xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @short(%a) : (!cfb.adt<@Tree>) -> tensor<63xf32>
    %narrow = ml_program.global_load_const @narrow : tensor<63x63xf32>
    %h = linalg.vecmat ins(%l, %narrow : tensor<63xf32>, tensor<63x63xf32>) outs(%zero : tensor<63xf32>) -> tensor<63xf32>
    cfb.yield %h : tensor<63xf32>
  })
  return %r : tensor<63xf32>
}

// CHECK-NOT: @long_
func.func private @long(%t: !cfb.adt<@Tree>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<65xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    cfb.yield %x : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @long(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %longer = ml_program.global_load_const @longer : tensor<64x65xf32>
    %p = linalg.vecmat ins(%l, %longer : tensor<64xf32>, tensor<64x65xf32>) outs(%zero : tensor<65xf32>) -> tensor<65xf32>
    %h = tensor.extract_slice %p[0] [64] [1] : tensor<65xf32> to tensor<64xf32>
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK-NOT: @large_
func.func private @large(%t: !cfb.adt<@Tree>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    cfb.yield %x : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @large(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %wide = ml_program.global_load_const @wide : tensor<64x4096xf32>
    %none = arith.constant dense<0.0> : tensor<4096xf32>
    %p = linalg.vecmat ins(%l, %wide : tensor<64xf32>, tensor<64x4096xf32>) outs(%none : tensor<4096xf32>) -> tensor<4096xf32>
    %back = ml_program.global_load_const @back : tensor<4096x64xf32>
    %h = linalg.vecmat ins(%p, %back : tensor<4096xf32>, tensor<4096x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK-NOT: @given_
func.func private @given(%t: !cfb.adt<@Tree>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    cfb.yield %y : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @given(%a, %y) : (!cfb.adt<@Tree>, tensor<64xf32>) -> tensor<64xf32>
    %u = ml_program.global_load_const @u : tensor<64x64xf32>
    %h = linalg.vecmat ins(%l, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK-NOT: @constant_
func.func private @constant(%t: !cfb.adt<@Tree>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    cfb.yield %zero : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @constant(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %u = ml_program.global_load_const @u : tensor<64x64xf32>
    %h = linalg.vecmat ins(%l, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK-NOT: @two_rows_
func.func private @two_rows(%t: !cfb.adt<@Tree>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    %next = arith.addi %i, %i : i32
    %y = cfb.lookup %emb[%next] : tensor<9x64xf32> -> tensor<64xf32>
    %sum = arith.addf %x, %y : tensor<64xf32>
    cfb.yield %sum : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @two_rows(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %u = ml_program.global_load_const @u : tensor<64x64xf32>
    %h = linalg.vecmat ins(%l, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK-NOT: @outside_
func.func @outside(%t: !cfb.adt<@Tree>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    cfb.yield %x : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @outside(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %u = ml_program.global_load_const @u : tensor<64x64xf32>
    %h = linalg.vecmat ins(%l, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK-NOT: @no_parameter_
func.func private @no_parameter(%t: !cfb.adt<@Tree>, %m: tensor<64x64xf32>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    cfb.yield %x : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @no_parameter(%a, %m) : (!cfb.adt<@Tree>, tensor<64x64xf32>) -> tensor<64xf32>
    %h = linalg.vecmat ins(%l, %m : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK-NOT: @of_both_
func.func private @of_both(%t: !cfb.adt<@Tree>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    cfb.yield %x : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @of_both(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %r = func.call @of_both(%b) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %s = arith.addf %l, %r : tensor<64xf32>
    %u = ml_program.global_load_const @u : tensor<64x64xf32>
    %h = linalg.vecmat ins(%s, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK-NOT: @chosen_
func.func private @chosen(%t: !cfb.adt<@Tree>, %c: i1) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    cfb.yield %x : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @chosen(%a, %c) : (!cfb.adt<@Tree>, i1) -> tensor<64xf32>
    %u = ml_program.global_load_const @u : tensor<64x64xf32>
    %h = scf.if %c -> (tensor<64xf32>) {
    %p = linalg.vecmat ins(%l, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
      scf.yield %p : tensor<64xf32>
    } else {
      scf.yield %l : tensor<64xf32>
    }
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK-NOT: @many_
// expected-remark @+1 {{leaves of `many` share no products: its callers need more than 4 different ones}}
func.func private @many(%t: !cfb.adt<@Tree>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    cfb.yield %x : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l0 = func.call @many(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %f0 = arith.constant dense<1.0> : tensor<64xf32>
    %s0 = arith.mulf %l0, %f0 : tensor<64xf32>
    %l1 = func.call @many(%b) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %f1 = arith.constant dense<2.0> : tensor<64xf32>
    %s1 = arith.mulf %l1, %f1 : tensor<64xf32>
    %l2 = func.call @many(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %f2 = arith.constant dense<3.0> : tensor<64xf32>
    %s2 = arith.mulf %l2, %f2 : tensor<64xf32>
    %l3 = func.call @many(%b) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %f3 = arith.constant dense<4.0> : tensor<64xf32>
    %s3 = arith.mulf %l3, %f3 : tensor<64xf32>
    %l4 = func.call @many(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %f4 = arith.constant dense<5.0> : tensor<64xf32>
    %s4 = arith.mulf %l4, %f4 : tensor<64xf32>
    %u = ml_program.global_load_const @u : tensor<64x64xf32>
    %p0 = linalg.vecmat ins(%s0, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    %p1 = linalg.vecmat ins(%s1, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    %p2 = linalg.vecmat ins(%s2, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    %p3 = linalg.vecmat ins(%s3, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    %p4 = linalg.vecmat ins(%s4, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    %q1 = arith.addf %p0, %p1 : tensor<64xf32>
    %q2 = arith.addf %q1, %p2 : tensor<64xf32>
    %q3 = arith.addf %q2, %p3 : tensor<64xf32>
    %h = arith.addf %q3, %p4 : tensor<64xf32>
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}

// CHECK: func.func private @some_1(
// CHECK: func.call @some_1(
// CHECK: func.call @some(
// CHECK: func.func private @some(
// CHECK: func.call @some_1(
// CHECK: func.call @some(
// expected-remark @+1 {{`some` is called as `some_1`: a call computes what its caller multiplies the result with, and equal leaves share that}}
func.func private @some(%t: !cfb.adt<@Tree>) -> tensor<64xf32> attributes {no_inline} {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = cfb.match %t : !cfb.adt<@Tree> -> (tensor<64xf32>) ({
  ^bb0(%i: i32):
    %emb = ml_program.global_load_const @emb : tensor<9x64xf32>
    %x = cfb.lookup %emb[%i] : tensor<9x64xf32> -> tensor<64xf32>
    cfb.yield %x : tensor<64xf32>
  }, {
  ^bb0(%a: !cfb.adt<@Tree>, %b: !cfb.adt<@Tree>):
    %l = func.call @some(%a) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %r = func.call @some(%b) : (!cfb.adt<@Tree>) -> tensor<64xf32>
    %u = ml_program.global_load_const @u : tensor<64x64xf32>
    %p = linalg.vecmat ins(%l, %u : tensor<64xf32>, tensor<64x64xf32>) outs(%zero : tensor<64xf32>) -> tensor<64xf32>
    %h = arith.addf %p, %r : tensor<64xf32>
    cfb.yield %h : tensor<64xf32>
  })
  return %r : tensor<64xf32>
}
