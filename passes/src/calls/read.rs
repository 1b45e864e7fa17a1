//! Reads the body of a `cfb.kernel` whose unit is the call into a [`Graph`].

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{
    Val, arguments_of, extend_block, name_of, operands_of, operations_of, result_of, results_of,
};
use cohort_dialects::shape::Shape;
use melior::ir::{
    BlockRef, OperationRef, RegionLike, Type, ValueLike,
    attribute::{FlatSymbolRefAttribute, IntegerAttribute, StringAttribute},
    operation::OperationLike,
    r#type::TypeLike,
};

use super::graph::{Form, Graph, Index, Kind, Node, NodeId, Size, identity};
use crate::cpu::lower_kernels::{
    maps::{Place, Structure, indexing_maps, named_structure},
    read::{elem_of, elements_of, integers},
    scalar_body::COMBINERS,
};
use crate::ir::{TensorType, blocks_of, key, name_attribute, users_of};
use crate::pass::{Failed, Outcome, error};

struct Reader<'c> {
    graph: Graph<'c>,
    values: HashMap<usize, NodeId>,
    /// The names of the lengths' dims.
    lengths: Vec<String>,
}

/// What a tensor's type says of one call's value.
struct Typed {
    shape: Vec<Size>,
    elem: Elem,
    /// Whether the type has the batch dim.
    batched: bool,
}

/// Reads a kernel; `scalars` tells which of its records' operands are host scalars.
pub fn read<'c>(kernel: OperationRef<'c, 'c>, scalars: &[bool]) -> Result<Graph<'c>, Failed> {
    let block = blocks_of(kernel).first().copied();
    let block = block.ok_or_else(|| error(kernel, "expected a kernel with a body"))?;
    let lengths = length_names(kernel);
    let mut reader = Reader {
        graph: Graph {
            lengths: lengths.len(),
            ..Graph::default()
        },
        values: HashMap::new(),
        lengths,
    };
    let rows = kernel.attribute("rows").map_or(vec![], elements_of);
    for row in rows {
        let size = match IntegerAttribute::try_from(row) {
            Ok(number) => Some(Size::Known(number.value())),
            Err(_) => FlatSymbolRefAttribute::try_from(row)
                .ok()
                .and_then(|name| reader.length(name.value())),
        };
        let size = size
            .ok_or_else(|| error(kernel, "expected `rows` to be dims of `lengths` or numbers"))?;
        reader.graph.rows.push(size);
    }
    let forms: Vec<String> = kernel
        .attribute("operands")
        .map_or(vec![], elements_of)
        .into_iter()
        .filter_map(|form| StringAttribute::try_from(form).ok())
        .map(|form| form.value().to_owned())
        .collect();
    let arguments = arguments_of(block);
    for (at, argument) in arguments.iter().skip(1).enumerate() {
        reader.argument(kernel, at, *argument, scalars, &forms)?;
    }
    for operation in operations_of(block) {
        reader.read(operation)?;
    }
    Ok(reader.graph)
}

/// The dims of a kernel's lengths.
pub fn length_names(kernel: OperationRef<'_, '_>) -> Vec<String> {
    let names = kernel.attribute("lengths").map_or(vec![], elements_of);
    names
        .into_iter()
        .filter_map(|name| FlatSymbolRefAttribute::try_from(name).ok())
        .map(|name| name.value().to_owned())
        .collect()
}

impl<'c> Reader<'c> {
    fn length(&self, name: &str) -> Option<Size> {
        let at = self.lengths.iter().position(|length| length == name)?;
        Some(Size::Length(at))
    }

