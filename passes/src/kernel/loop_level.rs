//! What the loop level says of memory and of addresses: the types and maps of a `ragged.kernel`.

use cohort_abi::manifest::Elem;
use cohort_dialects::builder::{Builder, Op, Val};
use cohort_dialects::keys;
use melior::{
    Context,
    ir::{
        AffineExpr, AffineMap, Attribute, OperationRef, Type, ValueLike,
        operation::OperationLike,
        r#type::{IntegerType, TypeLike},
    },
};

use super::rows::layout::{elem_bytes, round_up};
use crate::kernel::affine::Affine;
use crate::support::ir::{affine_map, elem_of, top_level};

/// A module's kernels for the CPU, each with the operation that lists its stages.
pub fn kernels<'c>(module: OperationRef<'c, 'c>) -> Vec<[OperationRef<'c, 'c>; 2]> {
    let kernels = top_level(module).into_iter();
    let kernels = kernels.filter(|op| Op::RaggedKernel.is(*op));
    let with_stages = |kernel| Some([kernel, *top_level(kernel).last()?]);
    kernels.filter_map(with_stages).collect()
}

/// Those that are planned for a GPU, in a `gpu.module`.
pub fn kernels_for_gpu<'c>(module: OperationRef<'c, 'c>) -> Vec<[OperationRef<'c, 'c>; 2]> {
    let modules = top_level(module).into_iter();
    let modules = modules.filter(|op| Op::GpuModule.is(*op));
    modules.flat_map(kernels).collect()
}

/// The `ragged.calls` of a module's kernels for the CPU.
pub fn stages_of_calls<'c>(module: OperationRef<'c, 'c>) -> Vec<OperationRef<'c, 'c>> {
    let stages = kernels(module).into_iter().map(|[_, stages]| stages);
    stages.filter(|op| Op::RaggedCalls.is(*op)).collect()
}

/// Whether an operation declares memory of a `ragged.kernel`.
pub fn is_declaration(op: OperationRef<'_, '_>) -> bool {
    matches!(
        Op::of(op),
        Some(
            Op::RaggedOperand
                | Op::RaggedResult
                | Op::RaggedParam
                | Op::RaggedConstant
                | Op::RaggedScratch
        )
    )
}

/// The launches of a kernel for a GPU, or of a wave, each with its operations: `ragged.tiles` and `ragged.blocks` are
/// one each, and so are the stages between two of them, which run once; of a call each stage is one, with those behind
/// it that go on from its sums.
pub fn launches_of<'c>(operations: &[OperationRef<'c, 'c>]) -> Vec<Vec<OperationRef<'c, 'c>>> {
    let runs_once = |op: OperationRef<'c, 'c>| {
        let is_of_call = op.parent_operation().is_some_and(is_in_call);
        let is_launch = [Op::RaggedTiles, Op::RaggedBlocks, Op::RaggedWave];
        !is_of_call && !is_launch.into_iter().any(|kind| kind.is(op))
    };
    let goes_on = |before: &OperationRef<'c, 'c>, op: &OperationRef<'c, 'c>| {
        op.has_attribute(&keys::ONTO) || runs_once(*before) && runs_once(*op)
    };
    operations.chunk_by(goes_on).map(<[_]>::to_vec).collect()
}

/// Whether an operation is a kernel's `ragged.calls`, or in it.
fn is_in_call(op: OperationRef<'_, '_>) -> bool {
    Op::RaggedCalls.is(op)
        || op
            .parent_operation()
            .is_some_and(|around| Op::RaggedCalls.is(around))
}

/// How a kernel takes an operand; the numbers are those of the enumeration in the dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// A row a call, through a list of indices.
    Row = 0,
    /// A list of rows for each row.
    List = 1,
    /// A number that the host passes.
    Scalar = 2,
    /// A length of the call.
    Length = 3,
    /// As many rows of a tensor as the call has.
    Expanded = 4,
    /// An array of handles, as many as the call has rows.
    Stacked = 5,
}

impl OperandKind {
    /// The kind of a number of the dialect; `None` for any other number.
    pub fn from_number(number: i64) -> Option<OperandKind> {
        use OperandKind::{Expanded, Length, List, Row, Scalar, Stacked};
        let all = [Row, List, Scalar, Length, Expanded, Stacked];
        all.into_iter().find(|kind| *kind as i64 == number)
    }
}

/// The type of memory: the shape of one row, or of what all rows share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Whether each row has its own; else all share it.
    pub rows: bool,
    /// The sizes of its dims, without that of the rows.
    pub shape: Vec<i64>,
    /// The type of its elements.
    pub elem: Elem,
}

impl Memory {
    /// The memory that a value is; `None` for a value of another type.
    pub fn of(value: Val<'_>) -> Option<Memory> {
        let raw = value.r#type().to_raw();
        // SAFETY: the type is alive; it is asked for its kind before its shape is read.
        unsafe {
            if !mlir_sys::mlirTypeIsAMemRef(raw) {
                return None;
            }
            let rank = mlir_sys::mlirShapedTypeGetRank(raw) as isize;
            let rows = rank > 0 && mlir_sys::mlirShapedTypeIsDynamicDim(raw, 0);
            let shape = (isize::from(rows)..rank)
                .map(|axis| mlir_sys::mlirShapedTypeGetDimSize(raw, axis))
                .collect();
            let elem = elem_of(Type::from_raw(mlir_sys::mlirShapedTypeGetElementType(raw)))?;
            Some(Memory { rows, shape, elem })
        }
    }

