//! Reads a kernel at the loop level: what it declares, and its stages.

use std::collections::HashMap;

use cohort_abi::manifest::WeightFormat;
use cohort_dialects::builder::{Op, Val, operands_of, operations_of, result_of};
use cohort_dialects::keys::{self, Key};
use cohort_passes::kernel::description::{ConstantDescription, RowType};
use cohort_passes::kernel::loop_level::{Memory, OperandKind, is_declaration};
use cohort_passes::kernel::rows::constants::bits_of;
use cohort_passes::kernel::rows::layout::{Place, Slot};
use cohort_passes::pass::{Failed, error};
use cohort_passes::support::ir::{
    ValueKey, blocks_of, integer_attribute, key, name_attribute, nested_ops,
};
use melior::ir::{OperationRef, operation::OperationLike};

pub struct Operand {
    pub kind: OperandKind,
    pub memory: Memory,
}

pub struct Kernel<'c> {
    pub op: OperationRef<'c, 'c>,
    pub operands: Vec<Operand>,
    pub results: Vec<Memory>,
    /// In the order of the table of constants.
    pub constants: Vec<ConstantDescription>,
    pub slots: Vec<Slot>,
    /// Rows of a block, and of what the rows of a thread are a multiple.
    pub block_rows: i64,
    pub row_tile: i64,
    /// The rows of all calls are one loop.
    pub fused: bool,
    /// Run once a call.
    pub shared: Vec<OperationRef<'c, 'c>>,
    /// Run for every block of rows.
    pub rows: Vec<OperationRef<'c, 'c>>,
    places: HashMap<ValueKey, Place>,
}

impl<'c> Kernel<'c> {
    pub fn read(op: OperationRef<'c, 'c>) -> Result<Kernel<'c>, Failed> {
        let mut kernel = Kernel {
            op,
            operands: vec![],
            results: vec![],
            constants: vec![],
            slots: vec![],
            block_rows: 1,
            row_tile: 1,
            fused: false,
            shared: vec![],
            rows: vec![],
            places: HashMap::new(),
        };
        for inner in blocks_of(op).into_iter().flat_map(operations_of) {
            match Op::of(inner) {
                Some(Op::RaggedBlocks) => {
                    kernel.block_rows = number(inner, keys::OF)?;
                    kernel.row_tile = number(inner, keys::TILE)?;
                    kernel.fused = inner.has_attribute(&keys::FUSED);
                    let stages = blocks_of(inner).into_iter().flat_map(operations_of);
                    kernel.rows = stages.collect();
                }
                _ if is_declaration(inner) => kernel.declare(inner)?,
                _ => kernel.shared.push(inner),
            }
        }
        Ok(kernel)
    }

    fn declare(&mut self, op: OperationRef<'c, 'c>) -> Result<(), Failed> {
        let value = result_of(op, 0);
        let memory = Memory::of(value).ok_or_else(|| error(op, "expected memory"))?;
        let place = match Op::of(op) {
            Some(Op::RaggedOperand) => {
                let kind = OperandKind::from_number(number(op, keys::KIND)?)
                    .ok_or_else(|| error(op, "expected a kind of operand"))?;
                self.operands.push(Operand { kind, memory });
                Place::Operand(self.operands.len() - 1)
            }
            Some(Op::RaggedResult) => {
                self.results.push(memory);
                Place::Result(self.results.len() - 1)
            }
            Some(Op::RaggedScratch) => {
                let bf16 = op.has_attribute(&keys::BF16);
                self.slots.push(Slot {
                    bytes: memory.slot_bytes(bf16),
                    rows: memory.rows,
                    product_rows: integer_attribute(op, keys::PRODUCTS).unwrap_or(0),
                    on_chip: op.has_attribute(&keys::ON_CHIP),
                    bf16,
                });
                Place::Slot(self.slots.len() - 1)
            }
            _ => Place::Constant(self.constant(op, &memory)?),
        };
        self.places.insert(key(value), place);
        Ok(())
    }

    /// The number of a constant in the table. Equal ones are one.
    fn constant(&mut self, op: OperationRef<'c, 'c>, memory: &Memory) -> Result<usize, Failed> {
        let panels = integer_attribute(op, keys::PANELS);
        let description = match (name_attribute(op, keys::PARAM), panels) {
            (Some(param), None) => ConstantDescription::Plain { param },
            (Some(param), Some(width)) => ConstantDescription::Panels {
                param,
                width: width as u64,
                format: match op.has_attribute(&keys::BF16) {
                    true => WeightFormat::Bf16,
                    false => WeightFormat::F32,
                },
            },
            (None, _) => {
                let bits = op.attribute(&keys::VALUE).ok().and_then(bits_of);
                let (bits, splat) = bits.ok_or_else(|| error(op, "expected a constant's bits"))?;
                let bits = match splat {
                    true => vec![bits[0]; memory.elements() as usize],
                    false => bits,
                };
                let elem = memory.elem;
                ConstantDescription::Dense { elem, bits }
            }
        };
        let known = self
            .constants
            .iter()
            .position(|other| *other == description);
        Ok(known.unwrap_or_else(|| {
            self.constants.push(description);
            self.constants.len() - 1
        }))
    }

    pub fn place(&self, memory: Val<'c>) -> Place {
        let place = self.places.get(&key(memory)).copied();
        place.unwrap_or_else(|| unreachable!("memory is declared by the kernel"))
    }

    /// Whether a place is a scalar of the host, which is read with the row's index.
    pub fn is_scalar(&self, place: Place) -> bool {
        match place {
            Place::Operand(operand) => self.operands[operand].kind == OperandKind::Scalar,
            _ => false,
        }
    }

    /// The memory that a stage reads or writes.
    pub fn places_of(&self, stage: OperationRef<'c, 'c>) -> Vec<Place> {
        let touching = [stage].into_iter().chain(nested_ops(stage));
        let values = touching.flat_map(operands_of);
        let places = values.filter_map(|value| self.places.get(&key(value)).copied());
        places.collect()
    }

    pub fn stages(&self) -> impl Iterator<Item = OperationRef<'c, 'c>> + '_ {
        self.shared.iter().chain(&self.rows).copied()
    }
}

/// An attribute that is a number.
pub fn number(op: OperationRef<'_, '_>, name: Key<'_>) -> Result<i64, Failed> {
    integer_attribute(op, name).ok_or_else(|| error(op, &format!("expected a number `{name}`")))
}

pub fn row_type(memory: &Memory) -> RowType {
    RowType {
        elem: memory.elem,
        shape: memory.shape.iter().map(|size| *size as u64).collect(),
    }
}
