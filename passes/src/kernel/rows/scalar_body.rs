//! Reads the body of a structured operation: pointwise nodes, a fold of them, or loops as they are.

use std::collections::HashMap;

use cohort_dialects::builder::{
    Op, arguments_of, extend_block, is_arithmetic, operands_of, operations_of, result_of,
};
use melior::ir::{BlockRef, OperationRef, RegionLike, ValueLike, operation::OperationLike};

use super::graph::{Kind, Loops, Node, NodeId};
use super::read::{Reader, Tensor};
use crate::kernel::affine::{Affine, identity};
use crate::pass::{Failed, Outcome, error};
use crate::support::ir::{elem_of, key, users_of};

/// Combiners whose order of application lanes may change, once and for all rows alike.
pub fn is_combiner(op: OperationRef<'_, '_>) -> bool {
    matches!(
        Op::of(op),
        Some(
            Op::ArithAddf
                | Op::ArithMulf
                | Op::ArithMaximumf
                | Op::ArithMinimumf
                | Op::ArithMaxnumf
                | Op::ArithMinnumf
                | Op::ArithAddi
                | Op::ArithMuli
                | Op::ArithMaxsi
                | Op::ArithMinsi
                | Op::ArithMaxui
                | Op::ArithMinui
                | Op::ArithAndi
                | Op::ArithOri
                | Op::ArithXori
        )
    )
}

impl<'c> Reader<'c> {
    pub fn body(&mut self, body: Body<'c>, loop_of_dim: Vec<usize>) -> Outcome {
        let op = body.op;
        let block = body_of(op)?;
        let operations = operations_of(block).into_iter();
        let plain = operations
            .into_iter()
            .all(|op| is_arithmetic(op) || Op::LinalgYield.is(op));
        if plain && !body.folds.contains(&true) && body.writes_whole_domain() {
            let nodes = self.compute(&body, block, None)?;
            self.define_results(op, &nodes, body.factor);
            return Ok(());
        }
        if let Some(combiner) = plain.then(|| body.combiner(block)).flatten() {
            return self.reduce(&body, block, combiner);
        }
        let node = Node {
            shape: body.domain.clone(),
            elem: cohort_abi::manifest::Elem::F32,
            rows: body.rows,
            op,
            kind: Kind::Loops(Loops {
                op,
                domain: body.domain,
                folds: body.folds,
                inputs: body.inputs,
                inits: body.inits,
                results: body.results,
                loop_of_dim,
            }),
        };
        let loops = self.graph.add(node);
        for result in 0..op.result_count() {
            let ty = self.tensor_type(result_of(op, result), op)?;
            let node = self.typed(Kind::LoopsResult { loops, result }, &ty, body.factor, op)?;
            self.define(
                result_of(op, result),
                Tensor {
                    node,
                    factor: body.factor,
                },
            );
        }
        Ok(())
    }

    /// The body's operations as pointwise nodes over the domain; what it yields, or with a
    /// combiner what that folds in.
    fn compute(
        &mut self,
        body: &Body<'c>,
        block: BlockRef<'c, 'c>,
        combiner: Option<OperationRef<'c, 'c>>,
    ) -> Result<Vec<NodeId>, Failed> {
        let rank = body.domain.len();
        let arguments = arguments_of(block);
        let mut nodes: HashMap<usize, NodeId> = arguments
            .iter()
            .map(|argument| key(*argument))
            .zip(body.inputs.iter().copied())
            .collect();
        if combiner.is_none() {
            for (argument, init) in arguments[body.inputs.len()..].iter().zip(&body.inits) {
                let init = self.access(*init, identity(rank), &body.domain, body.rows, body.op);
                nodes.insert(key(*argument), init);
            }
        }
        for operation in operations_of(block) {
            let is_end = Op::LinalgYield.is(operation);
            let is_combiner = combiner.is_some_and(|combiner| combiner == operation);
            let mut inputs = Vec::new();
            for operand in operands_of(operation) {
                match nodes.get(&key(operand)) {
                    Some(node) => inputs.push(*node),
                    // The accumulator.
                    None if is_combiner || is_end && combiner.is_some() => {
                        inputs.extend(self.known(operand).map(|outer| outer.node));
                    }
                    None => inputs.push(self.tensor(operand, operation)?.node),
                }
            }
            if is_combiner || is_end {
                return Ok(inputs);
            }
            if Op::ArithConstant.is(operation) {
                self.constant(operation)?;
                continue;
            }
            let result = result_of(operation, 0);
            let elem = elem_of(result.r#type()).ok_or_else(|| {
                error(
                    operation,
                    &format!("not supported yet: values of type `{}`", result.r#type()),
                )
            })?;
            let node = self.graph.add(Node {
                kind: Kind::Pointwise {
                    op: operation,
                    inputs,
                },
                shape: body.domain.clone(),
                elem,
                rows: body.rows,
                op: operation,
            });
            nodes.insert(key(result), node);
        }
        Ok(vec![])
    }

