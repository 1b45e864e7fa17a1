//! Writes the stages of a per-instance kernel at the loop level, the counterpart of [`super::loops`]: a stage's
//! values are nodes of a graph, whose elements its regions compute.

mod given;
mod scalars;

use std::cell::RefCell;
use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Builder, Op, Val, arguments_of, region_with_block};
use cohort_dialects::keys::{self, Key};
use melior::ir::{Attribute, Region, Type};

pub use given::Given;

use super::graph::{Graph, NodeId, Size};
use super::stages::{Matmul, Nest, OnlineSoftmax, Side};
use crate::kernel::affine::{Affine, Var};
use crate::kernel::loop_level::{Memory, elem_type};
use crate::kernel::rows::layout::LANES;
use scalars::Scalars;

/// The memory of a kernel.
#[derive(Default)]
pub struct Declared<'c> {
    /// Of operands, parameters and constants.
    pub of_node: HashMap<NodeId, Val<'c>>,
    /// Of results, by number.
    pub results: Vec<Val<'c>>,
}

/// A node whose elements lie in memory, and what is added to its index there.
pub struct Shifted {
    /// The node.
    pub node: NodeId,
    /// What is added, for each dim of the node.
    pub by: Vec<i64>,
    /// The only index there that may be read, where others are not at hand.
    pub own: Option<Vec<Affine>>,
}

impl Shifted {
    /// Where the node's element lies.
    fn index(&self, at: &[Affine]) -> Vec<Affine> {
        let by = at.iter().zip(&self.by);
        by.map(|(index, by)| index.plus(&Affine::constant(*by)))
            .collect()
    }

    /// Whether a node's element lies there, and need not be computed.
    fn stands_for(&self, node: NodeId, at: &[Affine]) -> bool {
        let is_at_hand = |own: &Vec<Affine>| *own == self.index(at);
        self.node == node && self.own.as_ref().is_none_or(is_at_hand)
    }
}

/// Writes stages of a graph's values.
pub struct Writer<'a, 'c> {
    /// Where the operations go.
    pub b: Builder<'c>,
    /// What is computed.
    pub graph: &'a Graph<'c>,
    /// The names of the kernel's lengths.
    pub names: &'a [String],
    /// Where it lies.
    pub memory: &'a Declared<'c>,
    /// What maps take for granted.
    pub given: &'a RefCell<Given>,
}

