//! Reads a per-instance kernel at the loop level: its memory and the values of its stages as a graph, and
//! the stages.
//!
//! A value of a region is a node over the loops that it depends on and no others, so that a fold is known
//! to be the same for all others.

use std::collections::HashMap;

use cohort_abi::manifest::{Division, Elem, Extent, Padding};
use cohort_dialects::builder::{Op, Val, arguments_of, operands_of, operations_of, result_of};
use cohort_dialects::keys::{self, Key};
use melior::ir::{Attribute, BlockRef, OperationRef, ValueLike, operation::OperationLike};

use super::graph::{Form, Graph, Kind, Node, NodeId, Size};
use super::read::size_of;
use super::stages::{Calls, Matmul, Nest, OnlineSoftmax, Side, Stage, Store};
use super::write::Declared;
use crate::kernel::affine::Affine;
use crate::kernel::loop_level::{Memory, OperandKind, to_affines};
use crate::kernel::rows::constants::bits_of;
use crate::pass::{Failed, Outcome, error};
use crate::support::dims::{self, length_names};
use crate::support::ir::{
    ValueKey, blocks_of, elem_of, elements_of, integer_attribute, integers, key, name_attribute,
};

const LENGTHS_FIRST: &str = "expected an operand for each of `lengths`, and all others after";

/// A kernel of calls. The results of its graph are the memory of the results.
pub struct Kernel<'c> {
    /// What is computed.
    pub graph: Graph<'c>,
    /// Where it lies.
    pub memory: Declared<'c>,
    /// The stages, in the order in which they run.
    pub stages: Vec<Stage>,
    /// The operation of each stage.
    pub operations: Vec<OperationRef<'c, 'c>>,
    /// The wave of each stage, counted up; a stage that is in none is one by itself.
    pub waves: Vec<usize>,
    /// What all calls have in common.
    pub calls: Calls,
}

/// Reads a kernel at the loop level; what it cannot read it reports at the operation.
pub fn read<'c>(op: OperationRef<'c, 'c>) -> Result<Kernel<'c>, Failed> {
    let lengths = length_names(op);
    let rows = dims::rows(op).into_iter().map(|row| size_of(row, &lengths));
    let rows = rows.collect::<Option<Vec<_>>>();
    let mut reader = Reader {
        kernel: Kernel {
            graph: Graph {
                lengths: lengths.len(),
                rows: rows.ok_or_else(|| {
                    error(op, "expected `rows` to be dims of `lengths` or numbers")
                })?,
                ..Graph::default()
            },
            memory: Declared::default(),
            stages: vec![],
            operations: vec![],
            waves: vec![],
            calls: Calls::default(),
        },
        lengths,
        memory: HashMap::new(),
    };
    for inner in blocks_of(op).into_iter().flat_map(operations_of) {
        match Op::of(inner) {
            Some(Op::RaggedCalls) if reader.kernel.graph.operands.len() < reader.lengths.len() => {
                return Err(error(op, LENGTHS_FIRST));
            }
            Some(Op::RaggedCalls) => reader.calls(inner)?,
            _ => reader.declare(inner)?,
        }
    }
    Ok(reader.kernel)
}

struct Reader<'c> {
    kernel: Kernel<'c>,
    lengths: Vec<String>,
    /// Memory that is declared, and its node.
    memory: HashMap<ValueKey, NodeId>,
}

/// A value of a region: a node, and the loops that are its dims.
#[derive(Clone)]
struct Value {
    node: NodeId,
    dims: Vec<usize>,
}

/// The regions of a stage: what is known in them, the sizes of all loops, and those around.
struct Region {
    known: HashMap<ValueKey, Value>,
    sizes: Vec<Size>,
    around: Vec<usize>,
}

