//! The functions that backward needs of its own, for each type of row.

use std::collections::BTreeSet;

use cohort_dialects::builder::{Builder, Op, arguments_of, region_with_block};
use cohort_dialects::enums::{DialectEnum, GradientHelper};
use cohort_dialects::marks;
use cohort_dialects::types::array;

use super::{Differentiation, HELPER};
use crate::support::ir::TensorType;

impl Differentiation<'_> {
    /// The functions that add cotangents up, make zeros and stack rows, and the cotangent of a loss.
    pub(super) fn helpers(&mut self) {
        let location = self.end.location;
        let rows = std::mem::take(&mut self.rows);
        for row in rows
            .iter()
            .chain(std::iter::once(&vec![]))
            .collect::<BTreeSet<_>>()
        {
            let one = TensorType {
                shape: row.iter().copied().map(Some).collect(),
                element: self.end.f32(),
            };
            let many = one.batched();
            let name = |kind: &str| {
                let sizes: Vec<String> = row.iter().map(u64::to_string).collect();
                format!("gradient${kind}${}", sizes.join("x"))
            };
            let helper = |kind: GradientHelper, names: &[&[&str]]| {
                let names: Vec<_> = names.iter().map(|names| self.end.strings(*names)).collect();
                [
                    (HELPER, kind.attribute(self.context)),
                    (marks::ARGUMENT_DIMS, self.end.array(&names)),
                ]
            };
            for (own, kind, ty, names) in [
                ("add", GradientHelper::Add, one.to_type(), [&[][..]; 2]),
                (
                    "add_runs",
                    GradientHelper::AddRuns,
                    many.to_type(),
                    [&["n"][..]; 2],
                ),
            ] {
                let (region, entry) = region_with_block(&[ty, ty], location);
                let b = Builder::at_end(self.context, entry, location);
                let parts = arguments_of(entry);
                b.return_(&[b.addf(parts[0], parts[1])]);
                let types = (&[ty, ty][..], &[ty][..]);
                self.add_function(location, &name(own), types, &helper(kind, &names), region);
            }
            let list = array(one.to_type());
            let (region, entry) = region_with_block(&[list], location);
            let b = Builder::at_end(self.context, entry, location);
            let run = b.value(Op::CfbStack, &arguments_of(entry), many.to_type());
            b.return_(&[run]);
            let types = (&[list][..], &[many.to_type()][..]);
            let attributes = helper(GradientHelper::Stack, &[&[]]);
            self.add_function(location, &name("stack"), types, &attributes, region);
            let zero = ("zero", GradientHelper::Zero, 0.0);
            let one_of_them = ("one", GradientHelper::One, 1.0);
            let constants = [zero, one_of_them];
            let constants = match row.is_empty() {
                true => &constants[..],
                false => &constants[..1],
            };
            for (own, kind, number) in constants {
                let ty = one.to_type();
                let (region, entry) = region_with_block(&[], location);
                let b = Builder::at_end(self.context, entry, location);
                let value = b.constant(b.splat(ty, b.f32_attr(*number)), ty);
                b.return_(&[value]);
                let types = (&[][..], &[ty][..]);
                self.add_function(location, &name(own), types, &helper(*kind, &[]), region);
            }
        }
    }
}
