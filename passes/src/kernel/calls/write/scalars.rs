//! Writes a value of a call as a region of scalars: each is written once, in the outermost region that has
//! the loops which its index depends on. What only selects vanishes into the maps of loads.

use std::collections::HashMap;

use cohort_dialects::builder::{Builder, Op, Val, arguments_of, region_with_block};
use cohort_dialects::keys;
use melior::Context;
use melior::ir::{AffineExpr, AffineMap, Attribute, ValueLike, operation::OperationLike};

use super::super::graph::{Kind, NodeId, Size, domain_of, part_of};
use super::{Shifted, Writer};
use crate::kernel::affine::{Affine, Var};
use crate::kernel::loop_level::{constant_of, elem_type};
use crate::support::ir::repeat;

pub struct Scalars<'s, 'c> {
    writer: &'s Writer<'s, 'c>,
    /// The size of each variable's loop.
    sizes: Vec<Size>,
    scopes: Vec<Scope<'c>>,
    known: HashMap<(NodeId, Vec<Affine>), Val<'c>>,
    /// A node that other stages have computed, and its memory of this shape.
    sums: Option<(Shifted, Val<'c>, &'s [Size])>,
}

/// A region that is being written, with the variables of its loops.
struct Scope<'c> {
    b: Builder<'c>,
    vars: Vec<Var>,
}

impl<'s, 'c> Scalars<'s, 'c> {
    /// Of a stage's region, whose loops are the first variables.
    pub fn new(writer: &'s Writer<'s, 'c>, b: Builder<'c>, over: &[Size]) -> Scalars<'s, 'c> {
        let vars = (0..over.len()).collect();
        Scalars {
            writer,
            sizes: over.to_vec(),
            scopes: vec![Scope { b, vars }],
            known: HashMap::new(),
            sums: None,
        }
    }

