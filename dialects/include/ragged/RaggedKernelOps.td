// The loop level: a kernel as loop nests, products, folds and packing over memory.

#ifndef COHORT_RAGGED_KERNEL_OPS_TD
#define COHORT_RAGGED_KERNEL_OPS_TD

include "ragged/RaggedOpBase.td"

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Ragged_Element : AnyTypeOf<[F32, I32, I1], "f32, i32 or i1">;

// What can be said of a type of memory alone.
class Ragged_MemoryOf<string condition, string description>
    : Type<And<[MemRefOf<[F32, I32, I1]>.predicate, CPred<condition>]>, description, "::mlir::MemRefType">;

def Ragged_RowMemory : Ragged_MemoryOf<"::cohort::ragged::isRowMemory($_self)",
    "memory of rows or calls, a memref whose first dim is dynamic">;
def Ragged_SharedMemory : Ragged_MemoryOf<"::cohort::ragged::isSharedMemory($_self)",
    "memory that all rows share, a memref of static shape">;
def Ragged_Memory : Ragged_MemoryOf<
    "::cohort::ragged::isRowMemory($_self) || ::cohort::ragged::isSharedMemory($_self)",
    "memory of rows or memory that all rows share">;

def Ragged_KernelOp : Ragged_Op<"kernel", [
    IsolatedFromAbove, SingleBlock, NoTerminator, NoRegionArguments,
    DeclareOpInterfaceMethods<Symbol, ["canDiscardOnUseEmpty"]>]> {
  let summary = "a kernel over rows, as loops";
  let description = [{
    What `cfb.kernel` says of tensors, said of memory and of the order in which things are done. First
    come the declarations of the memory that the kernel touches: its operands and results in order, the
    parameters and constants in the order of the table that its function gets, and scratch. Then come
    the stages that run once a call, for what all rows share, and at the end `ragged.blocks` with those
    that run for every block of rows. Stages run in the order of the text and talk through memory.
    A per-instance kernel has `ragged.calls` instead, with the stages of every call.

    `row_products` are pairs, an operand and the floating-point operations of a product with it a row.
    The attributes that a `cfb.kernel` has for its calls (`lengths`, `unit`, `rows`, `takes`) stay, and `source`.

    In a `gpu.module` a row-wise kernel is a list of launches: `ragged.blocks` and `ragged.tiles` are one each, and
    so are the stages between two of them, which run once. Those that run side by side are in a `ragged.wave`.

    - `ragged_kernel_c1`: the region has declarations and stages and ends in `ragged.blocks`, or has
      declarations and ends in `ragged.calls`; in a `gpu.module` it has declarations, launches and waves of them.
    - `ragged_kernel_c2`: stages that run once a call, in a wave or not, touch no memory of rows.

    ```mlir
    ragged.kernel @main_0 {
      %x = ragged.operand row : memref<?x4xf32>
      %r = ragged.result : memref<?x4xf32>
      %w = ragged.param @w panels 32 : memref<4x4xf32>
      %s = ragged.scratch products 1 : memref<?x16xf32>
      ragged.blocks of 96 tile 12 {
        ragged.product %x (d0) -> (0) rows 1 k 4 columns 4 with %w row 0 into %s tile 12
            : memref<?x4xf32>, memref<4x4xf32>, memref<?x16xf32>
        ragged.nest over [4] lanes 0 by 16 {
          %0 = ragged.load %s (d0) -> (d0) : memref<?x16xf32>
          %1 = math.tanh %0 : f32
          ragged.store %1, %r (d0) -> (d0) : memref<?x4xf32>
        }
      }
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<DenseI64ArrayAttr>:$row_products,
    OptionalAttr<ArrayAttr>:$lengths,
    OptionalAttr<Cfb_KernelUnitAttr>:$unit,
    OptionalAttr<ArrayAttr>:$rows,
    OptionalAttr<Cfb_TakesArrayAttr>:$takes,
    OptionalAttr<StrAttr>:$source
  );
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name (`row_products` $row_products^)? attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

// A declaration belongs to a kernel.
class Ragged_Declaration<string mnemonic>
    : Ragged_Op<mnemonic, [HasParent<"::cohort::ragged::KernelOp">]>;

def Ragged_OperandOp : Ragged_Declaration<"operand"> {
  let summary = "an operand of a kernel";
  let description = [{
    `row`: the record's row, found through the operand's index. `list`: for every row any number of
    rows, which only `ragged.fold_list` reads. `scalar`: a scalar of the host. `length`, `expanded` and
    `stacked` are of kernels with `lengths`: a length, the rows of a tensor of that length, and an array
    of handles.

    The first dim of the memory counts rows; of a per-instance kernel it counts calls, and dims of a call
    that are as long as one of the kernel's `lengths` are dynamic and named by `of`, in order.

    - `ragged_operand_c1`: `of` names a length of the kernel for each dynamic dim behind the first, which
      only `expanded` operands of per-instance kernels have.

    ```mlir
    %x = ragged.operand row : memref<?x28xf32>
    %y = ragged.operand expanded of [@n] : memref<?x?x28xf32>
    ```
  }];
  let arguments = (ins Ragged_OperandKind:$kind, OptionalAttr<FlatSymbolRefArrayAttr>:$dims);
  let results = (outs Ragged_RowMemory:$memory);
  let assemblyFormat = "$kind (`of` $dims^)? attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def Ragged_ResultOp : Ragged_Declaration<"result"> {
  let summary = "a result of a kernel";
  let description = [{
    Its rows lie one after another. The dims of a call are named as those of an operand.

    - `ragged_result_c1`: `of` names a length of the kernel for each dynamic dim behind the first, which
      only results of per-instance kernels have.

    ```mlir
    %h = ragged.result : memref<?x28xf32>
    %g = ragged.result of [@n] : memref<?x?x28xf32>
    ```
  }];
  let arguments = (ins OptionalAttr<FlatSymbolRefArrayAttr>:$dims);
  let results = (outs Ragged_RowMemory:$memory);
  let assemblyFormat = "(`of` $dims^)? attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def Ragged_ParamOp : Ragged_Declaration<"param"> {
  let summary = "a parameter in memory";
  let description = [{
    As it is, or packed when the weights are loaded: with `panels 32` the columns lie in panels of 32,
    each row after row, padded with zeros; with `panels 1` column after column. Packed numbers that are kept in
    `bf16` are rounded once, when they are packed, and have half the bytes; products widen them, and compute in `f32`.

    - `ragged_param_c1`: `panels` is 32 or 1, of a parameter of `f32` with at least two dims.
    - `ragged_param_c2`: what is kept in `bf16` is packed.

    ```mlir
    %w = ragged.param @w panels 32 : memref<28x140xf32>
    %v = ragged.param @v panels 32 bf16 : memref<28x140xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, OptionalAttr<I64Attr>:$panels, UnitAttr:$bf16);
  let results = (outs Ragged_SharedMemory:$memory);
  let assemblyFormat = "$param (`panels` $panels^)? (`bf16` $bf16^)? attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def Ragged_ConstantOp : Ragged_Declaration<"constant"> {
  let summary = "a constant in memory";
  let description = [{
    - `ragged_constant_c1`: the value has the shape and the element type of the memory.

    ```mlir
    %c = ragged.constant dense<[1.0, 2.0]> : tensor<2xf32> : memref<2xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Ragged_SharedMemory:$memory);
  let assemblyFormat = "$value attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def Ragged_ScratchOp : Ragged_Declaration<"scratch"> {
  let summary = "scratch memory";
  let description = [{
    A row for each row of a block, or one part for the whole call. Where it lies is found when the
    kernel is lowered: memory of rows that no stage needs at the same time is shared. `products N` says
    that products write it, N of their rows a row of the kernel: there is room for whole row tiles.

    In a `gpu.module` scratch of rows that is `on_chip` is in a block's shared memory, for the stages of one
    `ragged.blocks`; other scratch is in the memory of the device. Rows that are kept in `bf16` are rounded once, when they
    are stored, and have half the bytes; products whose factors are rounded to it read them as they are.

    - `ragged_scratch_c1`: `products` is at least one and divides the elements of a row.
    - `ragged_scratch_c2`: a row is of static shape.
    - `ragged_scratch_c3`: what is `on_chip` is memory of rows of a kernel in a `gpu.module`, and only the stages of one
      `ragged.blocks` touch it.
    - `ragged_scratch_c4`: what is kept in `bf16` is rows of `f32`, of a multiple of 8 elements, in the memory of the device.
      Only products read it, and only stores write it.

    ```mlir
    %s = ragged.scratch products 1 : memref<?x144xf32>
    %r = ragged.scratch bf16 : memref<?x512xf32>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$products, UnitAttr:$on_chip, UnitAttr:$bf16);
  let results = (outs Ragged_Memory:$memory);
  let assemblyFormat = "(`products` $products^)? (`on_chip` $on_chip^)? (`bf16` $bf16^)? attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Scalars of a stage
//===----------------------------------------------------------------------===//

def Ragged_LoadOp : Ragged_Op<"load", [
    TypesMatchWith<"the value is an element of the memory", "memory", "value",
                   "::cohort::ragged::getElement($_self)">]> {
  let summary = "an element of a row";
  let description = [{
    The map takes the index of the stage's loops to the element's number within the row, counted in the
    order of the memory. A scalar of the host has one. In a per-instance kernel, where how far elements lie
    apart differs from call to call, the map gives an index for each dim instead, and along a dim that is
    as long as a length it is the index of a loop of that length.

    - `ragged_load_c1`: the map takes an index for each loop, gives one number, and is linear; in a
      per-instance kernel it gives one for each dim behind the first.
    - `ragged_load_c2`: no index leads out of the row, or of the dim.
    - `ragged_load_c3`: the memory is neither a list nor a packed parameter.

    ```mlir
    %v = ragged.load %x (d0, d1) -> (d0 * 28 + d1) : memref<?x4x28xf32>
    %u = ragged.load %y (d0, d1) -> (d0, d1) : memref<?x?x28xf32>
    ```
  }];
  let arguments = (ins Ragged_Memory:$memory, AffineMapAttr:$address);
  let results = (outs Ragged_Element:$value);
  let assemblyFormat = "$memory custom<Rule>($address) attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def Ragged_StoreOp : Ragged_Op<"store", [
    ParentOneOf<["::cohort::ragged::NestOp", "::cohort::ragged::TilesOp"]>,
    TypesMatchWith<"the value is an element of the memory", "memory", "value",
                   "::cohort::ragged::getElement($_self)">]> {
  let summary = "writes an element of a row";
  let description = [{
    - `ragged_store_c1`: the map takes an index for each loop, gives one number, and is linear; in a
      per-instance kernel it gives one for each dim behind the first.
    - `ragged_store_c2`: no index leads out of the row, or of the dim.
    - `ragged_store_c3`: the memory is a result or scratch.
    - `ragged_store_c4`: to what is kept in `bf16`, a nest `by 4` stores, or a tile that is rounded, 4 aligned neighbours at once.

    ```mlir
    ragged.store %v, %r (d0, d1) -> (d0 * 28 + d1) : memref<?x4x28xf32>
    ```
  }];
  let arguments = (ins Ragged_Element:$value, Ragged_Memory:$memory, AffineMapAttr:$address);
  let assemblyFormat = "$value `,` $memory custom<Rule>($address) attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def Ragged_IndexOp : Ragged_Op<"index", [Pure, HasParent<"::cohort::ragged::LoopsOp">]> {
  let summary = "the index of a loop";
  let description = [{
    - `ragged_index_c1`: there is such a loop.

    ```mlir
    %i = ragged.index 0 : i64
    ```
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs I64:$value);
  let assemblyFormat = "$dim attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Ragged_PositionOp : Ragged_Op<"position", [Pure]> {
  let summary = "an index as a number";
  let description = [{
    What the map makes of the loops around, in stages of per-instance kernels.

    - `ragged_position_c1`: it is computed for a call; the map takes an index for each loop, gives one
      number, and is linear.

    ```mlir
    %i = ragged.position (d0, d1) -> (d0 + 1) : i32
    ```
  }];
  let arguments = (ins AffineMapAttr:$address);
  let results = (outs I32:$value);
  let assemblyFormat = "custom<Rule>($address) attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Ragged_ReduceOp : Ragged_Op<"reduce", [
    SingleBlock,
    TypesMatchWith<"the start is an element of the result", "result", "start", "$_self">]> {
  let summary = "a fold where its result is needed";
  let description = [{
    A value of a per-instance kernel: the start, into which values are folded for each index of the
    loops, which come behind those around. It is computed in the outermost loop that has the indices
    which it depends on, whatever its place in the text. The last operation combines what was folded, its first operand, with
    the value. A sum of products is made of fused multiply-adds. Where the loop that runs in vectors is
    one that it depends on, each lane folds by itself; else each lane folds every sixteenth value along the
    last loop, and then the lanes are folded together.

    - `ragged_reduce_c1`: the loops have lengths of at least one, or lengths of the kernel.
    - `ragged_reduce_c2`: it is computed for a call.
    - `ragged_reduce_c3`: the region ends in a combining operation of `arith` whose first operand is the
      region's argument, which nothing else uses.

    ```mlir
    %sum = ragged.reduce over [@n] from %zero : f32 {
    ^bb0(%folded: f32):
      %a = ragged.load %x (d0, d1) -> (d1, d0) : memref<?x?x28xf32>
      %next = arith.addf %folded, %a : f32
      ragged.yield %next : f32
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$over, OptionalAttr<FlatSymbolRefArrayAttr>:$dims,
                       Ragged_Element:$start);
  let results = (outs Ragged_Element:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `over` custom<Extents>($over, $dims) `from` $start attr-dict `:` type($result) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

def Ragged_Constraints : Attr<
    CPred<"::llvm::isa<::mlir::IntegerSetAttr>($_self)">, "constraints of lengths"> {
  let storageType = "::mlir::IntegerSetAttr";
  let returnType = "::mlir::IntegerSet";
  let convertFromStorage = "$_self.getValue()";
}

def Ragged_CallsOp : Ragged_Op<"calls", [
    HasParent<"::cohort::ragged::KernelOp">, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "the stages of a call";
  let description = [{
    The stages of a per-instance kernel, which run for one call after another. A dim of a call is as long
    as a number says or as one of the kernel's `lengths` is for the call.

    With `split`, loops of unknown length have a main part of whole vectors and tiles, without masks, and a
    tail. With `hoisted`, a call's lengths and first rows are read once, before its loops, rather than at
    each use. With `grain`, a call's first dim may be divided into work items for threads: one begins at a
    multiple of this many rows, and what each of them repeats costs as much as `shared` more rows. `flops` are
    the operations of the products of a call, each the product of lengths and numbers; those that are
    `rising` grow with the row. `padding` says of what the rows of a call's results, and those of all
    calls together, are multiples.

    No index leads out of a dim of a call, whatever its lengths: those of its loops make a least index, which is
    not negative, and a largest, which is less than the dim's size. Both are sums of lengths. Where they hold for
    some lengths only, as where a part of known size is stored into a dim as long as a length, `given` says for
    which: constraints of the kernel's lengths, in their order, which whoever calls has seen to.

    - `ragged_calls_c1`: `split` is 16, the elements of a vector.
    - `ragged_calls_c2`: `grain` is from 1 to 65536 rows of a call whose first dim is a length, and
      `shared` is at least 0.
    - `ragged_calls_c3`: `flops` are lengths of the kernel and numbers, and `rising` numbers of them.
    - `ragged_calls_c4`: `padding` has two numbers of at least one.
    - `ragged_calls_c5`: the region has stages of a call, and waves of them, only.
    - `ragged_calls_c6`: `given` are linear constraints, each of one of the kernel's lengths at least.

    ```mlir
    ragged.calls split 16 hoisted grain 16 shared 0 {
      ragged.nest over [@n] {
        %zero = arith.constant 0.0 : f32
        %sum = ragged.reduce over [28] from %zero : f32 { … }
        ragged.store %sum, %r (d0) -> (d0) : memref<?x?xf32>
      }
    }
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$split, UnitAttr:$hoisted, OptionalAttr<I64Attr>:$grain,
                       OptionalAttr<I64Attr>:$shared, OptionalAttr<ArrayAttr>:$flops,
                       OptionalAttr<DenseI64ArrayAttr>:$rising,
                       OptionalAttr<DenseI64ArrayAttr>:$padding, OptionalAttr<Ragged_Constraints>:$given);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    (`split` $split^)? (`hoisted` $hoisted^)? (`grain` $grain^ `shared` $shared)? (`flops` $flops^)?
    (`rising` $rising^)? (`padding` $padding^)? (`given` $given^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Ragged_BlocksOp : Ragged_Op<"blocks", [
    ParentOneOf<["::cohort::ragged::KernelOp", "::cohort::ragged::WaveOp"]>, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "the stages of a block of rows";
  let description = [{
    The rows of a launch are processed in blocks `of` at most this many rows. All stages run over one block
    before the next one begins, so that scratch stays in the cache. Each thread gets a multiple of `tile`
    rows, except the last one. On a GPU a block is one of the grid: its threads deal what each stage computes among
    them, and meet at a barrier after it.

    Where the rows are those of calls of differing length, `fused` makes the loop over calls and the one over the rows of
    a call one loop, over the rows of all calls; without it a block has rows of one call only. On a GPU they are always
    one.

    - `ragged_blocks_c1`: `of` is from 1 to 65536.
    - `ragged_blocks_c2`: `tile` is from 1 to 65536.
    - `ragged_blocks_c3`: the region has stages only.
    - `ragged_blocks_c4`: `fused` are rows of a kernel with `lengths`.
  }];
  let arguments = (ins UnitAttr:$fused, I64Attr:$of, I64Attr:$tile);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`fused` $fused^)? `of` $of `tile` $tile attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Ragged_WaveOp : Ragged_Op<"wave", [
    ParentOneOf<["::cohort::ragged::KernelOp", "::cohort::ragged::CallsOp"]>,
    SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "launches that run side by side";
  let description = [{
    Independent launches of a GPU kernel, which may run concurrently and in any order: their blocks are scheduled
    together, and whatever follows the wave waits for all of them. In a row-wise kernel a launch is what it is
    outside of a wave; in a per-instance one it is a stage, with the stages after it that accumulate `onto` its sums.

    - `ragged_wave_c1`: it is in a `gpu.module`, and has two launches or more.
    - `ragged_wave_c2`: no launch touches memory that another one of the wave writes.

    ```mlir
    ragged.wave {
      ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 4096 { … ragged.store %3, %q … }
      ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 4096 { … ragged.store %5, %v … }
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

class Ragged_Stage<string mnemonic, list<Trait> traits = []>
    : Ragged_Op<mnemonic, !listconcat([
        ParentOneOf<["::cohort::ragged::KernelOp", "::cohort::ragged::BlocksOp",
                     "::cohort::ragged::CallsOp", "::cohort::ragged::WaveOp"]>], traits)>;

// A stage that computes scalars for each index of its loops.
class Ragged_LoopStage<string mnemonic, list<Trait> traits = [SingleBlock]>
    : Ragged_Stage<mnemonic, traits> {
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Ragged_NestOp : Ragged_LoopStage<"nest", [
    SingleBlockImplicitTerminator<"::cohort::ragged::YieldOp">, NoRegionArguments]> {
  let summary = "a loop nest over dims, for every row";
  let description = [{
    Loops of the given lengths, outermost first, around scalar operations of `arith` and `math`. What is
    stored does not depend on the order: nothing that is stored is loaded. `lanes` is the vectorized loop
    and `by` its step: `by 32` processes two independent vectors per iteration.

    `across_rows` says that the lanes of a vector are sixteen rows, each of which runs the loops: where a row has only a
    few elements. A row gives the same bits in any lane.

    On a GPU each thread computes `by` neighbours along the last loop, which are loaded and stored at once where they
    lie side by side.

    In `ragged.calls` a loop may be as long as a length of the kernel, `over [@n, 28]`, and the region
    stores one value.

    - `ragged_nest_c1`: the loops have lengths of at least one, and fewer than 2^63 iterations; or, in
      `ragged.calls`, lengths of the kernel.
    - `ragged_nest_c2`: along `lanes` all is stored to neighbouring elements.
    - `ragged_nest_c3`: `by` is 16, or 32 where the loop has as many iterations and all that is loaded
      along it is one element or neighbouring ones; for a GPU it is 1, 2 or 4 and divides the last loop, there are no
      `lanes`.
    - `ragged_nest_c4`: the region computes with `arith` and `math`, and yields nothing.
    - `ragged_nest_c5`: in `ragged.calls` the region has one store, its last operation.
    - `ragged_nest_c6`: `across_rows` is a stage of `ragged.blocks` for the CPU, there are no `lanes`, and `by` is 16.
  }];
  let arguments = (ins DenseI64ArrayAttr:$over, OptionalAttr<FlatSymbolRefArrayAttr>:$dims,
                       OptionalAttr<I64Attr>:$lanes, DefaultValuedAttr<I64Attr, "16">:$by,
                       UnitAttr:$across_rows);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `over` custom<Extents>($over, $dims) (`lanes` $lanes^)? (`by` $by^)? (`across_rows` $across_rows^)?
    attr-dict-with-keyword $body
  }];
}

def Ragged_FoldOp : Ragged_LoopStage<"fold"> {
  let summary = "a fold over some of the dims";
  let description = [{
    For each index of the kept loops the start, into which the step folds a value for each index of the
    others, in their order. The step's last operation combines what was folded, its first operand, with
    the value. A sum of products is made of fused multiply-adds.

    `lanes` is the loop that runs in vectors. If it is the last of those that are kept, each lane folds by
    itself, `vectors` of them at once; if it is one that is folded, each lane folds every sixteenth value,
    then the lanes are folded together, so results differ in rounding between the two. `neighbours`
    results along the last other kept loop are folded at once, to share what they load. `across_rows` says that each lane
    folds a row of its own, in the order of the loops.

    On a GPU `lanes`, a folded loop, says that a warp folds each result, a lane every 32nd of the folded values, and that
    one thread folds what the lanes have; without it a thread folds each result. `vectors` are the neighbours along
    the last loop that a thread takes at once.

    - `ragged_fold_c1`: the loops have lengths of at least one, and fewer than 2^63 iterations.
    - `ragged_fold_c2`: the folded loops are among them, in rising order.
    - `ragged_fold_c3`: `lanes` is the last kept loop or one that is folded.
    - `ragged_fold_c4`: `vectors` and `neighbours` are from 1 to 8; for a GPU `vectors` is 1, 2 or 4 and divides the last
      loop, which is folded if there are more than one, and `neighbours` is 1.
    - `ragged_fold_c5`: the step ends in a combining operation of `arith` whose first operand is the
      region's argument, which nothing else uses.
    - `ragged_fold_c6`: the result's map takes the kept loops to an element, and none to outside of the
      row; along a kept `lanes` results are neighbours.
    - `ragged_fold_c7`: `across_rows` is a stage of `ragged.blocks` for the CPU, and there are no `lanes`.

    ```mlir
    ragged.fold over [4, 28] folding [1] into %s (d0) -> (d0) lanes 1 neighbours 4 : memref<?x16xf32> from {
      %zero = arith.constant 0.0 : f32
      ragged.yield %zero : f32
    } by {
    ^bb0(%sum: f32):
      %a = ragged.load %x (d0, d1) -> (d0 * 28 + d1) : memref<?x4x28xf32>
      %next = arith.addf %sum, %a : f32
      ragged.yield %next : f32
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$over, DenseI64ArrayAttr:$folding, Ragged_Memory:$memory,
                       AffineMapAttr:$address, OptionalAttr<I64Attr>:$lanes,
                       DefaultValuedAttr<I64Attr, "1">:$vectors,
                       DefaultValuedAttr<I64Attr, "1">:$neighbours, UnitAttr:$across_rows);
  let regions = (region SizedRegion<1>:$start, SizedRegion<1>:$step);
  let assemblyFormat = [{
    `over` $over `folding` $folding `into` $memory custom<Rule>($address) (`lanes` $lanes^)?
    (`vectors` $vectors^)? (`neighbours` $neighbours^)? (`across_rows` $across_rows^)? attr-dict `:` type($memory)
    `from` $start `by` $step
  }];
}

def Ragged_FoldListOp : Ragged_LoopStage<"fold_list"> {
  let summary = "a fold of a list's rows";
  let description = [{
    For every row, the rows of its list are folded element by element, one after another, from the start
    on. The step takes what was folded and the list's element. The last loop is vectorized, and `vectors`
    vectors are accumulated in registers per pass over the list. On a GPU each thread folds `vectors` neighbours along
    the last loop.

    - `ragged_fold_list_c1`: the loops are those of the list's rows and have lengths of at least one.
    - `ragged_fold_list_c2`: `vectors` is from 1 to 8; for a GPU it is 1, 2 or 4 and divides the last loop.
    - `ragged_fold_list_c3`: the memory is an operand that is a list.
    - `ragged_fold_list_c4`: the start yields, and the step takes twice and yields, an element.
    - `ragged_fold_list_c5`: the result's map takes the loops to an element, and none to outside of the
      row; along the last loop results are neighbours.
  }];
  let arguments = (ins DenseI64ArrayAttr:$over, Ragged_RowMemory:$list, Ragged_Memory:$memory,
                       AffineMapAttr:$address, DefaultValuedAttr<I64Attr, "1">:$vectors);
  let regions = (region SizedRegion<1>:$start, SizedRegion<1>:$step);
  let assemblyFormat = [{
    $list `over` $over `into` $memory custom<Rule>($address) (`vectors` $vectors^)? attr-dict
    `:` type($list) `,` type($memory) `from` $start `by` $step
  }];
}

def Ragged_LoopsOp : Ragged_LoopStage<"loops"> {
  let summary = "loops that are run as they are written";
  let description = [{
    One index after another, for what no other stage computes, such as the index of the largest element.
    The step takes what was folded for each result and yields the next; of those that are `stored`, each
    is written where its map says. The starts' maps and those of results see folded loops at 0.

    - `ragged_loops_c1`: the loops have lengths of at least one, and fewer than 2^63 iterations.
    - `ragged_loops_c2`: the folded loops are among them, in rising order.
    - `ragged_loops_c3`: the start yields, and the step takes and yields, one element for each result.
    - `ragged_loops_c4`: there is one map and one number of a result for each memory, and no index leads
      out of a row.
  }];
  let arguments = (ins DenseI64ArrayAttr:$over, DenseI64ArrayAttr:$folding,
                       Variadic<Ragged_Memory>:$memories, AffineMapArrayAttr:$addresses,
                       DenseI64ArrayAttr:$stored);
  let regions = (region SizedRegion<1>:$start, SizedRegion<1>:$step);
  let assemblyFormat = [{
    `over` $over `folding` $folding `stored` $stored `into` $memories $addresses attr-dict
    `:` type($memories) `from` $start `by` $step
  }];
}

def Ragged_PackPanelsOp : Ragged_LoopStage<"pack_panels", [SingleBlock, NoRegionArguments]> {
  let summary = "packs a computed weight";
  let description = [{
    The region yields the element of the weight at an index of its rows and columns. The memory gets it in
    panels of 32 columns, each row after row, padded with zeros.

    - `ragged_pack_panels_c1`: there are two loops, and the memory has room for whole panels.
    - `ragged_pack_panels_c2`: the region yields an `f32`.
  }];
  let arguments = (ins DenseI64ArrayAttr:$over, Ragged_SharedMemory:$memory);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`over` $over `into` $memory attr-dict `:` type($memory) $body";
}

def Ragged_ProductOp : Ragged_Op<"product", [HasParent<"::cohort::ragged::BlocksOp">]> {
  let summary = "a product of rows with a shared matrix";
  let description = [{
    `rows` of the left matrix a row of the kernel, each `k` neighbouring elements from where the map of
    its number says; the right one is packed and is read from its row `row` on. The result's rows are
    padded to whole vectors. It starts from zero; or, with `from`, from elements that are the same for
    all rows; or, with `onto`, from what the memory holds.

    `tile` is how many rows the largest micro-kernel computes at once. Every element is its start, then
    one multiply-add for each `k` in order, whatever the tile.

    - `ragged_product_c1`: `tile` is 1, 2, 4, 6, 8 or 12; with panels of one column it is 4.
    - `ragged_product_c2`: `rows`, `k` and `columns` are at least one.
    - `ragged_product_c3`: the left map takes the number of a row to its first element, and none leads out
      of the row.
    - `ragged_product_c4`: the right matrix is a parameter in panels with `columns` columns and at least
      `row + k` rows, or scratch that `ragged.pack_panels` packs to this size.
    - `ragged_product_c5`: the result is scratch for products, with `rows` rows and `columns` padded to whole panels.
    - `ragged_product_c6`: `from` is shared memory with at least `columns` elements from its offset on, and excludes
      `onto`.
    - `ragged_product_c7`: the elements are `f32`.
  }];
  let arguments = (ins Ragged_Memory:$left, AffineMapAttr:$address, I64Attr:$rows, I64Attr:$k,
                       I64Attr:$columns, Ragged_SharedMemory:$right, I64Attr:$row,
                       Optional<Ragged_SharedMemory>:$start, OptionalAttr<I64Attr>:$offset,
                       UnitAttr:$onto, Ragged_RowMemory:$memory, I64Attr:$tile);
  let assemblyFormat = [{
    $left custom<Rule>($address) `rows` $rows `k` $k `columns` $columns `with` $right `row` $row
    (`from` $start^ `+` $offset)? (`onto` $onto^)? `into` $memory `tile` $tile attr-dict
    `:` type($left) `,` type($right) `,` type($memory) (`,` type($start)^)?
  }];
  let hasVerifier = 1;
}

def Ragged_TilesOp : Ragged_Op<"tiles", [
    ParentOneOf<["::cohort::ragged::KernelOp", "::cohort::ragged::WaveOp"]>,
    SingleBlockImplicitTerminator<"::cohort::ragged::YieldOp">, NoRegionArguments]> {
  let summary = "products on tiles, and what is made of their sums, on a GPU";
  let description = [{
    One launch, over rows and columns: the last loop counts columns, those before it rows of each row of the
    kernel. The region computes what is stored at one index of the loops. Its sums of products are those of
    `ragged.products`, of which each thread holds a tile in registers, and it computes scalars of them as a nest does.

    A block has 128 threads, four warps, and one of two sizes: the `large` one of launches of at least `from` rows of
    the kernel, the `small` one of others. A size is four numbers: the rows and the columns of each sum that a thread has, how
    many terms of both sides are in shared memory at once, while the next as many are copied, and how many warps lie side
    by side along the columns. In f32 a warp has the thread's rows, and its 32 lanes neighbouring columns.

    A tile that is rounded may have a third size, the `largest`, of launches of at least as many rows as are `above`. It has
    two more numbers: the warps of a block, and how many times as many terms are in shared memory or on their way.

    A tile that is `resident` has one more size, for flushes that are one launch: its weights come to shared memory once and
    stay there for all levels. Its three numbers are the columns of each sum that a block has, how many terms of the rows are in
    shared memory at once, and how many times as many are on their way or there. A thread has one row and one column. An optional
    fourth number is the byte offset of the weights in the flush's shared memory; the buffers of rows are then at offset 0.

    One that is also `clustered` has such a size for clusters of 16 blocks too, each of which computes instances of its own. Where
    more than 8 of these blocks have columns, a thread has a second row if there are more rows than for one each.

    `rounded` to `tf32` or `bf16`, factors are multiplied by tensor cores: a warp has 8 times a thread's rows and 4
    times its columns. With `weights`, the right sides are parameters that are rounded when they are loaded.

    A tile whose rows are kept in `bf16` and whose weights are rounded to it may have a size for cards whose warpgroups multiply
    (sm_90a), of launches of at least as many rows as it is `from`. Its three numbers are the warpgroups of a block, of which each has
    64 rows, the columns of each sum that a block has, and how many times 64 terms are in shared memory or on their way.
    Where they have `held` weights, those of a block's columns are in shared memory from its beginning to its end. The block goes on to
    further rows at a stride of the grid, of which each warpgroup computes 64 by itself; its 64 terms are of rows alone.

    - `ragged_tiles_c1`: it is in a `gpu.module`, and the loops have lengths of at least one and fewer than 2^31 iterations.
    - `ragged_tiles_c2`: a thread has 1 to 16 rows and 1, 2 or 4 columns, one warp lies beside another's rows, and the terms
      are 4 to 64, a multiple of 4. Rounded it has 2 to 8 rows and 2 to 16 columns, both even, of 1, 2 or 4 warps,
      and the terms are a multiple of 8, of 16 for `bf16`.
    - `ragged_tiles_c3`: all sums of a thread together are at most 512.
    - `ragged_tiles_c4`: `from` is at least 1, and `above` no less. The `largest` size is of a tile that is rounded, and has
      4 or 8 warps and 2 to 4 times as many terms.
    - `ragged_tiles_c5`: the region has from one to 8 sums that are stored or computed with, and computes with `arith` and `math`.
    - `ragged_tiles_c6`: `rounded` is `tf32` or `bf16`, and `weights` are of a parameter each.
    - `ragged_tiles_c7`: where it is `resident`, it is not rounded and has one loop. A block has 4, 8, 16 or 32 columns, of which
      the tile's are a multiple, 16, 32 or 64 terms and 2 to 4 times as many. All sums are of parameters whose terms are
      multiples of that and are filled to no more by the other sizes, and of rows that are copied by 4 elements. The same
      holds of `clustered`, of whose columns the tile has at most 16 times as many.
    - `ragged_tiles_c8`: `warpgroups` are of a tile that is rounded to `bf16`, with `weights`, whose rows are kept in it. They are 1
      to 3, with a multiple of 8 columns, at most 256 of all sums together, and 2 to 4 times 64 terms; or 4 with at most 128 columns,
      whose weights are `held`. Other sizes fill terms to no more, and it is `from` at least 1 row.

    ```mlir
    ragged.tiles over [28] small [2, 1, 16, 1] large [8, 2, 16, 1] from 512 {
      %0 = ragged.load %b (d0) -> (d0) : memref<56xf32>
      %1 = ragged.load %b (d0) -> (d0 + 28) : memref<56xf32>
      %2:2 = ragged.products %x () -> (0) with %w (d0, d1) -> (d0 * 56 + d1) k 32 columns 56 gates [0, 28]
          copies [4, 4, 4] from %0, %1 : memref<?x32xf32>, memref<32x56xf32>, f32, f32 -> f32, f32
      %3 = arith.mulf %2#0, %2#1 : f32
      ragged.store %3, %r (d0) -> (d0) : memref<?x28xf32>
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$over, DenseI64ArrayAttr:$small, DenseI64ArrayAttr:$large, I64Attr:$from,
                       OptionalAttr<DenseI64ArrayAttr>:$largest, OptionalAttr<I64Attr>:$above,
                       OptionalAttr<DenseI64ArrayAttr>:$warpgroups, OptionalAttr<I64Attr>:$grouped_from, UnitAttr:$held,
                       OptionalAttr<DenseI64ArrayAttr>:$resident, OptionalAttr<DenseI64ArrayAttr>:$clustered,
                       OptionalAttr<Cfb_PrecisionAttr>:$rounded, UnitAttr:$weights);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `over` $over `small` $small `large` $large `from` $from (`largest` $largest^ `from` $above)?
    (`warpgroups` $warpgroups^ `from` $grouped_from)? (`held` $held^)? (`resident` $resident^)? (`clustered` $clustered^)? (`rounded` `` $rounded^)? (`weights` $weights^)?
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Ragged_ProductsOp : Ragged_Op<"products", [HasParent<"::cohort::ragged::TilesOp">]> {
  let summary = "sums of products of a tile";
  let description = [{
    For each gate, which is a range of a product's columns from its number on and as wide as the tile, the start and then one
    multiply-add for each of `k` terms in order. The left map takes the loops before the columns to the first of `k`
    neighbouring elements, the right one a term and a column of the product, of which there are `columns`, to an
    element. A sum of several products starts `from` the sums of the one before: such sums are one chain.

    `copies` are the elements that a thread copies to shared memory at once: neighbouring terms of the left side, and
    neighbouring columns of each gate of the right one.

    - `ragged_products_c1`: `k` and `columns` are at least one.
    - `ragged_products_c2`: there is a gate for each start, within the columns, and no more than 8.
    - `ragged_products_c3`: the left side is rows of an operand, a result or scratch of the device, and the map leads to `k`
      elements within a row.
    - `ragged_products_c4`: the right side is a parameter as it is, a constant or scratch in `f32`, and the map leads nowhere else.
    - `ragged_products_c5`: there is a copy for the left side and for each gate, of 4 elements, which are 16 aligned bytes, or of 1.
      Of a left side that is kept in `bf16` it is 8 elements; then the tile is rounded to that, and all its left sides are kept so.
    - `ragged_products_c6`: it starts from values of the loops that depend on no sum, or from all sums of one before it with
      equal gates, which nothing else uses.
    - `ragged_products_c7`: all sizes of the tile fill `k` to the same number of terms, as a zero that is added can change
      the sign of a zero.
    - `ragged_products_c8`: the elements are `f32`.
  }];
  let arguments = (ins Ragged_RowMemory:$left, AffineMapAttr:$left_address, Ragged_SharedMemory:$right,
                       AffineMapAttr:$right_address, I64Attr:$k, I64Attr:$columns, DenseI64ArrayAttr:$gates,
                       DenseI64ArrayAttr:$copies, Variadic<F32>:$starts);
  let results = (outs Variadic<F32>:$sums);
  let assemblyFormat = [{
    $left custom<Rule>($left_address) `with` $right custom<Rule>($right_address) `k` $k `columns` $columns
    `gates` $gates `copies` $copies `from` $starts attr-dict `:` type($left) `,` type($right) `,` type($starts)
    `->` type($sums)
  }];
  let hasVerifier = 1;
}

// A stage of products of a call, whose regions compute what is packed and what is made of the sums.
class Ragged_PackedStage<string mnemonic>
    : Ragged_Op<mnemonic, [ParentOneOf<["::cohort::ragged::CallsOp", "::cohort::ragged::WaveOp"]>]> {
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Ragged_MatmulOp : Ragged_PackedStage<"matmul"> {
  let summary = "a product of matrices of a call";
  let description = [{
    The last two loops are rows and columns of the result, those before them count matrices; `depth` is
    the dim that is summed over. Blocks of at most `rows` rows of the left side, and of `blocks` columns and terms,
    are packed into scratch: the regions yield an element of the left side for an index of the loops and of the depth,
    which comes last, and one of the right side. The left side does not depend on the column, nor the right one
    on the row. On the CPU a left side that is a load, `along_depth`, of neighbours in memory is read there and not packed. `along_depth` says of a side that vectors run along the depth while it is packed; else they
    run along its rows or columns.

    The sums lie in a result, where the map says: from zero, or, with `onto`, from what it holds. With
    `until N`, row `i` has the first `i + N` terms only; others are zero. `finish` computes what is
    stored in their place: of a block when its last terms are summed, so that it may load the sum at its own index; or,
    with `by_rows`, when all columns are there, so that it may load any of its row. `lanes` is the loop
    that runs in vectors there. Every element is its start and then one multiply-add for each term in order, whatever the blocks.

    On a GPU, in a `gpu.module`, `blocks` are the columns and the terms of a tile in shared memory, whose rows follow from
    how many tiles there are and are not written down, and `along_depth` says whether neighbours along the depth are neighbours there. The sums are in registers: of threads that go on with
    them in a stage that is `onto` this one, and that load none but their own.

    - `ragged_matmul_c1`: there are two loops or more, over lengths of the kernel or of 1 to 2^31 - 1
      iterations, and one depth.
    - `ragged_matmul_c2`: a block has 1 to 2048 columns and 1 to 1024 terms; on the CPU it has `rows`, a multiple of 12 up
      to 1536, so that rows fall into the same tiles whatever their number, and on a GPU none are written down.
    - `ragged_matmul_c3`: the result is of `f32`, and the map leads to an element for each index of the loops.
    - `ragged_matmul_c4`: the regions yield an `f32` each.
    - `ragged_matmul_c5`: what finishes loads sums of its own index, or with `by_rows` of its own row.

    ```mlir
    ragged.matmul over [@n, @m] depth [28] rows 96 blocks [2048, 28] into %r (d0, d1) -> (d0, d1)
        : memref<?x?x?xf32> left along_depth {
      %a = ragged.load %x (d0, d1, d2) -> (d0, d2) : memref<?x?x28xf32>
      ragged.yield %a : f32
    } right along_depth {
      %b = ragged.load %y (d0, d1, d2) -> (d1, d2) : memref<?x?x28xf32>
      ragged.yield %b : f32
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$over, OptionalAttr<FlatSymbolRefArrayAttr>:$dims,
                       DenseI64ArrayAttr:$depth, OptionalAttr<FlatSymbolRefArrayAttr>:$depth_dims,
                       OptionalAttr<I64Attr>:$rows, DenseI64ArrayAttr:$blocks, Ragged_RowMemory:$memory,
                       AffineMapAttr:$address, UnitAttr:$onto, OptionalAttr<I64Attr>:$until, UnitAttr:$left_along_depth,
                       UnitAttr:$right_along_depth, UnitAttr:$by_rows, OptionalAttr<I64Attr>:$lanes);
  let regions = (region SizedRegion<1>:$left, SizedRegion<1>:$right, AnyRegion:$finish);
  let assemblyFormat = [{
    `over` custom<Extents>($over, $dims) `depth` custom<Extents>($depth, $depth_dims) (`rows` $rows^)? `blocks` $blocks
    (`onto` $onto^)? `into` $memory custom<Rule>($address) (`until` $until^)? (`lanes` $lanes^)?
    attr-dict `:` type($memory) `left` (`along_depth` $left_along_depth^)? $left
    `right` (`along_depth` $right_along_depth^)? $right (`by_rows` $by_rows^)? (`finish` $finish^)?
  }];
}

def Ragged_OnlineSoftmaxOp : Ragged_PackedStage<"online_softmax"> {
  let summary = "a softmax of a product's rows, times values";
  let description = [{
    Row by row, the sum over `keys` of values weighted by the softmax of scores, which are made of a product of
    `depth` terms. The last two loops are rows and columns of the result, those before them count
    matrices. A block has at most `blocks` rows and keys. Blocks of keys are taken one after another: their scores are
    computed and never stored, and what was summed with an earlier maximum is rescaled when a block raises it (Milakov
    and Gimelshein, 2018). So the keys of a block are a part of what is computed: others give other last bits. Its rows
    change none on the CPU; on a GPU they say how many threads have a row, 4 of 32 and 2 of 64, and do. On tensor cores 64 rows
    are 16 for each of four warps, which keep scores and weights in registers, if the depth is at most 128.

    `left` and `right` yield an element of the product's sides for an index of the loops, the key and the
    term; `scores` takes the product's element and yields what the softmax is of, for an index of the loops
    and the key; `values` yields an element of what is weighted. `along_depth` says of a side that vectors
    run along the terms while it is packed, or of the values along the keys. `finish` yields what is stored where the
    map says; it takes memory that holds the sums of a block of rows, and `lanes` is its loop that runs in
    vectors. With `until N masked S`, row `i` has other scores than `S` for the first `i + N` keys only, and
    those behind are looked at only where they can have weight.

    - `ragged_online_softmax_c1`: there are two loops or more, over lengths of the kernel or of 1 to 2^31 - 1
      iterations, the last of 1 to 1024, and one dim of keys.
    - `ragged_online_softmax_c2`: the depth is from 1 to 1024.
    - `ragged_online_softmax_c3`: the map leads to an element for each index of the loops.
    - `ragged_online_softmax_c4`: `scores` takes an `f32`, `finish` memory of the loops, and all but
      `finish` yield an `f32`.
    - `ragged_online_softmax_c5`: what finishes loads sums of its own row.
    - `ragged_online_softmax_c6`: `until` comes with `masked`.
    - `ragged_online_softmax_c7`: a block has a multiple of 12 rows up to 1536 and a multiple of 32 keys up to 1024; on
      a GPU 32 or 64 of both.
  }];
  let arguments = (ins DenseI64ArrayAttr:$over, OptionalAttr<FlatSymbolRefArrayAttr>:$dims,
                       DenseI64ArrayAttr:$keys, OptionalAttr<FlatSymbolRefArrayAttr>:$key_dims,
                       I64Attr:$depth, DenseI64ArrayAttr:$blocks, Ragged_RowMemory:$memory, AffineMapAttr:$address,
                       OptionalAttr<I64Attr>:$until, OptionalAttr<F32Attr>:$masked,
                       UnitAttr:$left_along_depth, UnitAttr:$right_along_depth,
                       UnitAttr:$values_along_keys, OptionalAttr<I64Attr>:$lanes);
  let regions = (region SizedRegion<1>:$left, SizedRegion<1>:$right, SizedRegion<1>:$scores,
                        SizedRegion<1>:$values, SizedRegion<1>:$finish);
  let assemblyFormat = [{
    `over` custom<Extents>($over, $dims) `keys` custom<Extents>($keys, $key_dims) `depth` $depth
    `blocks` $blocks `into` $memory custom<Rule>($address) (`until` $until^ `masked` $masked)? (`lanes` $lanes^)?
    attr-dict `:` type($memory) `left` (`along_depth` $left_along_depth^)? $left
    `right` (`along_depth` $right_along_depth^)? $right `scores` $scores
    `values` (`along_keys` $values_along_keys^)? $values `finish` $finish
  }];
}

def Ragged_YieldOp : Ragged_Op<"yield", [Pure, ReturnLike, Terminator]> {
  let summary = "ends the region of a stage";
  let description = [{
    - `ragged_yield_c1`: it is in a stage of a `ragged.kernel`.

    ```mlir
    ragged.yield %sum : f32
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ /* Yields nothing. */ }]>];
  let hasVerifier = 1;
}

#endif // COHORT_RAGGED_KERNEL_OPS_TD
