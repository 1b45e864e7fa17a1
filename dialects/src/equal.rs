//! Operations that do the same, such as functions of different names.

use std::collections::HashMap;

use melior::ir::OperationRef;

use crate::ffi;

/// Something for each of the operations that differ in more than the symbols that they declare and their locations.
/// Operations that are in it must not be changed or erased.
pub struct Distinct<'c, T> {
    by_hash: HashMap<usize, Vec<(OperationRef<'c, 'c>, T)>>,
}

impl<T> Default for Distinct<'_, T> {
    fn default() -> Self {
        Distinct {
            by_hash: HashMap::new(),
        }
    }
}

impl<'c, T> Distinct<'c, T> {
    /// What an operation that does the same was put in with.
    pub fn get(&self, operation: OperationRef<'c, 'c>) -> Option<&T> {
        let alike = self.by_hash.get(&hash(operation))?;
        let same = alike.iter().find(|(other, _)| are_equal(*other, operation));
        same.map(|(_, with)| with)
    }

    /// Puts in an operation of which [`get`](Self::get) knows no other that does the same.
    pub fn insert(&mut self, operation: OperationRef<'c, 'c>, with: T) {
        let alike = self.by_hash.entry(hash(operation)).or_default();
        alike.push((operation, with));
    }
}

fn hash(operation: OperationRef<'_, '_>) -> usize {
    // SAFETY: the operation is alive.
    unsafe { ffi::cohortOperationHash(operation.to_raw()) }
}

fn are_equal(left: OperationRef<'_, '_>, right: OperationRef<'_, '_>) -> bool {
    // SAFETY: both operations are alive.
    unsafe { ffi::cohortOperationsAreEqual(left.to_raw(), right.to_raw()) }
}

#[cfg(test)]
mod tests {
    use melior::ir::Module;

    use super::*;
    use crate::builder::{extend_op, operations_of};

    #[test]
    fn functions_are_equal_by_what_they_do() {
        let context = crate::new_context();
        let text = r#"
            func.func private @a(%x: f32, %y: f32) -> f32 { %r = arith.mulf %x, %y : f32 return %r : f32 }
            func.func private @b(%p: f32, %q: f32) -> f32 { %r = arith.mulf %p, %q : f32 return %r : f32 }
            func.func private @c(%x: f32, %y: f32) -> f32 { %r = arith.mulf %y, %x : f32 return %r : f32 }
            func.func private @d(%x: f32, %y: f32) -> f32 { %r = arith.addf %x, %y : f32 return %r : f32 }
            func.func private @e(%x: f32, %y: f32) -> f32 attributes {no_inline} {
              %r = arith.mulf %x, %y : f32 return %r : f32
            }
            func.func private @f(%x: f32, %y: f32) -> f32 {
              %r = arith.mulf %x, %y fastmath<nnan> : f32 return %r : f32
            }
            func.func private @g(%x: f64, %y: f64) -> f64 { %r = arith.mulf %x, %y : f64 return %r : f64 }"#;
        let module = Module::parse(&context, text).expect("a module");
        let functions: Vec<_> = operations_of(module.body())
            .into_iter()
            .map(extend_op)
            .collect();
        let mut distinct = Distinct::default();
        let firsts: Vec<usize> = functions
            .iter()
            .enumerate()
            .map(|(number, function)| {
                if let Some(first) = distinct.get(*function) {
                    return *first;
                }
                distinct.insert(*function, number);
                number
            })
            .collect();
        assert_eq!(firsts, [0, 0, 2, 3, 4, 5, 6]);
    }
}
