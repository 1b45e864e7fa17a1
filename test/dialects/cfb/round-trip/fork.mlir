// Strands may hand over values or nothing, and stand in each other.
// RUN: %batch-opt %s | %batch-opt | FileCheck %s

// CHECK-LABEL: func.func @forks
func.func @forks(%x: !cfb.lazy<tensor<i1>>, %y: !cfb.lazy<tensor<i1>>, %n: i32) -> (i1, i1, i32) {
  // CHECK: %[[R:.*]]:3 = cfb.fork -> (i1, i1, i32) ({
  // CHECK:   cfb.force
  // CHECK:   cfb.join %{{.*}} : i1
  // CHECK: }, {
  // CHECK:   cfb.fork -> () ({
  // CHECK:     cfb.join
  // CHECK:   }, {
  // CHECK:   cfb.join %{{.*}}, %{{.*}} : i1, i32
  // CHECK: })
  %r:3 = cfb.fork -> (i1, i1, i32) ({
    %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
    cfb.join %p : i1
  }, {
    cfb.fork -> () ({
      cfb.debug "x"(%x) {type = tensor<i1>} : !cfb.lazy<tensor<i1>>
      cfb.join
    }, {
      cfb.join
    })
    %q = cfb.force %y : !cfb.lazy<tensor<i1>> -> i1
    cfb.join %q, %n : i1, i32
  })
  return %r#0, %r#1, %r#2 : i1, i1, i32
}

// What a strand needs of earlier ones is its arguments.
// CHECK-LABEL: func.func @partly
// CHECK: cfb.fork {needs = array<i64: 0, 0, 1>} -> (i32, i1, i32, i1) ({
// CHECK: ^bb0(%{{.*}}: i32):
// CHECK: ^bb0(%{{.*}}: i32, %{{.*}}: i1):
func.func @partly(%x: !cfb.lazy<tensor<i1>>, %n: i32) -> (i32, i1) {
  %r:4 = cfb.fork {needs = array<i64: 0, 0, 1>} -> (i32, i1, i32, i1) ({
    cfb.join %n : i32
  }, {
    %p = cfb.force %x : !cfb.lazy<tensor<i1>> -> i1
    cfb.join %p : i1
  }, {
  ^bb0(%a: i32):
    cfb.join %a : i32
  }, {
  ^bb0(%a: i32, %b: i1):
    cfb.join %b : i1
  })
  return %r#2, %r#3 : i32, i1
}