    fn argument(
        &mut self,
        kernel: OperationRef<'c, 'c>,
        at: usize,
        value: Val<'c>,
        scalars: &[bool],
        forms: &[String],
    ) -> Outcome {
        let form = forms.get(at.wrapping_sub(self.graph.lengths));
        let form = form.map_or("", String::as_str);
        let scalar = scalars.get(at).copied().unwrap_or(false) || form == "scalar";
        let (kind, form, typed) = if at < self.graph.lengths {
            let typed = Typed {
                shape: vec![],
                elem: Elem::I32,
                batched: true,
            };
            (Kind::Length, Form::Length, typed)
        } else {
            if ["list", "stacked"].contains(&form) {
                return Err(error(
                    kernel,
                    "not supported yet: a list as the operand of a kernel over calls",
                ));
            }
            let typed = self.typed(value.r#type(), kernel)?;
            let ragged = typed.shape.iter().any(|s| matches!(s, Size::Length(_)));
            match (scalar, ragged) {
                (true, _) => (Kind::Scalar, Form::Scalar, typed),
                (false, true) => (Kind::Operand, Form::Ragged, typed),
                (false, false) => (Kind::Operand, Form::Row, typed),
            }
        };
        let node = self.graph.add(Node {
            kind,
            shape: typed.shape,
            elem: typed.elem,
            op: kernel,
        });
        self.graph.operands.push((node, form));
        self.values.insert(key(value), node);
        Ok(())
    }

    fn typed(&self, ty: Type<'c>, op: OperationRef<'c, 'c>) -> Result<Typed, Failed> {
        let unsupported = |ty: Type<'c>| {
            error(
                op,
                &format!("not supported yet: elements of type `{ty}` in a kernel"),
            )
        };
        let elem_of = |ty: Type<'c>| match ty.is_index() {
            // Lengths are below 2³¹.
            true => Some(Elem::I32),
            false => elem_of(ty),
        };
        let Some(tensor) = TensorType::of(ty) else {
            let elem = elem_of(ty).ok_or_else(|| unsupported(ty))?;
            return Ok(Typed {
                shape: vec![],
                elem,
                batched: false,
            });
        };
        let elem = elem_of(tensor.element).ok_or_else(|| unsupported(tensor.element))?;
        let encoding = Shape::of_type(ty);
        let dim = |axis: usize| encoding.as_ref().and_then(|shape| shape.dims.get(axis));
        let batched =
            matches!(tensor.shape.first(), Some(None)) && dim(0).is_none_or(|dim| !dim.is_ragged());
        let mut shape = Vec::new();
        for (axis, size) in tensor.shape.iter().enumerate().skip(usize::from(batched)) {
            let named = dim(axis).and_then(|dim| dim.name.as_deref());
            let size = match (size, named) {
                (Some(size), _) => Some(Size::Known(*size as i64)),
                (None, Some(name)) => self.length(name),
                (None, None) => None,
            };
            shape.push(size.ok_or_else(|| {
                error(
                    op,
                    "not supported yet: a dim that is none of the kernel's `lengths`",
                )
            })?);
        }
        if dim(0).is_some_and(|_| {
            encoding
                .iter()
                .flat_map(|shape| &shape.dims)
                .any(|dim| dim.pad > 1 || dim.bulk > 1)
        }) {
            return Err(error(op, "not supported yet: padded storage in a kernel"));
        }
        Ok(Typed {
            shape,
            elem,
            batched,
        })
    }

    fn node(&self, value: Val<'c>, op: OperationRef<'c, 'c>) -> Result<NodeId, Failed> {
        self.values.get(&key(value)).copied().ok_or_else(|| {
            error(
                op,
                "not supported yet: an operand that is no value of the kernel",
            )
        })
    }

    fn define(&mut self, op: OperationRef<'c, 'c>, kind: Kind<'c>) -> Result<NodeId, Failed> {
        let result = result_of(op, 0);
        let typed = self.typed(result.r#type(), op)?;
        let node = self.graph.add(Node {
            kind,
            shape: typed.shape,
            elem: typed.elem,
            op,
        });
        self.values.insert(key(result), node);
        Ok(node)
    }

    fn read(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let name = name_of(op);
        let operands = operands_of(op);
        match name.as_str() {
            "cfb.yield" => {
                for operand in operands {
                    let node = self.node(operand, op)?;
                    self.graph.results.push(node);
                }
                return Ok(());
            }
            "ml_program.global_load_const" => {
                let name = name_attribute(op, "global")
                    .ok_or_else(|| error(op, "expected the symbol of a parameter"))?;
                self.define(op, Kind::Param(name))?;
            }
            "arith.constant" => {
                let kind = self.constant(op)?;
                self.define(op, kind)?;
            }
            "tensor.empty" => {
                self.define(op, Kind::Splat(0))?;
            }
            "tensor.dim" | "affine.apply" => {}
            "tensor.extract_slice" => self.slice(op)?,
            "tensor.concat" => self.concat(op)?,
            "tensor.collapse_shape" | "tensor.expand_shape" => self.reshape(op)?,
            "tensor.cast" | "tensor.from_elements" | "tensor.extract" | "tensor.splat" => {
                let source = self.node(operands[0], op)?;
                let single = operands.len() == 1 && self.graph.nodes[source].shape.is_empty();
                if !single && name != "tensor.cast" {
                    return Err(error(op, "not supported yet: more than one element"));
                }
                let typed = self.typed(result_of(op, 0).r#type(), op)?;
                let index = identity(self.graph.nodes[source].shape.len());
                let node = self.access(source, index, &typed.shape, op);
                self.values.insert(key(result_of(op, 0)), node);
            }
            "linalg.fill" => {
                let source = self.node(operands[0], op)?;
                let typed = self.typed(result_of(op, 0).r#type(), op)?;
                let node = self.access(source, vec![], &typed.shape, op);
                self.values.insert(key(result_of(op, 0)), node);
            }
            "linalg.broadcast" => {
                let source = self.node(operands[0], op)?;
                let from = self.typed(operands[0].r#type(), op)?;
                let typed = self.typed(result_of(op, 0).r#type(), op)?;
                let lead = usize::from(typed.batched);
                let added: Vec<i64> = integers(op, "dimensions");
                let kept = (lead..typed.shape.len() + lead)
                    .filter(|axis| !added.contains(&(*axis as i64)))
                    .map(|axis| Index::var(axis - lead));
                let index: Vec<Index> = kept.collect();
                if index.len() != from.shape.len() {
                    return Err(error(
                        op,
                        "not supported yet: a broadcast that moves the batch dim",
                    ));
                }
                let node = self.access(source, index, &typed.shape, op);
                self.values.insert(key(result_of(op, 0)), node);
            }
            "linalg.transpose" => {
                let source = self.node(operands[0], op)?;
                let typed = self.typed(result_of(op, 0).r#type(), op)?;
                let lead = i64::from(typed.batched);
                let permutation = integers(op, "permutation");
                if typed.batched && permutation.first() != Some(&0) {
                    return Err(error(
                        op,
                        "not supported yet: a transposition of the batch dim",
                    ));
                }
                let mut index = identity(typed.shape.len());
                for (to, from) in permutation.iter().skip(lead as usize).enumerate() {
                    index[(from - lead) as usize] = Index::var(to);
                }
                let node = self.access(source, index, &typed.shape, op);
                self.values.insert(key(result_of(op, 0)), node);
            }
            _ if name.starts_with("linalg.") => self.structured(op, &name)?,
            _ if op.result_count() == 1
                && result_of(op, 0).r#type().is_index()
                && operands
                    .iter()
                    .any(|operand| !self.values.contains_key(&key(*operand))) =>
            {
                // The size of some dim, which its type tells.
            }
            _ if name.starts_with("arith.") || name.starts_with("math.") => {
                let mut inputs = Vec::new();
                let typed = self.typed(result_of(op, 0).r#type(), op)?;
                for operand in operands {
                    let node = self.node(operand, op)?;
                    let rank = self.graph.nodes[node].shape.len();
                    let index = identity(rank.min(typed.shape.len()));
                    inputs.push(self.access(node, index, &typed.shape, op));
                }
                let node = self.pointwise(op, inputs, typed.shape, typed.elem)?;
                self.values.insert(key(result_of(op, 0)), node);
            }
            _ => {
                return Err(error(
                    op,
                    &format!("not supported yet in a kernel over calls: `{name}`"),
                ));
            }
        }
        Ok(())
    }

    fn pointwise(
        &mut self,
        op: OperationRef<'c, 'c>,
        inputs: Vec<NodeId>,
        shape: Vec<Size>,
        elem: Elem,
    ) -> Result<NodeId, Failed> {
        let name = name_of(op);
        if op.result_count() != 1 || name == "math.ipowi" {
            return Err(error(
                op,
                &format!("not supported yet in a kernel over calls: `{name}`"),
            ));
        }
        let casts = ["arith.index_cast", "arith.index_castui"].contains(&name.as_str());
        if casts && self.graph.nodes[inputs[0]].elem == elem {
            return Ok(inputs[0]);
        }
        Ok(self.graph.add(Node {
            kind: Kind::Pointwise { op, inputs },
            shape,
            elem,
            op,
        }))
    }

    /// `source` read at `index`, a node of its own unless that is the source itself.
    fn access(
        &mut self,
        source: NodeId,
        index: Vec<Index>,
        shape: &[Size],
        op: OperationRef<'c, 'c>,
    ) -> NodeId {
        let node = &self.graph.nodes[source];
        if node.shape == shape && index == identity(shape.len()) {
            return source;
        }
        let elem = node.elem;
        let kind = match node.kind {
            Kind::Splat(bits) => Kind::Splat(bits),
            _ => Kind::Access { source, index },
        };
        self.graph.add(Node {
            kind,
            shape: shape.to_vec(),
            elem,
            op,
        })
    }

    fn constant(&self, op: OperationRef<'c, 'c>) -> Result<Kind<'c>, Failed> {
        let attribute = op
            .attribute("value")
            .map_err(|_| error(op, "expected a value"))?;
        crate::cpu::lower_kernels::constants::bits_of(attribute)
            .map(|bits| match bits {
                (bits, true) => Kind::Splat(bits[0]),
                (bits, false) => Kind::Dense(bits),
            })
            .ok_or_else(|| error(op, "not supported yet: a constant of this type"))
    }

    fn slice(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operand = operands_of(op)[0];
        let source = self.node(operand, op)?;
        let from = self.typed(operand.r#type(), op)?;
        let to = self.typed(result_of(op, 0).r#type(), op)?;
        let lead = usize::from(from.batched);
        let offsets = integers(op, "static_offsets");
        let strides = integers(op, "static_strides");
        let sizes = integers(op, "static_sizes");
        let computed = offsets.iter().chain(&strides).any(|n| *n == i64::MIN);
        let rows = !from.batched || offsets[0] == 0 && strides[0] == 1;
        let refuse = || error(op, "not supported yet: a slice whose bounds are computed");
        if computed || !rows || from.batched != to.batched {
            return Err(refuse());
        }
        // A dim of size 1 that the result has no place for is dropped.
        let mut dim = 0;
        let mut index = Vec::new();
        for axis in lead..from.shape.len() + lead {
            let size = sizes[axis];
            let left = from.shape.len() + lead - axis;
            let fits = to.shape.get(dim).is_some_and(|to| match *to {
                Size::Known(known) => known == size,
                length => {
                    size == i64::MIN && offsets[axis] == 0 && length == from.shape[axis - lead]
                }
            });
            let kept = fits && (size != 1 || left <= to.shape.len() - dim);
            if !kept && size != 1 {
                return Err(refuse());
            }
            let mut linear = Index::constant(offsets[axis]);
            if kept {
                linear = linear.plus(&Index::var(dim).times(strides[axis]));
                dim += 1;
            }
            index.push(linear);
        }
        let node = self.access(source, index, &to.shape, op);
        self.values.insert(key(result_of(op, 0)), node);
        Ok(())
    }

    fn concat(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let to = self.typed(result_of(op, 0).r#type(), op)?;
        let axis = op
            .attribute("dim")
            .ok()
            .and_then(|dim| IntegerAttribute::try_from(dim).ok())
            .map_or(0, |dim| dim.value() as usize);
        let dim = axis.checked_sub(usize::from(to.batched));
        let Some(dim) = dim.filter(|dim| matches!(to.shape[*dim], Size::Known(_))) else {
            return Err(error(
                op,
                "not supported yet: a concatenation along a dim of unknown size",
            ));
        };
        let inputs = operands_of(op)
            .into_iter()
            .map(|operand| self.node(operand, op))
            .collect::<Result<_, _>>()?;
        self.define(op, Kind::Concat { inputs, dim })?;
        Ok(())
    }

    /// Dims of one entry come and go, and a dim of known size becomes several; so a dim of the
    /// source is a sum of the result's.
    fn reshape(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let operand = operands_of(op)[0];
        let source = self.node(operand, op)?;
        let from = self.typed(operand.r#type(), op)?;
        let to = self.typed(result_of(op, 0).r#type(), op)?;
        let refuse = || error(op, "not supported yet: this reshape in a kernel over calls");
        let mut index = vec![];
        let mut dim = 0;
        let last = from.shape.len();
        for (axis, size) in from.shape.iter().enumerate() {
            let mut linear = Index::constant(0);
            // Dims of the result whose sizes multiply to this one's.
            let mut group = vec![];
            let mut known = 1;
            loop {
                let done = match size {
                    Size::Known(size) => known == *size,
                    length => group.iter().any(|dim: &usize| to.shape[*dim] == *length),
                };
                match to.shape.get(dim) {
                    Some(Size::Known(1)) => {}
                    Some(next) if !done => {
                        if let Size::Known(next) = next {
                            known *= next;
                        }
                    }
                    _ if done => break,
                    _ => return Err(refuse()),
                }
                if done && axis + 1 < last && from.shape[axis + 1] == Size::Known(1) {
                    break;
                }
                group.push(dim);
                dim += 1;
            }
            let mut stride = 1;
            for dim in group.iter().rev() {
                linear = linear.plus(&Index::var(*dim).times(stride));
                stride *= match to.shape[*dim] {
                    Size::Known(size) => size,
                    Size::Length(_) => 1,
                };
            }
            index.push(linear);
        }
        if dim < to.shape.len() && to.shape[dim..].iter().any(|size| *size != Size::Known(1)) {
            return Err(refuse());
        }
        let node = self.access(source, index, &to.shape, op);
        self.values.insert(key(result_of(op, 0)), node);
        Ok(())
    }

    fn structured(&mut self, op: OperationRef<'c, 'c>, name: &str) -> Outcome {
        let structure = self.structure(op, name)?;
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
                    Place::Loop(number) if axis < lead => {
                        if batch.is_some_and(|batch| batch != *number) {
                            return Err(error(op, "not supported yet: this use of the batch dim"));
                        }
                        batch = Some(*number);
                    }
                    Place::Loop(number) => sizes[*number] = Some(ty.shape[axis - lead]),
                    Place::Constant(_) => {}
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
        let index_of = |map: &[Place]| -> Vec<Index> {
            map.iter()
                .filter_map(|place| match place {
                    Place::Loop(number) => dim_of(*number).map(Index::var),
                    Place::Constant(at) => Some(Index::constant(*at)),
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
                    .filter(|place| **place != Place::Loop(batch.unwrap_or(usize::MAX)))
                    .position(|place| *place == Place::Loop(loops[dim]))
            };
            let index: Option<Vec<Index>> = kept
                .iter()
                .map(|dim| place_of(*dim).map(Index::var))
                .collect();
            let Some(index) = index.filter(|index| index.len() == typed.shape.len()) else {
                return Err(error(op, "not supported yet: this output map"));
            };
            let value = match combiner {
                None => value,
                Some(combiner) => {
                    let shape: Vec<Size> = kept.iter().map(|dim| domain[*dim]).collect();
                    // The init has the result's order of dims, the fold that of the domain.
                    let mut order = vec![Index::default(); kept.len()];
                    for (at, dim) in kept.iter().enumerate() {
                        if let Some(place) = place_of(*dim) {
                            order[place] = Index::var(at);
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
            let name = name_of(operation);
            let is_end = name == "linalg.yield";
            let is_combiner = combiner == Some(operation);
            if name == "linalg.index" {
                let number = crate::ir::integer_attribute(operation, "dim").unwrap_or(0) as usize;
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
            if name == "arith.constant" {
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
            let plain = name.starts_with("arith.") || name.starts_with("math.");
            if !plain {
                return Err(error(
                    operation,
                    &format!("not supported yet in a kernel over calls: `{name}`"),
                ));
            }
            let node = self.pointwise(operation, inputs, domain.to_vec(), typed.elem)?;
            nodes.insert(key(result_of(operation, 0)), node);
        }
        Ok(vec![])
    }

    fn structure(&self, op: OperationRef<'c, 'c>, name: &str) -> Result<Structure, Failed> {
        let operands = operands_of(op);
        let rank = |value: Val<'c>| TensorType::of_value(value).map_or(0, |ty| ty.rank());
        let whole = |rank: usize| (0..rank).map(Place::Loop).collect::<Vec<_>>();
        if name == "linalg.reduce" {
            let dims = integers(op, "dimensions");
            let rank = rank(operands[0]);
            let folds: Vec<bool> = (0..rank)
                .map(|axis| dims.contains(&(axis as i64)))
                .collect();
            let kept: Vec<Place> = (0..rank)
                .filter(|axis| !folds[*axis])
                .map(Place::Loop)
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
        if name == "linalg.map" {
            let rank = rank(result_of(op, 0));
            return Ok(Structure {
                maps: vec![whole(rank); operands.len()],
                folds: vec![false; rank],
                inputs: operands.len() - 1,
            });
        }
        let refuse = || error(op, &format!("not supported yet: this form of `{name}`"));
        if let Some(named) = named_structure(name) {
            return Ok(match indexing_maps(op) {
                Some(maps) => Structure { maps, ..named },
                None => named,
            });
        }
        let maps = indexing_maps(op).ok_or_else(refuse)?;
        let kinds = op.attribute("iterator_types").map_err(|_| refuse())?;
        let folds = elements_of(kinds)
            .iter()
            .map(|kind| kind.to_string().contains("reduction"))
            .collect();
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
    (yields && once && COMBINERS.contains(&name_of(combiner).as_str())).then_some(combiner)
}
