//! Reads the launches of a row-wise kernel at the loop level: tiles of products, and stages over whole rows.

use cohort_abi::gpu::Precision;
use cohort_dialects::builder::{Op, Val, operands_of, operations_of, results_of};
use cohort_dialects::keys::{self, Key};
use cohort_passes::kernel::affine::Affine;
use cohort_passes::kernel::description::ConstantDescription;
use cohort_passes::kernel::loop_level::{is_declaration, launches_of, to_affine};
use cohort_passes::kernel::rows::body::{Instruction, Store, ValueId};
use cohort_passes::kernel::rows::layout::Place;
use cohort_passes::pass::error;
use cohort_passes::support::ir::{blocks_of, defining_op, integers, key, nested_ops};
use melior::ir::{BlockRef, OperationRef, operation::OperationLike};

use super::Result;
use super::tile::{Gates, Panels, Resident, STAGES, Size, Unit, WARPS, rows_in_cluster};
use crate::gpu::precision;
use crate::read_rows::body::{Body, block_of};
use crate::read_rows::folds::{Fold, List};
use crate::read_rows::kernel::{Kernel, number};
use crate::read_rows::loops::Loops;

pub enum Launch<'c> {
    Tile(Box<Tile<'c>>),
    Rows(Rows<'c>),
}

/// Products, and the pointwise values that read them, over one iteration space.
pub struct Tile<'c> {
    pub op: OperationRef<'c, 'c>,
    /// Its last dim is the columns; what comes before counts rows of each row of the kernel.
    pub domain: Vec<i64>,
    pub chains: Vec<Chain<'c>>,
    /// It loads sums by their number, counted over all chains.
    pub body: Body<'c>,
    pub precision: Precision,
    pub small: Size,
    /// Each with the rows from which on it is used.
    pub large: (Size, i64),
    pub largest: Option<(Size, i64)>,
    /// The same for cards whose warpgroups multiply.
    pub grouped: Option<(Form, i64)>,
    /// The size for flushes that are one launch, whose weights stay in shared memory.
    pub resident: Option<Resident>,
    /// The same for clusters.
    pub clustered: Option<Resident>,
}

/// How a block computes its tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It has one, and copies the terms of both sides to shared memory step by step.
    Streamed(Size),
    /// It keeps its weights in shared memory and goes on from rows to rows.
    Held(Panels),
}

/// A sum of products, `init + a₀·w₀ + a₁·w₁ + …`, of each gate.
pub struct Chain<'c> {
    pub segments: Vec<Segment>,
    /// What the sums start from.
    pub init: Body<'c>,
    pub starts: Vec<ValueId>,
    /// The column from which on each gate is.
    pub gates: Vec<i64>,
}

pub struct Segment {
    pub left: Place,
    /// Over the dims before the columns.
    pub left_address: Affine,
    pub right: Place,
    /// Over terms and columns.
    pub right_address: Affine,
    pub k: i64,
    pub columns: i64,
    /// Elements of a copy of the left side, and of each gate's columns.
    pub copies: Vec<i64>,
    /// The weight as it is rounded when it is loaded.
    pub rounded: Option<ConstantDescription>,
    /// The same, column after column, where warpgroups multiply.
    pub by_columns: Option<ConstantDescription>,
}

/// Stages over whole rows.
pub struct Rows<'c> {
    pub op: OperationRef<'c, 'c>,
    /// Not for each row, but once.
    pub once: bool,
    /// Rows that a block computes.
    pub block_rows: i64,
    pub stages: Vec<Stage<'c>>,
}

