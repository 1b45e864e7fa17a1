// What a kernel over calls cannot hold yet is refused at its place in the source, not miscompiled.
// RUN: %batch-opt %s --split-input-file --verify-diagnostics --plan-kernels --lower-kernels

!s = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>

// expected-error @below {{expected every result to begin with the dims of `rows`}}
cfb.kernel @rows attributes {unit = #cfb<unit calls>, lengths = [@n], rows = []} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !s):
  cfb.yield %x : !s
}

// -----

!half = tensor<?x4x?xf32, #ragged.shape<@batch, _, @n(@batch)>>
!whole = tensor<?x8x?xf32, #ragged.shape<@batch, _, @n(@batch)>>
!row = tensor<?x?xf32, #ragged.shape<@batch, @n(@batch)>>

cfb.kernel @across attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !half, %y: !half):
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{a concatenation that is read across its parts}}
  %both = tensor.concat dim(1) %x, %y : (!half, !half) -> !whole
  %d = tensor.dim %x, %c2 : !half
  %e = tensor.empty(%calls, %d) : !row
  %z = linalg.fill ins(%zero : f32) outs(%e : !row) -> !row
  %sum = linalg.reduce { arith.addf } ins(%both : !whole) outs(%z : !row) dimensions = [1]
  cfb.yield %sum : !row
}

// -----

!padded = tensor<?x?x6xf32, #ragged.shape<@batch, @n(@batch), _ pad 8>>

// expected-error @below {{padding of other storage than a call's rows of one dim}}
cfb.kernel @padded attributes {unit = #cfb<unit calls>, lengths = [@n], rows = [@n]} {
^bb0(%calls: index, %n: tensor<?xindex>, %x: !padded):
  cfb.yield %x : !padded
}