impl<'c> Reader<'c> {
    /// Sizes, of which those that are not known are named, in order.
    fn sizes(
        &self,
        op: OperationRef<'c, 'c>,
        numbers: &[i64],
        names: Key<'_>,
    ) -> Result<Vec<Size>, Failed> {
        let mut names = op.attribute(&names).map_or(vec![], elements_of).into_iter();
        let sizes = numbers.iter().map(|size| match size {
            &i64::MIN => size_of(names.next()?, &self.lengths),
            size => Some(Size::Known(*size)),
        });
        let sizes = sizes.collect::<Option<Vec<_>>>();
        sizes.ok_or_else(|| error(op, "expected dims of `lengths` or numbers"))
    }

    fn declare(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let value = result_of(op, 0);
        let memory = Memory::of(value).ok_or_else(|| error(op, "expected memory"))?;
        let graph = &mut self.kernel.graph;
        let kind = match Op::of(op) {
            Some(Op::RaggedOperand) => {
                let kind = integer_attribute(op, keys::KIND).and_then(OperandKind::from_number);
                let (kind, form) = match kind {
                    Some(OperandKind::Length) => (Kind::Length, Form::Length),
                    Some(OperandKind::Scalar) => (Kind::Scalar, Form::Scalar),
                    Some(OperandKind::Row) => (Kind::Operand, Form::Row),
                    Some(OperandKind::Expanded) => (Kind::Operand, Form::Ragged),
                    _ => {
                        let message =
                            "not supported yet: a list as the operand of a kernel over calls";
                        return Err(error(op, message));
                    }
                };
                let is_in_front = graph.operands.len() < self.lengths.len();
                if is_in_front != matches!(form, Form::Length) {
                    return Err(error(op, LENGTHS_FIRST));
                }
                graph.operands.push((graph.nodes.len(), form));
                kind
            }
            Some(Op::RaggedResult) => {
                graph.results.push(graph.nodes.len());
                Kind::Operand
            }
            Some(Op::RaggedParam) => Kind::Param(
                name_attribute(op, keys::PARAM).ok_or_else(|| error(op, "expected a parameter"))?,
            ),
            _ => {
                let bits = op.attribute(&keys::VALUE).ok().and_then(bits_of);
                let (bits, splat) = bits.ok_or_else(|| error(op, "expected a constant's bits"))?;
                Kind::Dense(match splat {
                    true => vec![bits[0]; memory.elements() as usize],
                    false => bits,
                })
            }
        };
        let shape = match kind {
            Kind::Length | Kind::Scalar => vec![],
            _ => self.sizes(op, &memory.shape, keys::DIMS)?,
        };
        let node = self.node(kind, shape, memory.elem, op);
        self.memory.insert(key(value), node);
        match self.kernel.graph.results.last() == Some(&node) {
            true => self.kernel.memory.results.push(value),
            false => _ = self.kernel.memory.of_node.insert(node, value),
        }
        Ok(())
    }

    fn node(
        &mut self,
        kind: Kind<'c>,
        shape: Vec<Size>,
        elem: Elem,
        op: OperationRef<'c, 'c>,
    ) -> NodeId {
        self.kernel.graph.add(Node {
            kind,
            shape,
            elem,
            op,
        })
    }