pub enum Stage<'c> {
    /// Pointwise values of one domain, of which a thread has some neighbours.
    Group(Body<'c>, i64),
    Fold(Box<Fold<'c>>),
    List(Box<List<'c>>),
    Loops(Box<Loops<'c>>),
}

/// The launches of a kernel, in order, each with the number of its wave.
pub fn read<'c>(kernel: &Kernel<'c>) -> Result<Vec<(usize, Launch<'c>)>> {
    let operations = blocks_of(kernel.op).into_iter().flat_map(operations_of);
    let operations: Vec<_> = operations.filter(|op| !is_declaration(*op)).collect();
    let mut launches = vec![];
    for (wave, of_wave) in launches_of(&operations).into_iter().enumerate() {
        let of_wave = match of_wave[..] {
            [op] if Op::RaggedWave.is(op) => {
                let inside: Vec<_> = blocks_of(op).into_iter().flat_map(operations_of).collect();
                launches_of(&inside)
            }
            _ => vec![of_wave],
        };
        for operations in of_wave {
            launches.push((wave, Launch::read(kernel, &operations)?));
        }
    }
    Ok(launches)
}

impl<'c> Launch<'c> {
    fn read(kernel: &Kernel<'c>, operations: &[OperationRef<'c, 'c>]) -> Result<Launch<'c>> {
        let stages = |operations: Vec<OperationRef<'c, 'c>>| {
            let stages = operations.into_iter().map(|op| Stage::read(kernel, op));
            stages.collect::<Result<Vec<_>>>()
        };
        Ok(match operations[..] {
            [op] if Op::RaggedTiles.is(op) => Launch::Tile(Box::new(Tile::read(kernel, op)?)),
            [op] if Op::RaggedBlocks.is(op) => Launch::Rows(Rows {
                op,
                once: false,
                block_rows: number(op, keys::OF)?,
                stages: stages(blocks_of(op).into_iter().flat_map(operations_of).collect())?,
            }),
            _ => Launch::Rows(Rows {
                op: operations[0],
                once: true,
                block_rows: 1,
                stages: stages(operations.to_vec())?,
            }),
        })
    }
}

impl<'c> Stage<'c> {
    fn read(kernel: &Kernel<'c>, op: OperationRef<'c, 'c>) -> Result<Stage<'c>> {
        Ok(match Op::of(op) {
            Some(Op::RaggedNest) => {
                let over = integers(op, keys::OVER);
                let body = Body::read(kernel, block_of(op, 0)?, over, None)?;
                Stage::Group(body, number(op, keys::BY)?)
            }
            Some(Op::RaggedFold) => Stage::Fold(Box::new(Fold::read(kernel, op)?)),
            Some(Op::RaggedFoldList) => Stage::List(Box::new(List::read(kernel, op)?)),
            Some(Op::RaggedLoops) => Stage::Loops(Box::new(Loops::read(kernel, op)?)),
            _ => return Err(error(op, "expected a stage that threads can compute")),
        })
    }
}

impl<'c> Tile<'c> {
    fn read(kernel: &Kernel<'c>, op: OperationRef<'c, 'c>) -> Result<Tile<'c>> {
        let domain = integers(op, keys::OVER);
        let precision = match op.attribute(&keys::ROUNDED) {
            Ok(rounded) => precision::read(rounded),
            Err(_) => Some(Precision::F32),
        };
        let precision = precision.ok_or_else(|| error(op, "expected a precision"))?;
        let is_rounded = op.has_attribute(&keys::WEIGHTS);
        let keeps_rows = keeps_rows(op);
        let size = |name: Key<'_>| {
            let numbers = integers(op, name);
            let ([rows, columns, depth, across], rest) = (numbers.split_first_chunk())
                .map(|(size, rest)| (*size, rest))
                .ok_or_else(|| error(op, "expected sizes of four numbers or six"))?;
            let (warps, stages) = match rest {
                [warps, stages] => (*warps, *stages),
                _ => (WARPS, STAGES),
            };
            Ok(Size {
                unit: match precision {
                    Precision::F32 => Unit::Lanes,
                    _ => Unit::Tensor {
                        precision,
                        across,
                        is_rounded,
                        keeps_rows,
                    },
                },
                rows,
                columns,
                depth,
                warps,
                stages,
            })
        };
        let largest = op.has_attribute(&keys::LARGEST).then_some(keys::LARGEST);
        let largest = largest.map(|name| Ok((size(name)?, number(op, keys::ABOVE)?)));
        let grouped = match integers(op, keys::WARPGROUPS)[..] {
            [groups, columns, stages] => {
                let numbers = [groups, columns, stages];
                let grouped = match op.has_attribute(&keys::HELD) {
                    true => Form::Held(Panels::new(numbers)),
                    false => Form::Streamed(Size::of_warpgroups(numbers)),
                };
                Some((grouped, number(op, keys::GROUPED_FROM)?))
            }
            _ => None,
        };
        let all_columns = domain.last().copied().unwrap_or(1);
        let held = |name: Key<'_>| match integers(op, name)[..] {
            [columns, terms, stages, ref at @ ..] => Some(Resident {
                columns,
                terms,
                stages,
                held_at: at.first().copied(),
                thread_rows: match name == keys::CLUSTERED {
                    true => rows_in_cluster(all_columns / columns),
                    false => 1,
                },
            }),
            _ => None,
        };
        let block = block_of(op, 0)?;
        let whole = Body::read(kernel, block, domain.clone(), None)?;
        let mut chains = vec![];
        // The number of each sum of the last products of a chain.
        let mut sums = vec![];
        for products in operations_of(block) {
            if !Op::RaggedProducts.is(products) {
                continue;
            }
            let results = results_of(products);
            let is_last = results.iter().all(|sum| !is_continued(block, *sum));
            if is_last {
                sums.extend(results.iter().map(|sum| whole.id(*sum)));
                let rounding = is_rounded.then_some(Rounding {
                    precision,
                    is_grouped: grouped.is_some(),
                });
                chains.push(Chain::read(kernel, &whole, products, rounding)?);
            }
        }
        let roots: Vec<ValueId> = whole.stores.iter().map(|store| store.value).collect();
        let (mut body, values, kept) = whole.part(&roots);
        for (store, value) in whole.stores.iter().zip(values) {
            body.stores.push(Store {
                value,
                ..store.clone()
            });
        }
        for (number, sum) in sums.iter().enumerate() {
            if let Some(value) = kept.get(sum) {
                body.values[*value].0 = Instruction::Load {
                    buffer: Place::Sum(number),
                    address: Affine::constant(0),
                };
            }
        }
        Ok(Tile {
            op,
            domain,
            chains,
            body,
            precision,
            small: size(keys::SMALL)?,
            large: (size(keys::LARGE)?, number(op, keys::FROM)?),
            largest: largest.transpose()?,
            grouped,
            resident: held(keys::RESIDENT),
            clustered: held(keys::CLUSTERED),
        })
    }

    pub fn columns(&self) -> i64 {
        self.domain.last().copied().unwrap_or(1)
    }

    /// The dims before the columns.
    pub fn outer(&self) -> &[i64] {
        self.domain.split_last().map_or(&[], |(_, outer)| outer)
    }

    /// Rows of the tile's space for each row of the kernel.
    pub fn matrix_rows(&self) -> i64 {
        self.outer().iter().product()
    }

    pub fn gates(&self) -> Gates {
        let gates = self.chains.iter().map(|chain| chain.gates.len() as i64);
        Gates {
            columns: self.columns(),
            all: gates.clone().sum(),
            most: gates.max().unwrap_or(1),
        }
    }
}

/// How the weights of a tile are rounded when they are loaded, and whether warpgroups multiply them as well.
#[derive(Clone, Copy)]
struct Rounding {
    precision: Precision,
    is_grouped: bool,
}

/// The tiles of a kernel over rows; a kernel over calls has none.
pub fn tiles<'a>(op: OperationRef<'_, 'a>) -> Result<Vec<Tile<'a>>> {
    if !nested_ops(op).into_iter().any(|op| Op::RaggedTiles.is(op)) {
        return Ok(vec![]);
    }
    let launches = read(&Kernel::read(op)?)?.into_iter();
    let tiles = launches.filter_map(|(_, launch)| match launch {
        Launch::Tile(tile) => Some(*tile),
        Launch::Rows(_) => None,
    });
    Ok(tiles.collect())
}

/// Whether the left sides of a tile's products are kept in bf16.
fn keeps_rows(tiles: OperationRef<'_, '_>) -> bool {
    let products = nested_ops(tiles).into_iter();
    let mut left = products
        .filter(|op| Op::RaggedProducts.is(*op))
        .filter_map(|op| {
            let left = operands_of(op).first().copied()?;
            defining_op(left)
        });
    left.any(|memory| memory.has_attribute(&keys::BF16))
}

/// Whether products start from a sum.
fn is_continued<'c>(block: BlockRef<'c, 'c>, sum: Val<'c>) -> bool {
    let mut products = operations_of(block).into_iter();
    products.any(|op| {
        let operands = operands_of(op);
        Op::RaggedProducts.is(op) && operands.iter().any(|value| key(*value) == key(sum))
    })
}

impl<'c> Chain<'c> {
    /// The chain that ends with some products.
    fn read(
        kernel: &Kernel<'c>,
        whole: &Body<'c>,
        last: OperationRef<'c, 'c>,
        rounding: Option<Rounding>,
    ) -> Result<Chain<'c>> {
        let mut segments = vec![Segment::read(kernel, last, rounding)?];
        let mut first = last;
        while let Some(before) = operands_of(first)
            .get(2)
            .and_then(|value| defining_op(*value))
            && Op::RaggedProducts.is(before)
        {
            segments.push(Segment::read(kernel, before, rounding)?);
            first = before;
        }
        segments.reverse();
        let starts = operands_of(first).into_iter().skip(2);
        let starts: Vec<ValueId> = starts.map(|value| whole.id(value)).collect();
        let (init, starts, _) = whole.part(&starts);
        Ok(Chain {
            segments,
            init,
            starts,
            gates: integers(last, keys::GATES),
        })
    }
}

impl Segment {
    fn read<'c>(
        kernel: &Kernel<'c>,
        op: OperationRef<'c, 'c>,
        rounding: Option<Rounding>,
    ) -> Result<Segment> {
        let operands = operands_of(op);
        let address = |name: Key<'_>| {
            let linear = op.attribute(&name).ok().and_then(to_affine);
            linear.ok_or_else(|| error(op, "expected a linear map"))
        };
        let right_address = address(keys::RIGHT_ADDRESS)?;
        let (k, columns) = (number(op, keys::K)?, number(op, keys::COLUMNS)?);
        let right = kernel.place(operands[1]);
        let param = match right {
            Place::Constant(constant) => match &kernel.constants[constant] {
                ConstantDescription::Plain { param } => Some(param.clone()),
                _ => None,
            },
            _ => None,
        };
        let rounded = |precision, by_columns| {
            let param =
                (param.clone()).ok_or_else(|| error(op, "expected a parameter as it is"))?;
            let [down @ 0..=i64::MAX, across @ 0..=i64::MAX] =
                [0, 1].map(|dim| right_address.coefficient(dim))
            else {
                let message = "expected weights to be rounded in the order of their parameter";
                return Err(error(op, message));
            };
            Ok(ConstantDescription::Rounded {
                precision,
                param,
                offset: right_address.constant as u64,
                strides: [down as u64, across as u64],
                k: k as u64,
                columns: columns as u64,
                by_columns,
            })
        };
        let of_warps = rounding.map(|of| rounded(of.precision, false));
        let of_groups = rounding.filter(|of| of.is_grouped);
        let of_groups = of_groups.map(|of| rounded(of.precision, true));
        let (rounded, by_columns) = (of_warps.transpose()?, of_groups.transpose()?);
        Ok(Segment {
            left: kernel.place(operands[0]),
            left_address: address(keys::LEFT_ADDRESS)?,
            right,
            right_address,
            k,
            columns,
            copies: integers(op, keys::COPIES),
            rounded,
            by_columns,
        })
    }
}
