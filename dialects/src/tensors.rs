//! Operations that move the elements of tensors, as methods of the [`Builder`], over the builders that are generated from
//! their declarations.

use crate::keys;
use melior::dialect::ods;
use melior::ir::{
    Attribute, Region, Type, ValueLike,
    attribute::{ArrayAttribute, IntegerAttribute},
};

use crate::builder::{Builder, Op, Val, arguments_of, element_of, region_with_block, result_of};

impl<'c> Builder<'c> {
    /// `tensor.concat` along an axis.
    pub fn concat(&self, axis: usize, parts: &[Val<'c>], ty: Type<'c>) -> Val<'c> {
        let axis = IntegerAttribute::new(self.i64(), axis as i64);
        let operation = ods::tensor::concat(self.context(), ty, parts, axis, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `tensor.collapse_shape`: the axes of each group become one.
    pub fn collapse(&self, value: Val<'c>, groups: Attribute<'c>, ty: Type<'c>) -> Val<'c> {
        let groups = ArrayAttribute::try_from(groups)
            .unwrap_or_else(|_| unreachable!("`{groups}` are not groups of axes"));
        let operation =
            ods::tensor::collapse_shape(self.context(), ty, value, groups, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `tensor.extract`: an element.
    pub fn extract(&self, tensor: Val<'c>, place: &[Val<'c>]) -> Val<'c> {
        let element = element_of(tensor.r#type());
        let operation = ods::tensor::extract(self.context(), element, tensor, place, self.location);
        result_of(self.insert(operation.into()), 0)
    }

    /// `linalg.fill`: the destination, full of a number.
    pub fn fill(&self, number: Val<'c>, destination: Val<'c>) -> Val<'c> {
        let segments = [(keys::OPERAND_SEGMENT_SIZES, self.i32s(&[1, 1]))];
        let operands = [number, destination];
        let region = self.first_of(number.r#type());
        let types = [destination.r#type()];
        let filled = self.op(Op::LinalgFill, &operands, &types, &segments, vec![region]);
        result_of(filled, 0)
    }

    /// A region of `linalg` that hands its first element on.
    fn first_of(&self, element: Type<'c>) -> Region<'c> {
        let (region, block) = region_with_block(&[element; 2], self.location);
        Builder::at_end(self.context(), block, self.location)
            .linalg_yield(&arguments_of(block)[..1]);
        region
    }

    /// `linalg.broadcast`: repeated along the axes of the destination that it has not itself.
    pub fn broadcast(&self, value: Val<'c>, destination: Val<'c>, axes: &[i64]) -> Val<'c> {
        let operation = crate::linalg::BroadcastOperation::builder(self.context(), self.location)
            .result(&[destination.r#type()])
            .input(value)
            .init(destination)
            .region(self.first_of(element_of(value.r#type())))
            .dimensions(self.i64s(axes))
            .build();
        result_of(self.insert(operation.into()), 0)
    }
}
