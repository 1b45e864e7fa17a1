// Functions that each call the next one twice would become 2^13 copies of the last one: one of them is
// kept, and the others are written out. What is called once, or is as small as a call, is not kept.
// RUN: %batch-opt %s --limit-inlining 2>&1 | %FileCheck %s

// CHECK: remark: `f6` stays a function, {{.*}} written out at each of its calls, `f5` would have more than 8192 operations
// CHECK: func.func private @f6(%{{.*}}: tensor<2xf32>) -> tensor<2xf32> attributes {no_inline}
// CHECK-NOT: no_inline
func.func private @f0(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f1(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f1(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f1(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f2(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f2(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f2(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f3(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f3(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f3(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f4(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f4(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f4(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f5(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f5(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f5(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f6(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f6(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f6(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f7(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f7(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f7(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f8(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f8(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f8(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f9(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f9(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f9(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f10(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f10(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f10(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f11(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f11(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f11(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f12(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f12(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f12(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = call @f13(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @f13(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
}
func.func private @f13(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = arith.addf %x, %x : tensor<2xf32>
  %1 = arith.addf %0, %x : tensor<2xf32>
  %2 = arith.addf %1, %x : tensor<2xf32>
  %3 = arith.addf %2, %x : tensor<2xf32>
  %4 = arith.addf %3, %x : tensor<2xf32>
  %5 = arith.addf %4, %x : tensor<2xf32>
  %6 = arith.addf %5, %x : tensor<2xf32>
  %7 = arith.addf %6, %x : tensor<2xf32>
  %8 = arith.addf %7, %x : tensor<2xf32>
  %9 = arith.addf %8, %x : tensor<2xf32>
  %10 = arith.addf %9, %x : tensor<2xf32>
  %11 = arith.addf %10, %x : tensor<2xf32>
  %12 = arith.addf %11, %x : tensor<2xf32>
  %13 = arith.addf %12, %x : tensor<2xf32>
  %14 = arith.addf %13, %x : tensor<2xf32>
  %15 = arith.addf %14, %x : tensor<2xf32>
  %16 = arith.addf %15, %x : tensor<2xf32>
  %17 = arith.addf %16, %x : tensor<2xf32>
  %18 = arith.addf %17, %x : tensor<2xf32>
  %19 = arith.addf %18, %x : tensor<2xf32>
  %20 = arith.addf %19, %x : tensor<2xf32>
  %21 = arith.addf %20, %x : tensor<2xf32>
  %22 = arith.addf %21, %x : tensor<2xf32>
  %23 = arith.addf %22, %x : tensor<2xf32>
  %24 = arith.addf %23, %x : tensor<2xf32>
  %25 = arith.addf %24, %x : tensor<2xf32>
  %26 = arith.addf %25, %x : tensor<2xf32>
  %27 = arith.addf %26, %x : tensor<2xf32>
  %28 = arith.addf %27, %x : tensor<2xf32>
  %29 = arith.addf %28, %x : tensor<2xf32>
  %30 = arith.addf %29, %x : tensor<2xf32>
  %31 = arith.addf %30, %x : tensor<2xf32>
  %32 = arith.addf %31, %x : tensor<2xf32>
  %33 = arith.addf %32, %x : tensor<2xf32>
  %34 = arith.addf %33, %x : tensor<2xf32>
  %35 = arith.addf %34, %x : tensor<2xf32>
  %36 = arith.addf %35, %x : tensor<2xf32>
  %37 = arith.addf %36, %x : tensor<2xf32>
  %38 = arith.addf %37, %x : tensor<2xf32>
  %39 = arith.addf %38, %x : tensor<2xf32>
  return %39 : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = call @f0(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