    fn calls(&mut self, op: OperationRef<'c, 'c>) -> Outcome {
        let number = |name: Key<'_>| integer_attribute(op, name);
        let rising = integers(op, keys::RISING).into_iter().map(|at| at as usize);
        let division = match (number(keys::GRAIN), self.kernel.graph.rows.first()) {
            (Some(tile), Some(Size::Length(length))) => Some(Division {
                length: *length,
                tile: tile as u64,
                shared: number(keys::SHARED).unwrap_or(0) as u64,
                rising: rising.collect(),
            }),
            _ => None,
        };
        let flops = op.attribute(&keys::FLOPS).map_or(vec![], elements_of);
        let flops = flops.into_iter().map(|factors| self.extent(factors));
        let padding = match integers(op, keys::PADDING)[..] {
            [rows, bulk] => Some(Padding {
                rows: rows as u32,
                bulk: bulk as u32,
            }),
            _ => None,
        };
        self.kernel.calls = Calls {
            split: number(keys::SPLIT).is_some(),
            hoisted: op.attribute(&keys::HOISTED).is_ok(),
            division,
            flops: flops.collect(),
            padding,
        };
        let waves = blocks_of(op).into_iter().flat_map(operations_of);
        let stages = waves.enumerate().flat_map(|(wave, op)| {
            let stages = match Op::RaggedWave.is(op) {
                true => blocks_of(op).into_iter().flat_map(operations_of).collect(),
                false => vec![op],
            };
            stages.into_iter().map(move |stage| (wave, stage))
        });
        for (wave, stage) in stages {
            self.kernel.operations.push(stage);
            self.kernel.waves.push(wave);
            let stage = match Op::of(stage) {
                Some(Op::RaggedMatmul) => Stage::Matmul(self.matmul(stage)?),
                Some(Op::RaggedOnlineSoftmax) => Stage::Online(self.online(stage)?),
                _ => Stage::Nest(self.nest(stage)?),
            };
            self.kernel.stages.push(stage);
        }
        Ok(())
    }

    /// The product of lengths and numbers.
    fn extent(&self, factors: Attribute<'c>) -> Extent {
        let mut extent = Extent {
            lengths: vec![],
            times: 1,
        };
        for factor in elements_of(factors) {
            match size_of(factor, &self.lengths) {
                Some(Size::Length(length)) => extent.lengths.push(length),
                Some(Size::Known(times)) => extent.times *= times as u64,
                None => {}
            }
        }
        extent
    }

    fn nest(&mut self, stage: OperationRef<'c, 'c>) -> Result<Nest, Failed> {
        let expected = || error(stage, "expected a nest with one store");
        let over = self.over(stage, keys::OVER, keys::DIMS)?;
        let mut region = Region::new(&over);
        let block = block_of(stage, 0)?;
        self.region(&mut region, block)?;
        let store = operations_of(block).into_iter();
        let store = store.filter(|op| Op::RaggedStore.is(*op)).last();
        let store = store.ok_or_else(expected)?;
        let [value, memory] = operands_of(store)[..] else {
            return Err(expected());
        };
        let (value, at) = region.value(value, stage)?.read();
        let store = Store {
            value,
            at,
            lanes: lanes_of(stage),
            result: self.result(memory, stage)?,
            to: region.index(store)?,
        };
        Ok(Nest { over, store })
    }

    fn matmul(&mut self, stage: OperationRef<'c, 'c>) -> Result<Matmul, Failed> {
        let over = self.over(stage, keys::OVER, keys::DIMS)?;
        let depth = self.over(stage, keys::DEPTH, keys::DEPTH_DIMS)?;
        let blocks = blocks_of_stage(stage)?;
        let result = self.result(operands_of(stage)[0], stage)?;
        let around = [&over[..], &depth[..]].concat();
        let to = Region::new(&over).index(stage)?;
        let finish = match blocks_of(stage).len() {
            2 => None,
            _ => Some(self.yielded(stage, 2, &over, &[])?),
        };
        Ok(Matmul {
            depth: depth[0],
            rows: integer_attribute(stage, keys::ROWS),
            blocks,
            left: self.side(stage, 0, &around, keys::LEFT_ALONG_DEPTH)?,
            right: self.side(stage, 1, &around, keys::RIGHT_ALONG_DEPTH)?,
            onto: stage.attribute(&keys::ONTO).is_ok(),
            result,
            until: integer_attribute(stage, keys::UNTIL),
            finish: finish.map(|(value, at)| Store {
                value,
                at,
                lanes: lanes_of(stage),
                result,
                to: to.clone(),
            }),
            by_rows: stage.attribute(&keys::BY_ROWS).is_ok(),
            to,
            over,
        })
    }