impl<'c> Writer<'_, 'c> {
    /// Loops over dims: their sizes, and the names of lengths.
    fn extents(&self, over: &[Size]) -> Vec<(Key<'static>, Attribute<'c>)> {
        let mut attributes = vec![(keys::OVER, self.b.i64s(&sizes(over)))];
        attributes.extend(names_of(&self.b, self.names, over).map(|names| (keys::DIMS, names)));
        attributes
    }

    /// A region over loops that takes such values, and yields what `body` returns.
    fn region(
        &self,
        over: &[Size],
        takes: &[Type<'c>],
        body: impl FnOnce(&mut Scalars<'_, 'c>, &[Val<'c>]) -> Vec<Val<'c>>,
    ) -> Region<'c> {
        let (region, block) = region_with_block(takes, self.b.location);
        let inner = Builder::at_end(self.b.context(), block, self.b.location);
        let mut scalars = Scalars::new(self, inner, over);
        let yields = body(&mut scalars, &arguments_of(block));
        inner.ragged_yield(&yields);
        region
    }

    fn side(&self, over: &[Size], side: &Side) -> Region<'c> {
        self.region(over, &[], |scalars, _| {
            vec![scalars.value(side.value, &side.at)]
        })
    }

    /// The map to an element of a result from such loops.
    fn address(&self, result: usize, at: &[Affine], over: &[Size]) -> Attribute<'c> {
        let vars: Vec<Var> = (0..over.len()).collect();
        self.given.borrow_mut().take(self.shape(result), at, over);
        scalars::map(self.b.context(), at, &vars)
    }

    fn shape(&self, result: usize) -> &[Size] {
        &self.graph.nodes[self.graph.results[result]].shape
    }

    /// What is set, of marks of a stage.
    fn marks(&self, marks: &[(Key<'static>, bool)]) -> Vec<(Key<'static>, Attribute<'c>)> {
        let unit = Attribute::unit(self.b.context());
        let set = marks.iter().filter(|(_, set)| *set);
        set.map(|(name, _)| (*name, unit)).collect()
    }

    /// The loop that runs in vectors.
    fn lanes(&self, lanes: Option<usize>) -> Option<(Key<'static>, Attribute<'c>)> {
        lanes.map(|lanes| (keys::LANES, self.b.i64_attr(lanes as i64)))
    }

    /// Writes loops, and the store of each turn.
    pub fn nest(&self, nest: &Nest) {
        let store = &nest.store;
        let to = (
            keys::ADDRESS,
            self.address(store.result, &store.to, &nest.over),
        );
        let region = self.region(&nest.over, &[], |scalars, _| {
            let value = scalars.value(store.value, &store.at);
            let operands = [value, self.memory.results[store.result]];
            let b = scalars.outermost();
            b.op(Op::RaggedStore, &operands, &[], &[to], vec![]);
            vec![]
        });
        let mut attributes = self.extents(&nest.over);
        attributes.push((keys::BY, self.b.i64_attr(LANES)));
        attributes.extend(self.lanes(store.lanes));
        self.b
            .op(Op::RaggedNest, &[], &[], &attributes, vec![region]);
    }

    /// A product; `sums` is what stands for it in what is computed of it.
    pub fn matmul(&self, matmul: &Matmul, sums: Shifted) {
        let result = self.memory.results[matmul.result];
        let mut over = matmul.over.clone();
        over.push(matmul.depth);
        let left = self.side(&over, &matmul.left);
        let right = self.side(&over, &matmul.right);
        let finish = matmul.finish.as_ref().map(|finish| {
            self.region(&matmul.over, &[], |scalars, _| {
                scalars.sums(sums, result, self.shape(matmul.result));
                vec![scalars.value(finish.value, &finish.at)]
            })
        });
        let mut attributes = self.extents(&matmul.over);
        attributes.push((keys::DEPTH, self.b.i64s(&sizes(&[matmul.depth]))));
        let names = names_of(&self.b, self.names, &[matmul.depth]);
        attributes.extend(names.map(|names| (keys::DEPTH_DIMS, names)));
        attributes.extend(matmul.rows.map(|rows| (keys::ROWS, self.b.i64_attr(rows))));
        attributes.push((keys::BLOCKS, self.b.i64s(&matmul.blocks)));
        attributes.push((
            keys::ADDRESS,
            self.address(matmul.result, &matmul.to, &matmul.over),
        ));
        attributes.extend(self.lanes(matmul.finish.as_ref().and_then(|finish| finish.lanes)));
        attributes.extend(self.marks(&[
            (keys::ONTO, matmul.onto),
            (keys::LEFT_ALONG_DEPTH, matmul.left.along_depth),
            (keys::RIGHT_ALONG_DEPTH, matmul.right.along_depth),
            (keys::BY_ROWS, matmul.by_rows),
        ]));
        let regions = vec![left, right, finish.unwrap_or_default()];
        self.b
            .op(Op::RaggedMatmul, &[result], &[], &attributes, regions);
    }

    /// A softmax-like chain whose scores are made of a product, which is read there; `sums` is what stands for the
    /// second product in what is computed of it.
    pub fn online(&self, online: &OnlineSoftmax, product: (NodeId, Vec<Affine>), sums: Shifted) {
        let mut of_keys = online.over.clone();
        of_keys.push(online.keys);
        let mut of_terms = of_keys.clone();
        of_terms.push(Size::Known(online.depth));
        let left = self.side(&of_terms, &online.left);
        let right = self.side(&of_terms, &online.right);
        let element = elem_type(self.b.context(), Elem::F32);
        let scores = self.region(&of_keys, &[element], |scalars, product_of| {
            scalars.know(product, product_of[0]);
            vec![scalars.value(online.scores.0, &online.scores.1)]
        });
        let values = self.side(&of_keys, &online.values);
        let of_sums = Memory {
            rows: true,
            shape: sizes(&online.over),
            elem: Elem::F32,
        };
        let of_sums = of_sums.to_type(self.b.context());
        let finish = self.region(&online.over, &[of_sums], |scalars, memory_of| {
            scalars.sums(sums, memory_of[0], &online.over);
            vec![scalars.value(online.finish.value, &online.finish.at)]
        });
        let mut attributes = self.extents(&online.over);
        let finish_of = &online.finish;
        attributes.push((keys::KEYS, self.b.i64s(&sizes(&[online.keys]))));
        let names = names_of(&self.b, self.names, &[online.keys]);
        attributes.extend(names.map(|names| (keys::KEY_DIMS, names)));
        attributes.push((keys::DEPTH, self.b.i64_attr(online.depth)));
        attributes.push((keys::BLOCKS, self.b.i64s(&online.blocks)));
        attributes.push((
            keys::ADDRESS,
            self.address(finish_of.result, &finish_of.to, &online.over),
        ));
        attributes.extend(self.lanes(online.finish.lanes));
        attributes.extend(self.marks(&[
            (keys::LEFT_ALONG_DEPTH, online.left.along_depth),
            (keys::RIGHT_ALONG_DEPTH, online.right.along_depth),
            (keys::VALUES_ALONG_KEYS, online.values.along_depth),
        ]));
        let regions = vec![left, right, scores, values, finish];
        let result = self.memory.results[online.finish.result];
        self.b.op(
            Op::RaggedOnlineSoftmax,
            &[result],
            &[],
            &attributes,
            regions,
        );
    }
}

/// The names of those of a call's dims that are lengths, if there are any.
pub fn names_of<'c>(b: &Builder<'c>, names: &[String], shape: &[Size]) -> Option<Attribute<'c>> {
    let lengths = shape.iter().filter_map(|size| match size {
        Size::Length(length) => Some(b.symbol(&names[*length])),
        Size::Known(_) => None,
    });
    let lengths: Vec<_> = lengths.collect();
    (!lengths.is_empty()).then(|| b.array(&lengths))
}

/// Sizes as a type has them.
pub fn sizes(shape: &[Size]) -> Vec<i64> {
    shape
        .iter()
        .map(|size| size.known().unwrap_or(i64::MIN))
        .collect()
}
