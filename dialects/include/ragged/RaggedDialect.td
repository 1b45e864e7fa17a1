// The `ragged` dialect: tensors whose rows differ in length, with little padding.

#ifndef COHORT_RAGGED_DIALECT_TD
#define COHORT_RAGGED_DIALECT_TD

include "mlir/IR/OpBase.td"

def Ragged_Dialect : Dialect {
  let name = "ragged";
  let cppNamespace = "::cohort::ragged";
  let summary = "tensors whose rows differ in length, and loops over them";
  let description = [{
    A batch of sequences is a tensor whose second dim has another length in every row. This dialect
    gives such a tensor a type, says how it is stored, and has the loops that run over it without
    running over padding. After CoRa (Fegade et al., "The CoRa Tensor Compiler", MLSys 2022).

    **Dims are identities.** `@seq(@batch)` names one *lengths function*: for every
    index of `@batch` a length. Two tensor dims, or a loop and a tensor dim, are known to be equally
    ragged because both are `@seq`, and for no other reason; values are never compared.

    **Types.** `tensor<?x?x512xf32, #ragged.shape<@batch, @seq(@batch), _>>` is a builtin tensor, so
    `linalg` and its fusions apply as they are. Its type says which dim is which, how its storage is
    padded, and how long a row can be. The *extent* of a row is its length with its padding.

    **Kernels are loops.** A `ragged.kernel` says what a kernel computes as stages, each with its loops,
    over memory that it declares; what CoRa requests of loops is an attribute of these stages. See
    `docs/decisions/0010-kernels-are-loops-before-they-are-code.md`.

    Every constraint has a number, `ragged_kernel_c2`. The verifier's message begins with it, and a
    test of that constraint cites it.
  }];
  let useDefaultAttributePrinterParser = 1;
  // Kernels keep the words of blocks.
  let dependentDialects = ["::cohort::cfb::CfbDialect"];
}

#endif // COHORT_RAGGED_DIALECT_TD
