//! Types of the program as types of MLIR.
//!
//! Tuples are flattened: a value of a tuple's type is several SSA values, a value of any other type
//! is one. A builtin `tuple` type stands where structure has to be kept: in the fields of algebraic
//! data types, in array elements, in the entry's attributes.

use cohort_dialects::types;
use cohort_frontend::program::{Adt, AdtId, Dim, Elem, Program, Type};
use melior::{
    Context,
    ir::{
        Type as MlirType,
        r#type::{IntegerType, RankedTensorType, TupleType},
    },
};

/// `ShapedType::kDynamic`, MLIR's way to write `?`.
pub const DYNAMIC: u64 = i64::MIN.cast_unsigned();

#[derive(Clone, Copy)]
pub struct Types<'a, 'c> {
    pub context: &'c Context,
    pub program: &'a Program,
}

impl<'a, 'c> Types<'a, 'c> {
    pub fn elem(&self, elem: Elem) -> MlirType<'c> {
        match elem {
            Elem::F32 => MlirType::float32(self.context),
            Elem::I32 => IntegerType::new(self.context, 32).into(),
            Elem::Bool => IntegerType::new(self.context, 1).into(),
        }
    }

    pub fn tensor(&self, elem: Elem, shape: &[Dim]) -> MlirType<'c> {
        let shape: Vec<u64> = shape
            .iter()
            .map(|dim| known(dim).unwrap_or(DYNAMIC))
            .collect();
        RankedTensorType::new(&shape, self.elem(elem), None).into()
    }

    /// The one type of a value, with tuples kept.
    pub fn whole(&self, ty: &Type) -> MlirType<'c> {
        match ty {
            Type::Scalar(elem) => self.elem(*elem),
            Type::Tensor { elem, shape } => self.tensor(*elem, shape),
            Type::Tuple(elements) => {
                let elements: Vec<_> = elements.iter().map(|ty| self.whole(ty)).collect();
                TupleType::new(self.context, &elements).into()
            }
            Type::Array(element) => types::array(self.whole(element)),
            Type::Str => types::text(self.context),
            Type::Adt(id) => types::adt(self.context, &self.adt(*id).name),
        }
    }

    /// The types of the SSA values that make up a value.
    pub fn flat(&self, ty: &Type) -> Vec<MlirType<'c>> {
        match ty {
            Type::Tuple(elements) => elements.iter().flat_map(|ty| self.flat(ty)).collect(),
            _ => vec![self.whole(ty)],
        }
    }

    pub fn flat_all<'t>(&self, types: impl IntoIterator<Item = &'t Type>) -> Vec<MlirType<'c>> {
        types.into_iter().flat_map(|ty| self.flat(ty)).collect()
    }

    pub fn adt(&self, id: AdtId) -> &'a Adt {
        &self.program.adts[id.0]
    }
}

/// How many SSA values make up a value.
pub fn width(ty: &Type) -> usize {
    match ty {
        Type::Tuple(elements) => elements.iter().map(width).sum(),
        _ => 1,
    }
}

/// The element type of a scalar or tensor.
pub fn elem_of(ty: &Type) -> Elem {
    match ty {
        Type::Scalar(elem) | Type::Tensor { elem, .. } => *elem,
        _ => unreachable!("{ty:?} has no single element type"),
    }
}

/// The shape of a scalar or tensor.
pub fn shape_of(ty: &Type) -> Vec<Dim> {
    match ty {
        Type::Scalar(_) => vec![],
        Type::Tensor { shape, .. } => shape.clone(),
        _ => unreachable!("{ty:?} has no shape"),
    }
}

/// Lengths that are known when compiling, as a shape.
pub fn known_shape(lengths: &[u64]) -> Vec<Dim> {
    lengths.iter().map(|length| Dim::Known(*length)).collect()
}

/// The names of the instance dims in a type, one after another: of arrays those of their elements.
pub fn instance_dims(ty: &Type) -> Vec<&str> {
    match ty {
        Type::Tensor { shape, .. } => shape
            .iter()
            .filter_map(|dim| match dim {
                Dim::Instance(name) => Some(name.as_str()),
                Dim::Known(_) => None,
            })
            .collect(),
        Type::Tuple(elements) => elements.iter().flat_map(instance_dims).collect(),
        Type::Array(element) => instance_dims(element),
        Type::Scalar(_) | Type::Adt(_) | Type::Str => vec![],
    }
}

/// A type as the source writes it, for diagnostics.
pub fn shown(ty: &Type, program: &Program) -> String {
    match ty {
        Type::Scalar(elem) => source_name(*elem).to_owned(),
        Type::Tensor { elem, shape } => {
            let dims: Vec<String> = shape
                .iter()
                .map(|dim| match dim {
                    Dim::Known(length) => length.to_string(),
                    Dim::Instance(name) => name.clone(),
                })
                .collect();
            format!("{}[{}]", source_name(*elem), dims.join(", "))
        }
        Type::Tuple(elements) => {
            let elements: Vec<_> = elements.iter().map(|ty| shown(ty, program)).collect();
            format!("({})", elements.join(", "))
        }
        Type::Array(element) => format!("[{}]", shown(element, program)),
        Type::Str => "str".to_owned(),
        Type::Adt(id) => program.adts[id.0].name.clone(),
    }
}

/// A length that is known when compiling.
pub fn known(dim: &Dim) -> Option<u64> {
    match dim {
        Dim::Known(length) => Some(*length),
        Dim::Instance(_) => None,
    }
}

fn source_name(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "f32",
        Elem::I32 => "i32",
        Elem::Bool => "bool",
    }
}
