// A value that is read twice, of values that are read twice, and so on: each is looked at once, where
// 2^64 ways lead to the first.
// RUN: %batch-opt %s --plan-kernels --lower-kernels | %FileCheck %s

!s = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>

// CHECK: func.func @powers
// CHECK-COUNT-64: arith.mulf
cfb.kernel @powers attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !s):
  %y1 = arith.mulf %x, %x : !s
  %y2 = arith.mulf %y1, %y1 : !s
  %y3 = arith.mulf %y2, %y2 : !s
  %y4 = arith.mulf %y3, %y3 : !s
  %y5 = arith.mulf %y4, %y4 : !s
  %y6 = arith.mulf %y5, %y5 : !s
  %y7 = arith.mulf %y6, %y6 : !s
  %y8 = arith.mulf %y7, %y7 : !s
  %y9 = arith.mulf %y8, %y8 : !s
  %y10 = arith.mulf %y9, %y9 : !s
  %y11 = arith.mulf %y10, %y10 : !s
  %y12 = arith.mulf %y11, %y11 : !s
  %y13 = arith.mulf %y12, %y12 : !s
  %y14 = arith.mulf %y13, %y13 : !s
  %y15 = arith.mulf %y14, %y14 : !s
  %y16 = arith.mulf %y15, %y15 : !s
  %y17 = arith.mulf %y16, %y16 : !s
  %y18 = arith.mulf %y17, %y17 : !s
  %y19 = arith.mulf %y18, %y18 : !s
  %y20 = arith.mulf %y19, %y19 : !s
  %y21 = arith.mulf %y20, %y20 : !s
  %y22 = arith.mulf %y21, %y21 : !s
  %y23 = arith.mulf %y22, %y22 : !s
  %y24 = arith.mulf %y23, %y23 : !s
  %y25 = arith.mulf %y24, %y24 : !s
  %y26 = arith.mulf %y25, %y25 : !s
  %y27 = arith.mulf %y26, %y26 : !s
  %y28 = arith.mulf %y27, %y27 : !s
  %y29 = arith.mulf %y28, %y28 : !s
  %y30 = arith.mulf %y29, %y29 : !s
  %y31 = arith.mulf %y30, %y30 : !s
  %y32 = arith.mulf %y31, %y31 : !s
  %y33 = arith.mulf %y32, %y32 : !s
  %y34 = arith.mulf %y33, %y33 : !s
  %y35 = arith.mulf %y34, %y34 : !s
  %y36 = arith.mulf %y35, %y35 : !s
  %y37 = arith.mulf %y36, %y36 : !s
  %y38 = arith.mulf %y37, %y37 : !s
  %y39 = arith.mulf %y38, %y38 : !s
  %y40 = arith.mulf %y39, %y39 : !s
  %y41 = arith.mulf %y40, %y40 : !s
  %y42 = arith.mulf %y41, %y41 : !s
  %y43 = arith.mulf %y42, %y42 : !s
  %y44 = arith.mulf %y43, %y43 : !s
  %y45 = arith.mulf %y44, %y44 : !s
  %y46 = arith.mulf %y45, %y45 : !s
  %y47 = arith.mulf %y46, %y46 : !s
  %y48 = arith.mulf %y47, %y47 : !s
  %y49 = arith.mulf %y48, %y48 : !s
  %y50 = arith.mulf %y49, %y49 : !s
  %y51 = arith.mulf %y50, %y50 : !s
  %y52 = arith.mulf %y51, %y51 : !s
  %y53 = arith.mulf %y52, %y52 : !s
  %y54 = arith.mulf %y53, %y53 : !s
  %y55 = arith.mulf %y54, %y54 : !s
  %y56 = arith.mulf %y55, %y55 : !s
  %y57 = arith.mulf %y56, %y56 : !s
  %y58 = arith.mulf %y57, %y57 : !s
  %y59 = arith.mulf %y58, %y58 : !s
  %y60 = arith.mulf %y59, %y59 : !s
  %y61 = arith.mulf %y60, %y60 : !s
  %y62 = arith.mulf %y61, %y61 : !s
  %y63 = arith.mulf %y62, %y62 : !s
  %y64 = arith.mulf %y63, %y63 : !s
  cfb.yield %y64 : !s
}