    fn online(&mut self, stage: OperationRef<'c, 'c>) -> Result<OnlineSoftmax, Failed> {
        let over = self.over(stage, keys::OVER, keys::DIMS)?;
        let keys = self.over(stage, keys::KEYS, keys::KEY_DIMS)?;
        let depth = integer_attribute(stage, keys::DEPTH);
        let depth = depth.ok_or_else(|| error(stage, "expected a number `depth`"))?;
        let of_keys = [&over[..], &keys[..]].concat();
        let of_terms = [&of_keys[..], &[Size::Known(depth)]].concat();
        // The first product's elements lie by key, the sums by row and column.
        let row = self.node(Kind::Operand, keys.clone(), Elem::F32, stage);
        let region = Region::new(&of_keys);
        let product = self.access(&region, row, vec![Affine::var(over.len())], stage);
        let scores = self.yielded(stage, 2, &of_keys, &[product])?;
        let sums = self.node(Kind::Operand, over.clone(), Elem::F32, stage);
        if let Some(argument) = arguments_of(block_of(stage, 4)?).first() {
            self.memory.insert(key(*argument), sums);
        }
        let (value, at) = self.yielded(stage, 4, &over, &[])?;
        let masked = stage.attribute(&keys::MASKED).ok().and_then(bits_of);
        let until = integer_attribute(stage, keys::UNTIL).zip(masked);
        Ok(OnlineSoftmax {
            keys: keys[0],
            depth,
            blocks: blocks_of_stage(stage)?,
            left: self.side(stage, 0, &of_terms, keys::LEFT_ALONG_DEPTH)?,
            right: self.side(stage, 1, &of_terms, keys::RIGHT_ALONG_DEPTH)?,
            scores,
            product: row,
            values: self.side(stage, 3, &of_keys, keys::VALUES_ALONG_KEYS)?,
            until: until.map(|(until, (masked, _))| (until, masked[0])),
            finish: Store {
                value,
                at,
                lanes: lanes_of(stage),
                result: self.result(operands_of(stage)[0], stage)?,
                to: Region::new(&over).index(stage)?,
            },
            sums,
            over,
        })
    }

    fn side(
        &mut self,
        stage: OperationRef<'c, 'c>,
        number: usize,
        over: &[Size],
        along: Key<'_>,
    ) -> Result<Side, Failed> {
        let (value, at) = self.yielded(stage, number, over, &[])?;
        Ok(Side {
            value,
            at,
            along_depth: stage.attribute(&along).is_ok(),
        })
    }

    /// What a region of a stage yields, whose arguments are such values.
    fn yielded(
        &mut self,
        stage: OperationRef<'c, 'c>,
        number: usize,
        over: &[Size],
        arguments: &[Value],
    ) -> Result<(NodeId, Vec<Affine>), Failed> {
        let block = block_of(stage, number)?;
        let mut region = Region::new(over);
        for (argument, value) in arguments_of(block).into_iter().zip(arguments) {
            region.known.insert(key(argument), value.clone());
        }
        self.region(&mut region, block)?;
        let end = operations_of(block).pop();
        let value = end.and_then(|end| operands_of(end).first().copied());
        let value = value.ok_or_else(|| error(stage, "expected regions that yield"))?;
        Ok(region.value(value, stage)?.read())
    }

    fn over(
        &self,
        stage: OperationRef<'c, 'c>,
        sizes: Key<'_>,
        names: Key<'_>,
    ) -> Result<Vec<Size>, Failed> {
        self.sizes(stage, &integers(stage, sizes), names)
    }

    /// The number of the result that is memory.
    fn result(&self, memory: Val<'c>, stage: OperationRef<'c, 'c>) -> Result<usize, Failed> {
        let memory = self.memory.get(&key(memory));
        let mut results = self.kernel.graph.results.iter();
        let result = results.position(|result| Some(result) == memory);
        result.ok_or_else(|| error(stage, "expected a result of the kernel"))
    }