    /// The `memref` type, with a dynamic first dim where each row has its own.
    pub fn to_type<'c>(&self, context: &'c Context) -> Type<'c> {
        let elem = elem_type(context, self.elem);
        // SAFETY: the element type and the shape are valid; the other attributes are the defaults.
        unsafe {
            let dynamic = self.rows.then(|| mlir_sys::mlirShapedTypeGetDynamicSize());
            let shape: Vec<i64> = dynamic.into_iter().chain(self.shape.clone()).collect();
            Type::from_raw(mlir_sys::mlirMemRefTypeContiguousGet(
                elem.to_raw(),
                shape.len() as isize,
                shape.as_ptr(),
                mlir_sys::mlirAttributeGetNull(),
            ))
        }
    }

    /// How many elements a row has, or what is shared.
    pub fn elements(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Bytes of a row of a tensor, which are what they are.
    pub fn row_bytes(&self) -> i64 {
        self.elements() * elem_bytes(self.elem)
    }

    /// Bytes of a row of scratch, which begins at a cache line; its numbers may be kept in bf16.
    pub fn slot_bytes(&self, bf16: bool) -> i64 {
        let bytes = match bf16 {
            true => 2 * self.elements(),
            false => self.row_bytes(),
        };
        round_up(bytes, 64)
    }
}

/// The type of a scalar.
pub fn elem_type(context: &Context, elem: Elem) -> Type<'_> {
    match elem {
        Elem::F32 => Type::float32(context),
        Elem::I32 => IntegerType::new(context, 32).into(),
        Elem::Bool => IntegerType::new(context, 1).into(),
    }
}

/// The scalar of these bits.
pub fn constant_of<'c>(b: &Builder<'c>, bits: u32, elem: Elem) -> Val<'c> {
    let value = match elem {
        Elem::F32 => b.f32_attr(f32::from_bits(bits)),
        Elem::I32 => b.i32_attr(bits as i32),
        Elem::Bool => b.bool_attr(bits != 0),
    };
    b.constant(value, elem_type(b.context(), elem))
}

/// The map of an address over `rank` dims.
pub fn to_map<'c>(context: &'c Context, address: &Affine, rank: usize) -> AffineMap<'c> {
    let terms = address.terms.iter().map(|(dim, coefficient)| {
        AffineExpr::dim(context, *dim) * AffineExpr::constant(context, *coefficient)
    });
    let sum = terms.reduce(|sum, term| sum + term);
    let constant = AffineExpr::constant(context, address.constant);
    let sum = sum.map_or(constant, |sum| sum + constant);
    AffineMap::new(context, rank, 0, &[sum])
}

/// An address over `rank` dims as an affine map's attribute.
pub fn map_attribute<'c>(context: &'c Context, address: &Affine, rank: usize) -> Attribute<'c> {
    // SAFETY: the map is of this context.
    unsafe {
        Attribute::from_raw(mlir_sys::mlirAffineMapAttrGet(
            to_map(context, address, rank).to_raw(),
        ))
    }
}

/// The address that a map says; `None` where it is not linear.
pub fn to_affine(attribute: Attribute<'_>) -> Option<Affine> {
    let [linear] = to_affines(attribute)?.try_into().ok()?;
    Some(linear)
}

/// The indices that a map says; `None` where one is not linear.
pub fn to_affines(attribute: Attribute<'_>) -> Option<Vec<Affine>> {
    let map = affine_map(attribute)?;
    (map.symbol_count() == 0).then_some(())?;
    let linears = (0..map.result_count()).map(|result| {
        let mut linear = Affine::constant(0);
        add(map.result(result).ok()?, 1, &mut linear)?;
        Some(linear)
    });
    linears.collect()
}

/// The address of an operation, its attribute `address`.
pub fn address_of(operation: OperationRef<'_, '_>) -> Option<Affine> {
    to_affine(operation.attribute(&keys::ADDRESS).ok()?)
}

/// Adds `times` times an expression.
fn add(expression: AffineExpr<'_>, times: i64, to: &mut Affine) -> Option<()> {
    if expression.is_constant() {
        to.constant += expression.constant_value() * times;
    } else if expression.is_dim() {
        *to = to.plus(&Affine::var(expression.dim_position()).times(times));
    } else if expression.is_add() {
        add(expression.lhs(), times, to)?;
        add(expression.rhs(), times, to)?;
    } else {
        let factor = expression.is_mul().then(|| expression.rhs())?;
        let factor = factor.is_constant().then(|| factor.constant_value())?;
        add(expression.lhs(), times * factor, to)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_from_maps() {
        let context = cohort_dialects::new_context();
        for (constant, coefficients) in [
            (0, vec![]),
            (7, vec![0, 0]),
            (3, vec![28, 1, 0]),
            (5, vec![-2, 9]),
        ] {
            let address = Affine::strided(constant, &coefficients);
            let map = map_attribute(&context, &address, coefficients.len());
            assert_eq!(to_affine(map), Some(address));
        }
    }
}
