// The `cfb` dialect: control flow over batched programs.

#ifndef COHORT_CFB_DIALECT_TD
#define COHORT_CFB_DIALECT_TD

include "mlir/IR/OpBase.td"

def Cfb_Dialect : Dialect {
  let name = "cfb";
  let cppNamespace = "::cohort::cfb";
  let summary = "control flow and structure of programs that run over many instances at once";
  let description = [{
    A program is written for one instance. This dialect holds what such a program needs beyond
    tensors (algebraic data types, arrays, decisions taken on tensors), the *blocks* its tensor code
    is gathered into, and the *kernels* and *records* those blocks become once batched.

    Structured values are flattened: a value of type `tuple<A, tuple<B, C>>` is three SSA values. A
    builtin `tuple` remains inside types (fields of an ADT, elements of an array), and *flattened
    element types* below means the types that remain when every tuple is taken apart.

    Every constraint of an operation has a number, `cfb_match_c2`. The verifier's message begins with
    it, and a test of that constraint cites it.

    #### Weights that are computed

    A tensor made of parameters and constants alone is a parameter that is not read from the weights
    file but computed once when that is loaded: an `ml_program.global` with the attribute
    `cfb.computed`, which names the kernel. Its `#ml_program.extern` stands for a value that comes
    from outside of the compiled code. It is read like any parameter. The kernel has no row operands
    and is called for one row; it may read parameters and weights that are computed before it, which
    are those declared before.

    - `cfb_computed_c1`: it is the attribute of an `ml_program.global` of tensor type.
    - `cfb_computed_c2`: it names a `cfb.kernel`, or what carries the attribute `cfb.kernel` that the
      lowering of kernels leaves; the latter is not checked further.
    - `cfb_computed_c3`: the kernel has no row operands, and yields one tensor, whose rows have the
      global's type.

    ```mlir
    cfb.kernel @compute_0 {
    ^bb0(%rows: index):
      %w = ml_program.global_load_const @w : tensor<3x4xf32>
      %e = tensor.empty() : tensor<4x3xf32>
      %t = linalg.transpose ins(%w : tensor<3x4xf32>) outs(%e : tensor<4x3xf32>) permutation = [1, 0]
      %re = tensor.empty(%rows) : tensor<?x4x3xf32>
      %r = linalg.broadcast ins(%t : tensor<4x3xf32>) outs(%re : tensor<?x4x3xf32>) dimensions = [0]
      cfb.yield %r : tensor<?x4x3xf32>
    }
    ml_program.global private @computed_0(#ml_program.extern<tensor<4x3xf32>>) : tensor<4x3xf32> {cfb.computed = @compute_0}
    ```

    #### Names of checkpoints

    A parameter may be stored by another name than its own. `cfb.stored` on its `ml_program.global` says
    by which: `name`, in which each `{}` stands for the numbers of one of the first axes, so that there is
    a tensor for each, and `transposed` where the last two axes of each tensor are swapped. A weights file
    that has no such tensor is asked for the parameter's own name.

    - `cfb_stored_c1`: it is the attribute of an `ml_program.global` of tensor type.
    - `cfb_stored_c2`: it is a dictionary of a string `name`, and perhaps the unit `transposed`.
    - `cfb_stored_c3`: the tensor has a dim for each `{}`, and two more where it is transposed.

    ```mlir
    ml_program.global public @wq(#ml_program.extern<tensor<6x4x4xf32>>) : tensor<6x4x4xf32> {cfb.stored = {name = "layer.{}.query.weight", transposed}}
    ```

    #### Words

    What says one of some words is an enum of the dialect, not a text: `unit`, `takes` and `reuse` of blocks and kernels,
    and of modules and functions `cfb.granularity`, `cfb.precision`, `cfb.rounding`, `cfb.gradients` and `cfb.gradient_helper`.
    It is written with its enum, `unit = #cfb<unit rows>`. The enums are listed at the end.

    - `cfb_words_c1`: an attribute of these names is of the enum of its name.

    #### Gradient functions

    The backward of a block is a function with the attribute `cfb.gradient`, a dictionary. It says what the function takes of
    a call (`arguments`) and gives (`results`), each a `#cfb.part`, and of which rows gradients of parameters are sums
    (`sites`). Or it says why there is none (`refused`).

    - `cfb_gradient_c1`: it is of `refused`, a text, alone; or `arguments` are operands, results, cotangents and addends, `results`
      operands and sites, and each of `sites` has a `parameter`, a symbol, and the factor `right`, and perhaps `left`,
      which are arguments or results of the function.

    ```mlir
    func.func private @f$gradient$0(tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32> attributes {cfb.gradient = {
      arguments = [#cfb.part<operand 0>, #cfb.part<cotangent 0>], results = [#cfb.part<operand 0>],
      sites = [{left = #cfb.part<argument 0>, right = #cfb.part<argument 1>, parameter = @w, offset = 0,
                shape = array<i64: 3, 4>, strides = array<i64: 4, 1>} ]}}
    ```
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif // COHORT_CFB_DIALECT_TD
