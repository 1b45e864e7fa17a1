//! Which memory operations of the loop level touch.

use std::ffi::c_void;

use melior::ir::{OperationRef, Value};
use mlir_sys::MlirValue;

use crate::builder::Val;
use crate::ffi;

/// A use of memory.
#[derive(Clone, Copy)]
pub struct Touched<'c> {
    /// What a declaration of a `ragged.kernel` gives, or an argument of a region.
    pub memory: Val<'c>,
    /// Whether it is written there; else it is read.
    pub is_written: bool,
}

/// Every use of memory by an operation or in its regions, in the order of the text.
pub fn touched<'c>(operation: OperationRef<'c, '_>) -> Vec<Touched<'c>> {
    unsafe extern "C" fn push(memory: MlirValue, is_written: bool, data: *mut c_void) {
        // SAFETY: `data` is the vector passed below, which nothing else uses during the call; the value is an operand
        // of an operation that is alive.
        unsafe {
            let all = &mut *data.cast::<Vec<Touched<'_>>>();
            all.push(Touched {
                memory: Value::from_raw(memory),
                is_written,
            });
        }
    }
    let mut all = Vec::<Touched<'c>>::new();
    // SAFETY: the operation is alive, and `push` gets the vector it expects.
    unsafe { ffi::cohortForEachMemory(operation.to_raw(), push, (&raw mut all).cast()) };
    all
}

#[cfg(test)]
mod tests {
    use melior::ir::operation::OperationLike;
    use melior::ir::{Module, RegionLike, ValueLike};

    use super::*;
    use crate::builder::{extend_op, operations_of, result_of};

    /// The operations in the first region of an operation.
    fn inside<'c>(operation: OperationRef<'c, '_>) -> Vec<OperationRef<'c, 'c>> {
        let region = operation.region(0).ok();
        let block = region.and_then(|region| region.first_block());
        block.map_or(vec![], operations_of)
    }

    #[test]
    fn what_a_stage_folds_into_is_written_and_what_it_loads_is_read() {
        let context = crate::new_context();
        let text = r#"
            gpu.module @g {
              ragged.kernel @k {
                %x = ragged.operand row : memref<?x4xf32>
                %r = ragged.result : memref<?x1xf32>
                ragged.blocks of 96 tile 1 {
                  ragged.fold over [1, 4] folding [1] into %r (d0) -> (d0) : memref<?x1xf32> from {
                    %zero = arith.constant 0.0 : f32
                    ragged.yield %zero : f32
                  } by {
                  ^bb0(%sum: f32):
                    %a = ragged.load %x (d0, d1) -> (d1) : memref<?x4xf32>
                    %next = arith.addf %sum, %a : f32
                    ragged.yield %next : f32
                  }
                }
              }
            }"#;
        let module = Module::parse(&context, text).expect("a module");
        let kernel = operations_of(module.body()).into_iter().flat_map(inside);
        let kernel: Vec<_> = kernel.flat_map(inside).map(extend_op).collect();
        let [x, r, blocks] = kernel[..] else {
            panic!("an operand, a result and a block of rows")
        };
        let uses = touched(blocks);
        let uses = uses
            .iter()
            .map(|of| (of.memory.to_raw().ptr, of.is_written));
        let raw = |declared| result_of(declared, 0).to_raw().ptr;
        assert_eq!(uses.collect::<Vec<_>>(), [(raw(r), true), (raw(x), false)]);
    }
}
