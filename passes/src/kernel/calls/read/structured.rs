//! Operations of `linalg` with a body: elementwise ones and folds over a domain of loops.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::attributes::folds_of;
use cohort_dialects::builder::{
    Op, Val, arguments_of, extend_block, is_arithmetic, name_of, operands_of, operations_of,
    result_of, results_of,
};
use cohort_dialects::keys;
use melior::ir::{BlockRef, OperationRef, RegionLike, ValueLike, operation::OperationLike};

use super::super::graph::{Kind, Node, NodeId, Size};
use super::{Reader, unsupported};
use crate::kernel::affine::Affine;
use crate::kernel::rows::{
    maps::{MapResult, Structure, indexing_maps, named_structure},
    scalar_body::is_combiner,
};
use crate::pass::{Failed, Outcome, error};
use crate::support::ir::{TensorType, integers, key, users_of};

impl<'c> Reader<'c> {
    pub(super) fn structured(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let structure = self.structure(op)?;
        let operands = operands_of(op);
        let count = structure.folds.len();
        let mut sizes: Vec<Option<Size>> = vec![None; count];
        let mut batch = None;
        let mut typed = Vec::new();
        for (operand, map) in operands.iter().zip(&structure.maps) {
            let ty = self.typed(operand.r#type(), op)?;
            let lead = usize::from(ty.batched);
            for (axis, place) in map.iter().enumerate() {
                match place {
                    MapResult::Loop(number) if axis < lead => {
                        if batch.is_some_and(|batch| batch != *number) {
                            return Err(error(op, "not supported yet: this use of the batch dim"));
                        }
                        batch = Some(*number);
                    }
                    MapResult::Loop(number) => sizes[*number] = Some(ty.shape[axis - lead]),
                    MapResult::Constant(_) => {}
                }
            }
            typed.push(ty);
        }
        if batch.is_some_and(|batch| structure.folds[batch]) {
            return Err(error(op, "a kernel may not fold its calls together"));
        }
        let loops: Vec<usize> = (0..count).filter(|number| Some(*number) != batch).collect();
        let mut domain = Vec::new();
        for number in &loops {
            domain.push(
                sizes[*number]
                    .ok_or_else(|| error(op, "not supported yet: a loop of unknown size"))?,
            );
        }
        let dim_of = |number: usize| loops.iter().position(|other| *other == number);
        let index_of = |map: &[MapResult]| -> Vec<Affine> {
            map.iter()
                .filter_map(|place| match place {
                    MapResult::Loop(number) => dim_of(*number).map(Affine::var),
                    MapResult::Constant(at) => Some(Affine::constant(*at)),
                })
                .collect()
        };
        let mut inputs = Vec::new();
        for (operand, map) in operands.iter().zip(&structure.maps).take(structure.inputs) {
            let node = self.node(*operand, op)?;
            inputs.push(self.access(node, index_of(map), &domain, op));
        }
        let folded: Vec<usize> = (0..loops.len())
            .filter(|dim| structure.folds[loops[*dim]])
            .collect();
        let kept: Vec<usize> = (0..loops.len())
            .filter(|dim| !folded.contains(dim))
            .collect();
        let body = op
            .regions()
            .next()
            .and_then(|region| region.first_block().map(extend_block))
            .ok_or_else(|| error(op, "expected a body"))?;
        let combiner = combiner(body, structure.inputs);
        if !folded.is_empty() && combiner.is_none() {
            return Err(error(op, "not supported yet: a fold of this form"));
        }
        let combiner = combiner.filter(|_| !folded.is_empty());
        let inits: Vec<NodeId> = operands[structure.inputs..]
            .iter()
            .map(|operand| self.node(*operand, op))
            .collect::<Result<_, _>>()?;
        let arguments = arguments_of(body);
        let mut nodes: HashMap<usize, NodeId> = arguments
            .iter()
            .map(|argument| key(*argument))
            .zip(inputs.iter().copied())
            .collect();
        if combiner.is_none() {
            let maps = &structure.maps[structure.inputs..];
            let init_arguments = &arguments[structure.inputs..];
            for ((argument, init), map) in init_arguments.iter().zip(&inits).zip(maps) {
                let init = self.access(*init, index_of(map), &domain, op);
                nodes.insert(key(*argument), init);
            }
        }
        let values = self.body(op, body, nodes, combiner, &domain, &dim_of)?;
        for (number, value) in values.into_iter().enumerate() {
            let map = &structure.maps[structure.inputs + number];
            let result = results_of(op)[number];
            let typed = self.typed(result.r#type(), op)?;
            // Where each kept dim is in the result.
            let place_of = |dim: usize| {
                map.iter()
                    .filter(|place| **place != MapResult::Loop(batch.unwrap_or(usize::MAX)))
                    .position(|place| *place == MapResult::Loop(loops[dim]))
            };
            let index: Option<Vec<Affine>> = kept
                .iter()
                .map(|dim| place_of(*dim).map(Affine::var))
                .collect();
            let Some(index) = index.filter(|index| index.len() == typed.shape.len()) else {
                return Err(error(op, "not supported yet: this output map"));
            };
            let value = match combiner {
                None => value,
                Some(combiner) => {
                    let shape: Vec<Size> = kept.iter().map(|dim| domain[*dim]).collect();
                    // The init has the result's order of dims, the fold that of the domain.
                    let mut order = vec![Affine::default(); kept.len()];
                    for (at, dim) in kept.iter().enumerate() {
                        if let Some(place) = place_of(*dim) {
                            order[place] = Affine::var(at);
                        }
                    }
                    let init = self.access(inits[number], order, &shape, op);
                    let elem = self.graph.nodes[init].elem;
                    self.graph.add(Node {
                        kind: Kind::Reduce {
                            input: value,
                            dims: folded.clone(),
                            combiner,
                            init,
                        },
                        shape,
                        elem,
                        op,
                    })
                }
            };
            let node = self.access(value, index, &typed.shape, op);
            self.values.insert(key(result), node);
        }
        Ok(())
    }

    /// What a body yields, or with a combiner what that folds in, as nodes over the domain.
    fn body(
        &mut self,
        op: OperationRef<'c, 'c>,
        body: BlockRef<'c, 'c>,
        mut nodes: HashMap<usize, NodeId>,
        combiner: Option<OperationRef<'c, 'c>>,
        domain: &[Size],
        dim_of: &dyn Fn(usize) -> Option<usize>,
    ) -> Result<Vec<NodeId>, Failed> {
        for operation in operations_of(body) {
            let is_end = Op::LinalgYield.is(operation);
            let is_combiner = combiner == Some(operation);
            if Op::LinalgIndex.is(operation) {
                let number = crate::support::ir::integer_attribute(operation, keys::DIM)
                    .unwrap_or(0) as usize;
                let Some(dim) = dim_of(number) else {
                    return Err(error(
                        operation,
                        "no body may ask for the index of its call",
                    ));
                };
                let node = self.graph.add(Node {
                    kind: Kind::Iota(dim),
                    shape: domain.to_vec(),
                    elem: Elem::I32,
                    op,
                });
                nodes.insert(key(result_of(operation, 0)), node);
                continue;
            }
            if Op::ArithConstant.is(operation) {
                let kind = self.constant(operation)?;
                self.define(operation, kind)?;
                continue;
            }
            let mut inputs = Vec::new();
            for operand in operands_of(operation) {
                match (nodes.get(&key(operand)), self.values.get(&key(operand))) {
                    (Some(node), _) => inputs.push(*node),
                    (None, Some(outer)) => {
                        let outer = *outer;
                        inputs.push(self.access(outer, vec![], domain, operation));
                    }
                    // The accumulator.
                    (None, None) if is_combiner || is_end && combiner.is_some() => {}
                    (None, None) => return Err(error(operation, "expected a value of the body")),
                }
            }
            if is_combiner || is_end {
                return Ok(inputs);
            }
            let typed = self.typed(result_of(operation, 0).r#type(), operation)?;
            if !is_arithmetic(operation) {
                return Err(unsupported(operation));
            }
            let node = self.pointwise(operation, inputs, domain.to_vec(), typed.elem)?;
            nodes.insert(key(result_of(operation, 0)), node);
        }
        Ok(vec![])
    }

    fn structure(&self, op: OperationRef<'c, 'c>) -> Result<Structure, Failed> {
        let operands = operands_of(op);
        let rank = |value: Val<'c>| TensorType::of_value(value).map_or(0, |ty| ty.rank());
        let whole = |rank: usize| (0..rank).map(MapResult::Loop).collect::<Vec<_>>();
        if Op::LinalgReduce.is(op) {
            let dims = integers(op, keys::DIMENSIONS);
            let rank = rank(operands[0]);
            let folds: Vec<bool> = (0..rank)
                .map(|axis| dims.contains(&(axis as i64)))
                .collect();
            let kept: Vec<MapResult> = (0..rank)
                .filter(|axis| !folds[*axis])
                .map(MapResult::Loop)
                .collect();
            let inputs = operands.len() / 2;
            let mut maps = vec![whole(rank); inputs];
            maps.extend(vec![kept; inputs]);
            return Ok(Structure {
                maps,
                folds,
                inputs,
            });
        }
        if Op::LinalgMap.is(op) {
            let rank = rank(result_of(op, 0));
            return Ok(Structure {
                maps: vec![whole(rank); operands.len()],
                folds: vec![false; rank],
                inputs: operands.len() - 1,
            });
        }
        let refuse = || {
            error(
                op,
                &format!("not supported yet: this form of `{}`", name_of(op)),
            )
        };
        if let Some(named) = Op::of(op).and_then(named_structure) {
            return Ok(match indexing_maps(op) {
                Some(maps) => Structure { maps, ..named },
                None => named,
            });
        }
        let maps = indexing_maps(op).ok_or_else(refuse)?;
        let folds = folds_of(op).ok_or_else(refuse)?;
        Ok(Structure {
            maps,
            folds,
            inputs: operands.len() - op.result_count(),
        })
    }
}

/// The operation that folds, when the body is `acc ⊕ f(inputs)` and nothing else reads `acc`.
fn combiner<'c>(body: BlockRef<'c, 'c>, inputs: usize) -> Option<OperationRef<'c, 'c>> {
    let arguments = arguments_of(body);
    let [accumulator] = arguments[inputs..] else {
        return None;
    };
    let [combiner] = users_of(accumulator)[..] else {
        return None;
    };
    let end = operations_of(body).last().copied()?;
    let yields = combiner.result_count() == 1
        && operands_of(end).first().map(|v| key(*v)) == Some(key(result_of(combiner, 0)));
    let operands = operands_of(combiner);
    let once = operands.len() == 2 && key(operands[0]) != key(operands[1]);
    (yields && once && is_combiner(combiner)).then_some(combiner)
}
