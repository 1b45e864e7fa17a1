//! The scalars that a stage computes for an index of its loops, as a region of it says.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Op, Val, operands_of, operations_of, result_of, results_of};
use cohort_dialects::keys;
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::loop_level::{OperandKind, address_of};
use cohort_passes::kernel::rows::body::{Instruction, Store, ValueId};
use cohort_passes::kernel::rows::constants::bits_of;
use cohort_passes::kernel::rows::layout::Place;
use cohort_passes::pass::{Failed, error};
use cohort_passes::support::ir::{blocks_of, elem_of, key};
use melior::ir::{BlockRef, OperationRef, ValueLike, operation::OperationLike};

use super::kernel::Kernel;

pub struct Body<'c> {
    pub domain: Vec<i64>,
    pub values: Vec<(Instruction<'c, Place>, Elem)>,
    pub stores: Vec<Store>,
    known: HashMap<usize, ValueId>,
}

impl<'c> Body<'c> {
    /// Reads a region whose loops have these lengths, up to an operation, or all of it.
    pub fn read(
        kernel: &Kernel<'c>,
        block: BlockRef<'c, 'c>,
        domain: Vec<i64>,
        upto: Option<OperationRef<'c, 'c>>,
    ) -> Result<Body<'c>, Failed> {
        let mut body = Body {
            domain,
            values: vec![],
            stores: vec![],
            known: HashMap::new(),
        };
        for op in operations_of(block) {
            if Some(op) == upto {
                break;
            }
            match Op::of(op) {
                Some(Op::RaggedYield) => break,
                Some(Op::RaggedStore) => {
                    let [value, memory] = operands_of(op)[..] else {
                        return Err(error(op, "expected a value and memory"));
                    };
                    body.stores.push(Store {
                        place: kernel.place(memory),
                        address: address_of(op)
                            .ok_or_else(|| error(op, "expected a linear map"))?,
                        value: body.known[&key(value)],
                    });
                }
                Some(Op::RaggedProducts) => {
                    let sums = body.values.len()..;
                    for (number, sum) in sums.zip(results_of(op)) {
                        let address = Affine::constant(0);
                        let buffer = Place::Sum(number);
                        body.known.insert(key(sum), number);
                        let load = Instruction::Load { buffer, address };
                        body.values.push((load, Elem::F32));
                    }
                }
                _ => {
                    let result = result_of(op, 0);
                    let elem = elem_of(result.r#type())
                        .ok_or_else(|| error(op, "expected f32, i32 or i1"))?;
                    let instruction = body.instruction(kernel, op)?;
                    body.known.insert(key(result), body.values.len());
                    body.values.push((instruction, elem));
                }
            }
        }
        Ok(body)
    }

    fn instruction(
        &self,
        kernel: &Kernel<'c>,
        op: OperationRef<'c, 'c>,
    ) -> Result<Instruction<'c, Place>, Failed> {
        let operands = operands_of(op);
        Ok(match Op::of(op) {
            Some(Op::RaggedLoad) => {
                let place = kernel.place(operands[0]);
                match place {
                    Place::Operand(operand)
                        if kernel.operands[operand].kind == OperandKind::Scalar =>
                    {
                        Instruction::HostScalar(operand)
                    }
                    _ => Instruction::Load {
                        buffer: place,
                        address: address_of(op)
                            .ok_or_else(|| error(op, "expected a linear map"))?,
                    },
                }
            }
            Some(Op::ArithConstant) => {
                let bits = op.attribute(&keys::VALUE).ok().and_then(bits_of);
                let (bits, _) = bits.ok_or_else(|| error(op, "expected a constant's bits"))?;
                Instruction::Splat(bits[0])
            }
            _ => Instruction::Pointwise {
                op,
                inputs: operands
                    .iter()
                    .map(|value| self.known[&key(*value)])
                    .collect(),
            },
        })
    }

    /// What some values are computed from: a body of that alone, their numbers there, and those of all that is.
    pub fn part(&self, roots: &[ValueId]) -> (Body<'c>, Vec<ValueId>, HashMap<ValueId, ValueId>) {
        let mut needed = vec![false; self.values.len()];
        for root in roots {
            needed[*root] = true;
        }
        for id in (0..self.values.len()).rev() {
            if let (true, Instruction::Pointwise { inputs, .. }) = (needed[id], &self.values[id].0)
            {
                for input in inputs {
                    needed[*input] = true;
                }
            }
        }
        let mut part = Body {
            domain: self.domain.clone(),
            values: vec![],
            stores: vec![],
            known: HashMap::new(),
        };
        let mut numbers = HashMap::new();
        for (id, (instruction, elem)) in self.values.iter().enumerate() {
            if !needed[id] {
                continue;
            }
            let mut instruction = instruction.clone();
            if let Instruction::Pointwise { inputs, .. } = &mut instruction {
                for input in inputs {
                    *input = numbers[input];
                }
            }
            numbers.insert(id, part.values.len());
            part.values.push((instruction, *elem));
        }
        let roots = roots.iter().map(|root| numbers[root]).collect();
        (part, roots, numbers)
    }

    /// The number of a value that the region defines.
    pub fn id(&self, value: Val<'c>) -> ValueId {
        self.known[&key(value)]
    }
}

/// What a region yields.
pub fn yields<'c>(block: BlockRef<'c, 'c>) -> Vec<Val<'c>> {
    operations_of(block)
        .last()
        .map_or(vec![], |end| operands_of(*end))
}

/// The block of a region of a stage.
pub fn block_of<'c>(
    stage: OperationRef<'c, 'c>,
    region: usize,
) -> Result<BlockRef<'c, 'c>, Failed> {
    let block = blocks_of(stage).get(region).copied();
    block.ok_or_else(|| error(stage, "expected a stage with its regions"))
}
