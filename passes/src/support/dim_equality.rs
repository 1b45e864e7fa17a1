//! Which dims of tensors are the same instance dim, and what that makes of an operation.
//!
//! Two dims are equal when an operation demands it: elementwise operands have one shape, the loops
//! of a structured operation run over dims of several operands, `tensor.empty` has the lengths that
//! it is given, and `tensor.dim` reads the length of a dim. Values are never compared. The same
//! questions are asked of levels 0 and 1, of single instances, and of level 2, over a batch.
//!
//! The *leading* dims of a tensor are all up to its last instance dim; they count rows of the
//! others. An operation is *row-wise* if each row of its results needs the same row of those
//! operands that have these leading dims, and else only what has no instance dims.

use cohort_dialects::keys::{self, Key};
use cohort_dialects::marks;
use std::collections::{BTreeMap, HashMap};

use cohort_dialects::attributes::folds_of;
use cohort_dialects::builder::{
    Dialect, Op, Val, arguments_of, is_arithmetic, operands_of, result_of, results_of,
};
use cohort_dialects::types::{array_element, flatten, lazy_tensor};
use melior::ir::{
    OperationRef, Type, ValueLike, attribute::IntegerAttribute, operation::OperationLike,
};

use crate::kernel::rows::maps::{MapResult, indexing_maps, named_structure};
use crate::support::ir::{
    TensorType, array, blocks_of, defining_op, elements_of, integer_attribute, integers, is_tensor,
    key, nested_ops, strings,
};

/// The length of a dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    Known(u64),
    /// An instance dim; dims known to be equal have the same number.
    Dim(usize),
}

/// What kind of work an operation is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No instance dims.
    Plain,
    /// Row-wise over these leading dims.
    Rows(Vec<Length>),
    /// Needs the rows of an instance together.
    Calls,
}

/// The loops of a structured operation.
pub struct Loops {
    /// Which loop each axis of each operand runs along.
    pub maps: Vec<Vec<MapResult>>,
    /// Which loops fold.
    pub folds: Vec<bool>,
}

#[derive(Default)]
pub struct DimEquality {
    /// The dims found equal, as a forest: each dim's parent, its own number for a root.
    parents: Vec<usize>,
    axes: HashMap<(usize, usize), usize>,
    lengths: HashMap<usize, usize>,
}