    pub fn outermost(&self) -> &Builder<'c> {
        &self.scopes[0].b
    }

    /// Loads a node from memory.
    pub fn sums(&mut self, sums: Shifted, memory: Val<'c>, shape: &'s [Size]) {
        self.sums = Some((sums, memory, shape));
    }

    /// Takes a value for a node at an index.
    pub fn know(&mut self, node: (NodeId, Vec<Affine>), value: Val<'c>) {
        self.known.insert(node, value);
    }

    /// A node at an index.
    pub fn value(&mut self, node: NodeId, at: &[Affine]) -> Val<'c> {
        let graph = self.writer.graph;
        let (node, at) = graph.resolve(node, at);
        let key = (node, at);
        if let Some(value) = self.known.get(&key) {
            return *value;
        }
        let (_, at) = &key;
        let vars = graph.depends(node, at);
        let scope = |var: &Var| {
            self.scopes
                .iter()
                .position(|scope| scope.vars.contains(var))
        };
        let scope = vars.iter().filter_map(scope).max().unwrap_or(0);
        let value = self.write(node, at, scope);
        self.known.insert(key, value);
        value
    }

    fn write(&mut self, node: NodeId, at: &[Affine], scope: usize) -> Val<'c> {
        let graph = self.writer.graph;
        let of_node = &graph.nodes[node];
        let b = self.scopes[scope].b;
        let element = elem_type(b.context(), of_node.elem);
        let sums = self.sums.as_ref();
        let sums = sums.filter(|(sums, ..)| sums.stands_for(node, at));
        if let Some((sums, memory, shape)) = sums {
            let address = [(keys::ADDRESS, self.address(&sums.index(at), shape, scope))];
            return b.value_with(Op::RaggedLoad, &[*memory], element, &address);
        }
        match &of_node.kind {
            Kind::Splat(bits) => constant_of(&b, *bits, of_node.elem),
            Kind::Iota(dim) => {
                let address = [(keys::ADDRESS, self.map(&at[*dim..=*dim], scope))];
                b.value_with(Op::RaggedPosition, &[], element, &address)
            }
            Kind::Pointwise { op, inputs } => {
                let inputs = inputs.iter().map(|input| self.value(*input, at));
                let inputs: Vec<_> = inputs.collect();
                repeat(&b, *op, &inputs, element)
            }
            Kind::Concat { inputs, dim } => {
                let below = |var: Var| self.sizes[var].known();
                let part = part_of(graph, inputs, *dim, at, below);
                let (input, at) = part.unwrap_or_else(|| unreachable!("checked before"));
                self.value(input, &at)
            }
            Kind::Reduce { .. } => self.reduce(node, at, scope),
            Kind::Operand | Kind::Scalar | Kind::Length | Kind::Param(_) | Kind::Dense(_) => {
                let address = [(keys::ADDRESS, self.address(at, &of_node.shape, scope))];
                b.value_with(
                    Op::RaggedLoad,
                    &[self.writer.memory.of_node[&node]],
                    element,
                    &address,
                )
            }
            Kind::Access { .. } => unreachable!("an index is resolved"),
        }
    }

    fn reduce(&mut self, node: NodeId, at: &[Affine], scope: usize) -> Val<'c> {
        let graph = self.writer.graph;
        let Kind::Reduce {
            input,
            dims,
            combiner,
            init,
        } = &graph.nodes[node].kind
        else {
            unreachable!("it is a fold");
        };
        let location = graph.nodes[node].op.location();
        let start = self.value(*init, at);
        let shape = &graph.nodes[*input].shape;
        let first = self.sizes.len();
        let domain = domain_of(shape, dims, at, |size| {
            self.sizes.push(size);
            self.sizes.len() - 1
        });
        let vars: Vec<Var> = (first..self.sizes.len()).collect();
        // What is written within depends on the loops around this fold alone.
        let hidden = self.scopes.split_off(scope + 1);
        let b = self.scopes[scope].b;
        let element = start.r#type();
        let (region, block) = region_with_block(&[element], b.location);
        let inner = Builder::at_end(b.context(), block, b.location);
        self.scopes.push(Scope { b: inner, vars });
        let value = self.value(*input, &domain);
        let folded = arguments_of(block)[0];
        let next = repeat(&inner, *combiner, &[folded, value], element);
        inner.ragged_yield(&[next]);
        self.scopes.truncate(scope + 1);
        self.scopes.extend(hidden);
        let attributes = self.writer.extents(&self.sizes[first..first + dims.len()]);
        let reduce = b.at(location).op(
            Op::RaggedReduce,
            &[start],
            &[element],
            &attributes,
            vec![region],
        );
        cohort_dialects::builder::result_of(reduce, 0)
    }

    /// A map to an element of memory of this shape.
    fn address(&self, at: &[Affine], shape: &[Size], scope: usize) -> Attribute<'c> {
        self.writer.given.borrow_mut().take(shape, at, &self.sizes);
        self.map(at, scope)
    }

    /// A map from the loops of a scope to these indices.
    fn map(&self, at: &[Affine], scope: usize) -> Attribute<'c> {
        let scopes = self.scopes[..=scope].iter();
        let vars: Vec<Var> = scopes
            .flat_map(|scope| scope.vars.iter().copied())
            .collect();
        map(self.writer.b.context(), at, &vars)
    }
}

/// A map from variables to indices.
pub fn map<'c>(context: &'c Context, at: &[Affine], vars: &[Var]) -> Attribute<'c> {
    let expressions = at.iter().map(|index| {
        let terms = index.terms.iter().filter_map(|(var, coefficient)| {
            let dim = vars.iter().position(|other| other == var)?;
            Some(AffineExpr::dim(context, dim) * AffineExpr::constant(context, *coefficient))
        });
        let constant = AffineExpr::constant(context, index.constant);
        let sum = terms.reduce(|sum, term| sum + term);
        sum.map_or(constant, |sum| sum + constant)
    });
    let expressions: Vec<_> = expressions.collect();
    let map = AffineMap::new(context, vars.len(), 0, &expressions);
    // SAFETY: the map is of this context.
    unsafe { Attribute::from_raw(mlir_sys::mlirAffineMapAttrGet(map.to_raw())) }
}