    /// Reads the values of a region.
    fn region(&mut self, region: &mut Region, block: BlockRef<'c, 'c>) -> Outcome {
        for op in operations_of(block) {
            let name = Op::of(op);
            if matches!(name, Some(Op::RaggedStore | Op::RaggedYield)) {
                continue;
            }
            let result = result_of(op, 0);
            let elem = elem_of(result.r#type());
            let elem = elem.ok_or_else(|| error(op, "expected f32, i32 or i1"))?;
            let value = match name {
                Some(Op::RaggedLoad) => {
                    let source = self.memory.get(&key(operands_of(op)[0])).copied();
                    let source =
                        source.ok_or_else(|| error(op, "expected memory of the kernel"))?;
                    self.access(region, source, region.index(op)?, op)
                }
                Some(Op::RaggedPosition) => {
                    let source = self.node(Kind::Iota(0), vec![Size::Known(1)], elem, op);
                    self.access(region, source, region.index(op)?, op)
                }
                Some(Op::RaggedReduce) => self.reduce(region, op)?,
                Some(Op::ArithConstant) => {
                    let bits = op.attribute(&keys::VALUE).ok().and_then(bits_of);
                    let (bits, _) = bits.ok_or_else(|| error(op, "expected a constant's bits"))?;
                    Value {
                        node: self.node(Kind::Splat(bits[0]), vec![], elem, op),
                        dims: vec![],
                    }
                }
                _ => {
                    let inputs = operands_of(op).into_iter();
                    let inputs = inputs.map(|input| region.value(input, op));
                    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
                    let mut dims: Vec<usize> =
                        inputs.iter().flat_map(|input| input.dims.clone()).collect();
                    dims.sort_unstable();
                    dims.dedup();
                    let inputs = inputs
                        .iter()
                        .map(|input| self.view(region, input, &dims, op));
                    let kind = Kind::Pointwise {
                        op,
                        inputs: inputs.collect(),
                    };
                    Value {
                        node: self.node(kind, region.shape(&dims), elem, op),
                        dims,
                    }
                }
            };
            region.known.insert(key(result), value);
        }
        Ok(())
    }

    fn reduce(&mut self, region: &mut Region, op: OperationRef<'c, 'c>) -> Result<Value, Failed> {
        let expected = || error(op, "expected a fold that ends in a combining operation");
        let start = region.value(operands_of(op)[0], op)?;
        let over = self.sizes(op, &integers(op, keys::OVER), keys::DIMS)?;
        let folded: Vec<usize> = (0..over.len())
            .map(|dim| region.sizes.len() + dim)
            .collect();
        region.sizes.extend(over);
        let around = region.around.len();
        region.around.extend(&folded);
        let block = block_of(op, 0)?;
        let combiner = operations_of(block).into_iter().rev().nth(1);
        let combiner = combiner.ok_or_else(expected)?;
        let argument = Value {
            node: start.node,
            dims: vec![],
        };
        for value in arguments_of(block) {
            region.known.insert(key(value), argument.clone());
        }
        self.region(region, block)?;
        region.around.truncate(around);
        let input = operands_of(combiner).get(1).copied();
        let input = region.value(input.ok_or_else(expected)?, op)?;
        let kept = input.dims.iter().chain(&start.dims).copied();
        let mut kept: Vec<usize> = kept.filter(|dim| !folded.contains(dim)).collect();
        kept.sort_unstable();
        kept.dedup();
        let domain: Vec<usize> = kept.iter().chain(&folded).copied().collect();
        let kind = Kind::Reduce {
            input: self.view(region, &input, &domain, op),
            dims: (kept.len()..domain.len()).collect(),
            combiner,
            init: self.view(region, &start, &kept, op),
        };
        let elem = self.kernel.graph.nodes[input.node].elem;
        Ok(Value {
            node: self.node(kind, region.shape(&kept), elem, op),
            dims: kept,
        })
    }

    /// A source at an index of loops, as a value over the loops that it depends on.
    fn access(
        &mut self,
        region: &Region,
        source: NodeId,
        index: Vec<Affine>,
        op: OperationRef<'c, 'c>,
    ) -> Value {
        let mut dims: Vec<usize> = index
            .iter()
            .flat_map(|index| index.terms.iter().map(|(dim, _)| *dim))
            .collect();
        dims.sort_unstable();
        dims.dedup();
        let own: Vec<Affine> = (0..region.sizes.len())
            .map(|dim| dims.iter().position(|of| *of == dim))
            .map(|at| at.map_or(Affine::default(), Affine::var))
            .collect();
        let index = index.iter().map(|index| index.at(&own)).collect();
        let elem = self.kernel.graph.nodes[source].elem;
        let kind = Kind::Access { source, index };
        Value {
            node: self.node(kind, region.shape(&dims), elem, op),
            dims,
        }
    }

    /// A value as one over more loops.
    fn view(
        &mut self,
        region: &Region,
        value: &Value,
        dims: &[usize],
        op: OperationRef<'c, 'c>,
    ) -> NodeId {
        if value.dims == dims {
            return value.node;
        }
        let index = value.dims.iter();
        let index = index.filter_map(|dim| dims.iter().position(|of| of == dim));
        let kind = match self.kernel.graph.nodes[value.node].kind {
            Kind::Splat(bits) => Kind::Splat(bits),
            _ => Kind::Access {
                source: value.node,
                index: index.map(Affine::var).collect(),
            },
        };
        let elem = self.kernel.graph.nodes[value.node].elem;
        self.node(kind, region.shape(dims), elem, op)
    }
}

fn block_of<'c>(stage: OperationRef<'c, 'c>, number: usize) -> Result<BlockRef<'c, 'c>, Failed> {
    let block = blocks_of(stage).get(number).copied();
    block.ok_or_else(|| error(stage, "expected a stage with its regions"))
}