    fn reduce(
        &mut self,
        body: &Body<'c>,
        block: BlockRef<'c, 'c>,
        combiner: OperationRef<'c, 'c>,
    ) -> Outcome {
        let op = body.op;
        let input = self.compute(body, block, Some(combiner))?;
        let [input] = input[..] else {
            return Err(error(op, "not supported yet: a fold of this form"));
        };
        let kept: Vec<usize> = (0..body.domain.len())
            .filter(|dim| !body.folds[*dim])
            .collect();
        let dims: Vec<usize> = (0..body.domain.len())
            .filter(|dim| body.folds[*dim])
            .collect();
        let shape: Vec<i64> = kept.iter().map(|dim| body.domain[*dim]).collect();
        // Where each dim of the result is among the kept ones.
        let places: Option<Vec<usize>> = body.results[0]
            .iter()
            .map(|linear| {
                let dim = linear.terms.iter().find(|term| term.1 == 1)?.0;
                kept.iter().position(|k| *k == dim)
            })
            .collect();
        let Some(places) = places.filter(|places| places.len() == kept.len()) else {
            return Err(error(op, "not supported yet: a fold with this output map"));
        };
        let to_kept = places.iter().map(|place| Affine::var(*place)).collect();
        let init = self.access(body.inits[0], to_kept, &shape, body.rows, op);
        let elem = self.graph.nodes[body.inits[0]].elem;
        let reduce = self.graph.add(Node {
            kind: Kind::Reduce {
                input,
                dims,
                combiner,
                init,
            },
            shape,
            elem,
            rows: body.rows,
            op,
        });
        let mut from_kept = vec![Affine::constant(0); kept.len()];
        let mut shape = vec![0; kept.len()];
        for (dim, place) in places.iter().enumerate() {
            from_kept[*place] = Affine::var(dim);
            shape[dim] = self.graph.nodes[reduce].shape[*place];
        }
        let node = self.access(reduce, from_kept, &shape, body.rows, op);
        self.define_results(op, &[node], body.factor);
        Ok(())
    }
}

/// A structured operation with its operands read.
pub struct Body<'c> {
    pub op: OperationRef<'c, 'c>,
    pub domain: Vec<i64>,
    pub folds: Vec<bool>,
    pub rows: bool,
    pub factor: i64,
    /// Over the domain.
    pub inputs: Vec<NodeId>,
    pub inits: Vec<NodeId>,
    pub results: Vec<Vec<Affine>>,
}

impl<'c> Body<'c> {
    fn writes_whole_domain(&self) -> bool {
        let whole = identity(self.domain.len());
        self.results.iter().all(|result| *result == whole)
    }

    /// The operation that folds, when the body is `acc ⊕ f(inputs)` and nothing else reads `acc`.
    fn combiner(&self, block: BlockRef<'c, 'c>) -> Option<OperationRef<'c, 'c>> {
        let arguments = arguments_of(block);
        let [accumulator] = arguments[self.inputs.len()..] else {
            return None;
        };
        let [combiner] = users_of(accumulator)[..] else {
            return None;
        };
        let end = operations_of(block).last().copied()?;
        let yields = combiner.result_count() == 1
            && operands_of(end).first().map(|v| key(*v)) == Some(key(result_of(combiner, 0)));
        let operands = operands_of(combiner);
        let once = operands.len() == 2 && key(operands[0]) != key(operands[1]);
        (yields && once && is_combiner(combiner)).then_some(combiner)
    }
}

fn body_of<'c>(op: OperationRef<'c, 'c>) -> Result<BlockRef<'c, 'c>, Failed> {
    op.regions()
        .next()
        .and_then(|region| region.first_block().map(extend_block))
        .ok_or_else(|| error(op, "expected a body"))
}