impl DimEquality {
    /// What these operations demand.
    pub fn new<'c>(operations: impl IntoIterator<Item = OperationRef<'c, 'c>>) -> DimEquality {
        let mut equality = DimEquality::default();
        for operation in operations {
            equality.read(operation);
        }
        equality
    }

    /// The dims of a function's arguments that go by one name are equal.
    pub fn join_arguments(&mut self, function: OperationRef<'_, '_>) {
        for dims in argument_dims(function).values() {
            let nodes: Vec<_> = dims
                .iter()
                .map(|(value, axis)| self.axis(*value, *axis))
                .collect();
            for pair in nodes.windows(2) {
                self.join(pair[0], pair[1]);
            }
        }
    }

    /// A dim of a tensor has this length, an `index`.
    pub fn join_length(&mut self, value: Val<'_>, axis: usize, length: Val<'_>) {
        let length = self.length(length);
        self.join_axis(value, axis, length);
    }

    /// The shape of a tensor that one of the operations has. A dim that none of them mentions is
    /// equal to no other.
    pub fn shape(&mut self, value: Val<'_>) -> Vec<Length> {
        let Some(ty) = TensorType::of_value(value) else {
            return vec![];
        };
        ty.shape
            .iter()
            .enumerate()
            .map(|(axis, size)| match size {
                Some(size) => Length::Known(*size),
                None => {
                    let node = self.axis(value, axis);
                    Length::Dim(self.find(node))
                }
            })
            .collect()
    }

    /// The dims of a tensor up to its last instance dim.
    pub fn leading(&mut self, value: Val<'_>) -> Vec<Length> {
        let mut shape = self.shape(value);
        let is_dim = |length: &Length| matches!(length, Length::Dim(_));
        shape.truncate(shape.iter().rposition(is_dim).map_or(0, |last| last + 1));
        shape
    }

    /// The dim whose length an `index` value is.
    pub fn dim_of_length(&mut self, value: Val<'_>) -> usize {
        let node = self.length(value);
        self.find(node)
    }

    pub fn kind(&mut self, operation: OperationRef<'_, '_>) -> Kind {
        let operands: Vec<_> = operands_of(operation)
            .into_iter()
            .filter(|operand| is_tensor(operand.r#type()))
            .collect();
        let results = results_of(operation);
        let mut leading: Vec<_> = results.iter().map(|result| self.leading(*result)).collect();
        let any = operands
            .iter()
            .any(|operand| !self.leading(*operand).is_empty())
            || leading.iter().any(|leading| !leading.is_empty());
        if !any {
            return Kind::Plain;
        }
        leading.dedup();
        match &leading[..] {
            [rows] if !rows.is_empty() && self.is_row_wise(operation, &operands, rows) => {
                Kind::Rows(rows.clone())
            }
            _ => Kind::Calls,
        }
    }

    fn is_row_wise(
        &mut self,
        operation: OperationRef<'_, '_>,
        operands: &[Val<'_>],
        rows: &[Length],
    ) -> bool {
        if let Some(loops) = loops_of(operation) {
            return self.runs_along(operation, &loops, rows);
        }
        let all_have_rows = |equality: &mut DimEquality| {
            operands
                .iter()
                .all(|operand| equality.leading(*operand) == rows)
        };
        match Op::of(operation) {
            Some(Op::TensorEmpty) => true,
            Some(Op::TensorConcat) => {
                let axis = integer_attribute(operation, keys::DIM).unwrap_or(0);
                axis >= rows.len() as i64 && all_have_rows(self)
            }
            Some(Op::TensorExtractSlice | Op::TensorCollapseShape | Op::TensorExpandShape) => {
                all_have_rows(self)
            }
            _ if is_arithmetic(operation) => all_have_rows(self),
            _ => false,
        }
    }

    /// Whether the first loops of a structured operation are those of the rows, for all operands.
    fn runs_along(
        &mut self,
        operation: OperationRef<'_, '_>,
        loops: &Loops,
        rows: &[Length],
    ) -> bool {
        let operands = operands_of(operation);
        let Some(lead) = loops.maps.last().and_then(|map| map.get(..rows.len())) else {
            return false;
        };
        let Some(lead) = lead
            .iter()
            .map(|place| match place {
                MapResult::Loop(number) if !loops.folds[*number] => Some(*number),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
        else {
            return false;
        };
        let asks_for_row = nested_ops(operation).into_iter().any(|op| {
            let dim = integer_attribute(op, keys::DIM).unwrap_or(0);
            Op::LinalgIndex.is(op) && lead.contains(&(dim as usize))
        });
        if asks_for_row {
            return false;
        }
        operands.iter().zip(&loops.maps).all(|(operand, map)| {
            let along =
                |place: &MapResult| matches!(place, MapResult::Loop(number) if lead.contains(number));
            let own = self.leading(*operand);
            if own.is_empty() {
                return !map.iter().any(along);
            }
            let front = map.iter().take(rows.len()).zip(&lead);
            own == rows
                && front
                    .into_iter()
                    .all(|(place, number)| *place == MapResult::Loop(*number))
                && !map.iter().skip(rows.len()).any(along)
        })
    }

    fn read(&mut self, operation: OperationRef<'_, '_>) {
        let operands = operands_of(operation);
        let results = results_of(operation);
        if let Some(loops) = loops_of(operation) {
            self.read_loops(&operands, &results, &loops);
            return;
        }
        match Op::of(operation) {
            Some(Op::TensorDim) => {
                let axis =
                    defining_op(operands[1]).and_then(|op| integer_attribute(op, keys::VALUE));
                if let Some(axis) = axis {
                    let length = self.length(results[0]);
                    self.join_axis(operands[0], axis as usize, length);
                }
            }
            Some(Op::CfbDim) => {
                let axis = integer_attribute(operation, keys::AXIS).unwrap_or(0);
                let length = self.length(results[0]);
                let node = self.axis(operands[0], axis as usize);
                self.join(node, length);
            }
            Some(Op::TensorEmpty) => self.join_lengths(results[0], &operands),
            Some(Op::CfbView) => self.join_lengths(results[0], &operands[1..]),
            Some(Op::TensorCast) => self.join_shapes(results[0], operands[0]),
            Some(Op::CfbWiden) => {
                self.join_lengths(results[0], &operands[1..]);
                self.join_shapes(results[0], operands[0]);
            }
            Some(Op::TensorConcat) => {
                let along = integer_attribute(operation, keys::DIM).unwrap_or(0) as usize;
                for operand in operands {
                    self.join_shapes_but(results[0], operand, Some(along));
                }
            }
            Some(Op::TensorExtractSlice) => {
                self.join_lengths(results[0], &operands[1..]);
                self.join_shapes(results[0], operands[0]);
            }
            Some(Op::TensorExpandShape) => {
                self.join_lengths(results[0], &operands[1..]);
                self.join_groups(operation, operands[0], results[0]);
            }
            Some(Op::TensorCollapseShape) => self.join_groups(operation, results[0], operands[0]),
            _ if is_arithmetic(operation) => {
                for result in results {
                    for operand in &operands {
                        self.join_shapes(result, *operand);
                    }
                }
            }
            _ => {}
        }
    }

    fn read_loops(&mut self, operands: &[Val<'_>], results: &[Val<'_>], loops: &Loops) {
        let mut nodes: Vec<Option<usize>> = vec![None; loops.folds.len()];
        for (operand, map) in operands.iter().zip(&loops.maps) {
            let Some(ty) = TensorType::of_value(*operand) else {
                continue;
            };
            for (axis, place) in map.iter().enumerate() {
                let MapResult::Loop(number) = place else {
                    continue;
                };
                if ty.shape.get(axis) != Some(&None) {
                    continue;
                }
                let node = self.axis(*operand, axis);
                match nodes[*number] {
                    Some(known) => self.join(known, node),
                    None => nodes[*number] = Some(node),
                }
            }
        }
        let inits = &operands[operands.len() - results.len()..];
        for (result, init) in results.iter().zip(inits) {
            self.join_shapes(*result, *init);
        }
    }

    /// The dynamic dims of a tensor have these lengths, in order.
    fn join_lengths(&mut self, value: Val<'_>, lengths: &[Val<'_>]) {
        let Some(ty) = TensorType::of_value(value) else {
            return;
        };
        let dynamic = (0..ty.rank()).filter(|axis| ty.shape[*axis].is_none());
        for (axis, length) in dynamic.zip(lengths) {
            let length = self.length(*length);
            self.join_axis(value, axis, length);
        }
    }

    /// In a reshape, an instance dim that is alone in its group but for dims of one element.
    fn join_groups(&mut self, operation: OperationRef<'_, '_>, few: Val<'_>, many: Val<'_>) {
        let (Some(few_type), Some(many_type)) =
            (TensorType::of_value(few), TensorType::of_value(many))
        else {
            return;
        };
        for (axis, group) in reassociation(operation).into_iter().enumerate() {
            let others: Vec<_> = group
                .into_iter()
                .filter(|axis| many_type.shape.get(*axis) != Some(&Some(1)))
                .collect();
            if let ([only], Some(None)) = (&others[..], few_type.shape.get(axis)) {
                let node = self.axis(few, axis);
                self.join_axis(many, *only, node);
            }
        }
    }

    /// Two values are the same tensor, or must have the same shape.
    pub fn join_shapes(&mut self, left: Val<'_>, right: Val<'_>) {
        self.join_shapes_but(left, right, None);
    }

    fn join_shapes_but(&mut self, left: Val<'_>, right: Val<'_>, but: Option<usize>) {
        let (Some(from), Some(to)) = (TensorType::of_value(left), TensorType::of_value(right))
        else {
            return;
        };
        if from.rank() != to.rank() {
            return;
        }
        for axis in (0..from.rank()).filter(|axis| Some(*axis) != but) {
            if from.shape[axis].is_none() && to.shape[axis].is_none() {
                let node = self.axis(left, axis);
                self.join_axis(right, axis, node);
            }
        }
    }

    fn join_axis(&mut self, value: Val<'_>, axis: usize, with: usize) {
        let node = self.axis(value, axis);
        self.join(node, with);
    }

    fn axis(&mut self, value: Val<'_>, axis: usize) -> usize {
        let parents = &mut self.parents;
        *self.axes.entry((key(value), axis)).or_insert_with(|| {
            parents.push(parents.len());
            parents.len() - 1
        })
    }

    fn length(&mut self, value: Val<'_>) -> usize {
        let parents = &mut self.parents;
        *self.lengths.entry(key(value)).or_insert_with(|| {
            parents.push(parents.len());
            parents.len() - 1
        })
    }

    fn find(&self, mut node: usize) -> usize {
        while self.parents[node] != node {
            node = self.parents[node];
        }
        node
    }

    fn join(&mut self, left: usize, right: usize) {
        let (left, right) = (self.find(left), self.find(right));
        // The older number stays, so that numbers do not depend on the order of demands.
        let (older, newer) = (left.min(right), left.max(right));
        self.parents[newer] = older;
    }
}

/// The dims of a function's arguments by their names in the source, as `cfb.argument_dims` has them:
/// of each tensor in each argument the names of its instance dims.
pub fn argument_dims<'c>(
    function: OperationRef<'c, '_>,
) -> BTreeMap<String, Vec<(Val<'c>, usize)>> {
    let mut dims: BTreeMap<String, Vec<(Val<'c>, usize)>> = BTreeMap::new();
    let (Ok(attribute), Some(body)) = (
        function.attribute(&marks::ARGUMENT_DIMS),
        blocks_of(function).first().copied(),
    ) else {
        return dims;
    };
    let mut names = elements_of(attribute).into_iter().flat_map(strings);
    for argument in arguments_of(body) {
        let Some(ty) = TensorType::of_value(argument) else {
            // An array's names are those of its elements.
            let held = unknown_lengths(argument.r#type());
            names.by_ref().take(held).for_each(drop);
            continue;
        };
        for axis in (0..ty.rank()).filter(|axis| ty.shape[*axis].is_none()) {
            if let Some(name) = names.next().filter(|name| name != "_") {
                dims.entry(name).or_default().push((argument, axis));
            }
        }
    }
    dims
}

/// How many lengths the tensors in a type leave open.
fn unknown_lengths(ty: Type<'_>) -> usize {
    let held = array_element(ty).or_else(|| lazy_tensor(ty));
    if let Some(held) = held {
        return flatten(held).into_iter().map(unknown_lengths).sum();
    }
    let tensor = TensorType::of(ty);
    tensor.map_or(0, |ty| {
        ty.shape.iter().filter(|size| size.is_none()).count()
    })
}

/// The loops of a structured operation with instance dims or a batch; `None` for any other.
pub fn loops_of(operation: OperationRef<'_, '_>) -> Option<Loops> {
    if !Dialect::Linalg.has(operation)
        || Op::LinalgIndex.is(operation)
        || operation.result_count() == 0
    {
        return None;
    }
    let operands = operands_of(operation);
    let rank = TensorType::of_value(result_of(operation, 0))?.rank();
    let all = |rank: usize| (0..rank).map(MapResult::Loop).collect::<Vec<_>>();
    let parallel = |maps| Loops {
        maps,
        folds: vec![false; rank],
    };
    let axes = |attribute: Key<'_>| -> Vec<usize> {
        let values = integers(operation, attribute).into_iter();
        values.map(|axis| axis as usize).collect()
    };
    Some(match Op::of(operation) {
        Some(Op::LinalgFill) => parallel(vec![vec![], all(rank)]),
        Some(Op::LinalgBroadcast) => {
            let added = axes(keys::DIMENSIONS);
            let kept = (0..rank).filter(|axis| !added.contains(axis));
            parallel(vec![kept.map(MapResult::Loop).collect(), all(rank)])
        }
        Some(Op::LinalgTranspose) => {
            let mut source = vec![MapResult::Constant(0); rank];
            for (axis, from) in axes(keys::PERMUTATION).into_iter().enumerate() {
                source[from] = MapResult::Loop(axis);
            }
            parallel(vec![source, all(rank)])
        }
        Some(Op::LinalgReduce) => {
            let folded = axes(keys::DIMENSIONS);
            let from = TensorType::of_value(operands[0])?.rank();
            let kept: Vec<_> = (0..from)
                .filter(|axis| !folded.contains(axis))
                .map(MapResult::Loop)
                .collect();
            let inputs = operands.len() / 2;
            let mut maps = vec![all(from); inputs];
            maps.extend(vec![kept; inputs]);
            let folds = (0..from).map(|axis| folded.contains(&axis)).collect();
            Loops { maps, folds }
        }
        Some(Op::LinalgGeneric) => {
            let folds = folds_of(operation)?;
            let maps = indexing_maps(operation)?;
            Loops { maps, folds }
        }
        kind => {
            let named = named_structure(kind?)?;
            Loops {
                maps: indexing_maps(operation).unwrap_or(named.maps),
                folds: named.folds,
            }
        }
    })
}

/// The axes that each axis of the smaller side of a reshape stands for.
pub fn reassociation(operation: OperationRef<'_, '_>) -> Vec<Vec<usize>> {
    let axes = |group| {
        let axes = elements_of(group).into_iter();
        let axes = axes.filter_map(|axis| IntegerAttribute::try_from(axis).ok());
        axes.map(|axis| axis.value() as usize).collect()
    };
    let groups = array(operation, keys::REASSOCIATION).into_iter();
    groups.map(axes).collect()
}