/// The two sizes of a stage's blocks.
fn blocks_of_stage(stage: OperationRef<'_, '_>) -> Result<[i64; 2], Failed> {
    let blocks = integers(stage, keys::BLOCKS).try_into();
    blocks.map_err(|_| error(stage, "expected two sizes of blocks"))
}

fn lanes_of(stage: OperationRef<'_, '_>) -> Option<usize> {
    integer_attribute(stage, keys::LANES).map(|lanes| lanes as usize)
}

impl Value {
    /// The node, and the loops where it is read.
    fn read(&self) -> (NodeId, Vec<Affine>) {
        let at = self.dims.iter().map(|dim| Affine::var(*dim));
        (self.node, at.collect())
    }
}

impl Region {
    /// Of a stage's loops.
    fn new(over: &[Size]) -> Region {
        Region {
            known: HashMap::new(),
            sizes: over.to_vec(),
            around: (0..over.len()).collect(),
        }
    }

    fn value<'c>(&self, value: Val<'c>, op: OperationRef<'c, 'c>) -> Result<Value, Failed> {
        let value = self.known.get(&key(value)).cloned();
        value.ok_or_else(|| error(op, "expected a value of the stage"))
    }

    fn shape(&self, dims: &[usize]) -> Vec<Size> {
        dims.iter().map(|dim| self.sizes[*dim]).collect()
    }

    /// The indices that an operation's map makes of the loops around.
    fn index(&self, op: OperationRef<'_, '_>) -> Result<Vec<Affine>, Failed> {
        let linears = op.attribute(&keys::ADDRESS).ok().and_then(to_affines);
        let linears = linears.ok_or_else(|| error(op, "expected a linear map"))?;
        let around: Vec<Affine> = self.around.iter().copied().map(Affine::var).collect();
        Ok(linears.iter().map(|linear| linear.at(&around)).collect())
    }
}
