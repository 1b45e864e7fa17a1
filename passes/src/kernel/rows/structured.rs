//! Reads the structured operations of `linalg`.
//!
//! A product with a shared right side becomes [`Kind::Product`]. Everything else is seen as loops
//! with index maps and a body of scalars: a body that only computes becomes pointwise nodes over
//! the loops' domain, one that folds with a known combiner a [`Kind::Reduce`] of such nodes, and
//! any other body is kept as it is ([`Kind::Loops`]).

use cohort_dialects::builder::{Op, operands_of, result_of};
use cohort_dialects::keys;
use melior::ir::OperationRef;

use super::graph::Kind;
use super::maps::{MapResult, Structure, indexing_maps, named_structure};
use super::read::{Reader, is_rows};
use super::scalar_body::Body;
use crate::kernel::affine::{Affine, identity};
use crate::pass::{Failed, Outcome, error};
use crate::support::ir::{elem_of, integers};

impl<'c> Reader<'c> {
    pub fn structured(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        match Op::of(op) {
            Some(Op::LinalgFill) => self.fill(op),
            Some(Op::LinalgBroadcast) => self.broadcast(op),
            Some(Op::LinalgTranspose) => self.transpose(op),
            Some(Op::LinalgMatmul) if self.has_shared_right_side(op)? => self.product(op),
            _ => {
                let structure = self.structure(op)?;
                self.loops(op, &structure)
            }
        }
    }

    fn fill(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        let value = self.tensor(operands[0], op)?;
        let factor = self.tensor(operands[1], op)?.factor;
        if let Some(bits) = self.is_splat(value.node) {
            return self.result(Kind::Splat(bits), factor, op);
        }
        self.result(
            Kind::Access {
                source: value.node,
                index: vec![],
            },
            factor,
            op,
        )
    }

    fn broadcast(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        let source = self.tensor(operands[0], op)?;
        let factor = self.destination_factor(operands[1], op)?;
        if let Some(bits) = self.is_splat(source.node) {
            return self.result(Kind::Splat(bits), factor, op);
        }
        let added = integers(op, keys::DIMENSIONS);
        let from = self.tensor_type(operands[0], op)?;
        let to = self.tensor_type(result_of(op, 0), op)?;
        let extra = usize::from(is_rows(&to) && factor > 1);
        let position = |axis: usize| axis + extra - usize::from(is_rows(&to));
        let mut kept = (0..to.rank()).filter(|axis| !added.contains(&(*axis as i64)));
        let mut index = Vec::new();
        if is_rows(&from) {
            if kept.next() != Some(0) || source.factor != factor {
                return Err(error(
                    op,
                    "not supported yet: a broadcast that moves the batch dim",
                ));
            }
            index.extend((0..extra).map(Affine::var));
        }
        index.extend(kept.map(|axis| Affine::var(position(axis))));
        self.result(
            Kind::Access {
                source: source.node,
                index,
            },
            factor,
            op,
        )
    }

    fn transpose(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let source = self.tensor(operands_of(op)[0], op)?;
        let permutation = integers(op, keys::PERMUTATION);
        let to = self.tensor_type(result_of(op, 0), op)?;
        let rows = is_rows(&to);
        if rows && permutation.first() != Some(&0) {
            return Err(error(
                op,
                "not supported yet: a transposition of the batch dim",
            ));
        }
        if let Some(bits) = self.is_splat(source.node) {
            return self.result(Kind::Splat(bits), source.factor, op);
        }
        let rank = self.graph.nodes[source.node].shape.len();
        let extra = usize::from(rows && source.factor > 1);
        let lead = usize::from(rows);
        let mut index = identity(rank);
        for (axis, from) in permutation.iter().enumerate().skip(lead) {
            index[*from as usize + extra - lead] = Affine::var(axis + extra - lead);
        }
        self.result(
            Kind::Access {
                source: source.node,
                index,
            },
            source.factor,
            op,
        )
    }

    fn has_shared_right_side(&self, op: OperationRef<'c, 'c>) -> Result<bool, Failed> {
        let operands = operands_of(op);
        let plain = indexing_maps(op)
            .is_none_or(|maps| Some(maps) == named_structure(Op::LinalgMatmul).map(|s| s.maps));
        Ok(plain
            && is_rows(&self.tensor_type(operands[0], op)?)
            && !is_rows(&self.tensor_type(operands[1], op)?))
    }

    fn product(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operands = operands_of(op);
        let a = self.tensor(operands[0], op)?;
        let weight = self.tensor(operands[1], op)?.node;
        let init = self.tensor(operands[2], op)?.node;
        if elem_of(self.tensor_type(operands[0], op)?.element)
            != Some(cohort_abi::manifest::Elem::F32)
        {
            return Err(error(op, "not supported yet: a product of integers"));
        }
        self.result(
            Kind::Product {
                a: a.node,
                weight,
                init,
            },
            a.factor,
            op,
        )
    }

    fn loops(&mut self, op: OperationRef<'c, 'c>, structure: &Structure) -> Outcome {
        let operands = operands_of(op);
        let count = structure.folds.len();
        let mut sizes = vec![None; count];
        let mut batch = None;
        let mut factor = None;
        for (operand, map) in operands.iter().zip(&structure.maps) {
            let ty = self.tensor_type(*operand, op)?;
            for (axis, place) in map.iter().enumerate() {
                match (place, ty.shape[axis]) {
                    (MapResult::Loop(number), Some(size)) => sizes[*number] = Some(size as i64),
                    (MapResult::Loop(number), None) if batch.is_none_or(|b| b == *number) => {
                        batch = Some(*number);
                    }
                    (MapResult::Constant(_), Some(_)) => {}
                    _ => return Err(error(op, "not supported yet: this use of the batch dim")),
                }
            }
            let tensor = self.tensor(*operand, op)?;
            if is_rows(&ty) && self.is_splat(tensor.node).is_none() {
                if factor.is_some_and(|factor| factor != tensor.factor) {
                    return Err(error(
                        op,
                        "not supported yet: different multiples of the rows",
                    ));
                }
                factor = Some(tensor.factor);
            }
        }
        let factor = factor.unwrap_or(1);
        if batch.is_some_and(|batch| structure.folds[batch]) {
            return Err(error(op, "a kernel may not fold its rows together"));
        }

        // The domain: the collapsed multiple of the rows, then every loop but the batch's.
        let mut domain = Vec::new();
        let mut folds = Vec::new();
        let mut loop_of_dim = Vec::new();
        let mut dim_of_loop = vec![0; count];
        if batch.is_some() && factor > 1 {
            domain.push(factor);
            folds.push(false);
            // A part of the batch's loop, whose index no body may ask for.
            loop_of_dim.push(usize::MAX);
        }
        for number in (0..count).filter(|number| Some(*number) != batch) {
            let size = sizes[number]
                .ok_or_else(|| error(op, "not supported yet: a loop of unknown size"))?;
            dim_of_loop[number] = domain.len();
            domain.push(size);
            folds.push(structure.folds[number]);
            loop_of_dim.push(number);
        }
        let index_of = |map: &[MapResult]| -> Vec<Affine> {
            map.iter()
                .flat_map(|place| match place {
                    MapResult::Loop(number) if Some(*number) == batch => {
                        (factor > 1).then(|| Affine::var(0))
                    }
                    MapResult::Loop(number) => Some(Affine::var(dim_of_loop[*number])),
                    MapResult::Constant(at) => Some(Affine::constant(*at)),
                })
                .collect()
        };
        let rows = batch.is_some();
        let mut inputs = Vec::new();
        for (operand, map) in operands.iter().zip(&structure.maps).take(structure.inputs) {
            let node = self.tensor(*operand, op)?.node;
            inputs.push(self.access(node, index_of(map), &domain, rows, op));
        }
        let mut inits = Vec::new();
        for operand in &operands[structure.inputs..] {
            inits.push(self.tensor(*operand, op)?.node);
        }
        let results: Vec<_> = structure.maps[structure.inputs..]
            .iter()
            .map(|map| index_of(map))
            .collect();
        let body = Body {
            op,
            domain,
            folds,
            rows,
            factor,
            inputs,
            inits,
            results,
        };
        self.body(body, loop_of_dim)
    }
}
