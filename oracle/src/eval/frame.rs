//! One call of a function: its variables, and the instance dims it has met.

use std::collections::BTreeMap;

use cohort_frontend::program::{Dim, Function, Type, VarId};

use crate::error::{ErrorKind, InstanceError};
use crate::scalar::elem_name;
use crate::value::Value;

fn unknown(dim: &Dim) -> InstanceError {
    InstanceError::internal(format!("nothing says how long {dim:?} is"))
}

/// The name that stands for any length.
const ANY_LENGTH: &str = "_";

pub(super) struct Frame<'p> {
    function: &'p Function,
    vars: Vec<Option<Value>>,
    /// The length of each instance dim as of the last value that had it. Some expressions (an
    /// empty sum, a fill) have no other source for it.
    dims: BTreeMap<&'p str, usize>,
}

impl<'p> Frame<'p> {
    pub(super) fn new(function: &'p Function) -> Frame<'p> {
        Frame {
            function,
            vars: vec![None; function.vars.len()],
            dims: BTreeMap::new(),
        }
    }

    pub(super) fn set(&mut self, var: VarId, value: Value) -> Result<(), InstanceError> {
        self.check(&self.function.vars[var.0].ty, &value)?;
        self.vars[var.0] = Some(value);
        Ok(())
    }

    pub(super) fn get(&self, var: VarId) -> Result<Value, InstanceError> {
        self.vars[var.0].clone().ok_or_else(|| {
            let name = &self.function.vars[var.0].name;
            InstanceError::internal(format!("`{name}` is read before it has a value"))
        })
    }

    /// Checks that `value` is of type `ty`, and learns its instance dims. Of an array only the
    /// first element is looked at, of a data type nothing: they were checked when they were made.
    pub(super) fn check(&mut self, ty: &'p Type, value: &Value) -> Result<(), InstanceError> {
        match (ty, value) {
            (Type::Scalar(elem), Value::Scalar(scalar)) if *elem == scalar.elem() => Ok(()),
            (Type::Scalar(elem), Value::Traced(float)) if *elem == float.elem() => Ok(()),
            (Type::Tensor { elem, shape }, Value::Tensor(tensor))
                if *elem == tensor.elem() && shape.len() == tensor.shape.len() =>
            {
                for (dim, &length) in shape.iter().zip(&tensor.shape) {
                    match dim {
                        Dim::Known(known) if *known != length as u64 => {
                            return Err(self.not_of_type(ty, value));
                        }
                        Dim::Known(_) => {}
                        Dim::Instance(name) if name == ANY_LENGTH => {}
                        Dim::Instance(name) => {
                            self.dims.insert(name, length);
                        }
                    }
                }
                Ok(())
            }
            (Type::Tuple(types), Value::Tuple(values)) if types.len() == values.len() => types
                .iter()
                .zip(values.iter())
                .try_for_each(|(ty, value)| self.check(ty, value)),
            (Type::Array(element), Value::Array(values)) => values
                .iter()
                .take(1)
                .try_for_each(|value| self.check(element, value)),
            (Type::Str, Value::Text(_)) => Ok(()),
            (Type::Adt(adt), Value::Adt(value)) if *adt == value.adt => Ok(()),
            _ => Err(self.not_of_type(ty, value)),
        }
    }

    /// A dim is as long as a number says.
    pub(super) fn count(&mut self, name: &'p str, count: i32) -> Result<(), InstanceError> {
        let length = usize::try_from(count).map_err(|_| {
            let message = format!("{count} is not a length");
            InstanceError::new(ErrorKind::IndexOutOfRange, message)
        })?;
        self.dims.insert(name, length);
        Ok(())
    }

    /// The lengths of `shape`; what a dim is called tells its length.
    pub(super) fn lengths(&self, shape: &[Dim]) -> Result<Vec<usize>, InstanceError> {
        shape
            .iter()
            .map(|dim| match (self.length(dim), dim) {
                (Some(length), _) => Ok(length),
                (None, Dim::Instance(name)) => self.computed(name),
                (None, Dim::Known(_)) => Err(unknown(dim)),
            })
            .collect()
    }

    /// The length of a dim that is written as arithmetic of others, `2*n/3 + m - 1`.
    fn computed(&self, name: &str) -> Result<usize, InstanceError> {
        let mut total: i128 = 0;
        let mut sign = 1;
        for word in name.split(' ') {
            match word {
                "+" => sign = 1,
                "-" => sign = -1,
                _ => {
                    let (term, sign) = match word.strip_prefix('-') {
                        Some(term) => (term, -sign),
                        None => (word, sign),
                    };
                    total += sign * self.term(term, name)?;
                }
            }
        }
        usize::try_from(total).map_err(|_| {
            let message = format!("the length `{name}` is {total}");
            InstanceError::new(ErrorKind::ShapeMismatch, message)
        })
    }

    /// A product, which what it is divided by must leave whole.
    fn term(&self, text: &str, whole: &str) -> Result<i128, InstanceError> {
        let factor = |text: &str| match text.parse::<i128>() {
            Ok(number) => Some(number),
            Err(_) if text == whole => None,
            Err(_) => self.dims.get(text).map(|length| *length as i128),
        };
        let missing = || unknown(&Dim::Instance(whole.to_string()));
        let mut divisors = text.split('/');
        let factors = divisors.next().unwrap_or_default().split('*');
        let mut product: i128 = 1;
        for text in factors {
            let factor = factor(text).ok_or_else(missing)?;
            product = product.checked_mul(factor).ok_or_else(missing)?;
        }
        for text in divisors {
            let divisor = factor(text).ok_or_else(missing)?;
            if product.checked_rem(divisor) != Some(0) {
                let message = format!("`{text}` does not divide {product} in the length `{whole}`");
                return Err(InstanceError::new(ErrorKind::ShapeMismatch, message));
            }
            product /= divisor;
        }
        Ok(product)
    }

    /// The lengths of `shape` for `count` elements: a dim that is alone in being unknown until
    /// run time follows from the count.
    pub(super) fn lengths_for_count(
        &self,
        shape: &[Dim],
        count: usize,
    ) -> Result<Vec<usize>, InstanceError> {
        let is_instance = |dim: &Dim| matches!(dim, Dim::Instance(_));
        let known: usize = shape
            .iter()
            .filter(|dim| !is_instance(dim))
            .filter_map(|dim| self.length(dim))
            .product();
        if shape.iter().filter(|dim| is_instance(dim)).count() != 1 || known == 0 {
            return self.lengths(shape);
        }
        Ok(shape
            .iter()
            .map(|dim| match dim {
                Dim::Known(length) => *length as usize,
                Dim::Instance(_) => count / known,
            })
            .collect())
    }

    fn length(&self, dim: &Dim) -> Option<usize> {
        match dim {
            Dim::Known(length) => usize::try_from(*length).ok(),
            Dim::Instance(name) => self.dims.get(name.as_str()).copied(),
        }
    }

    fn not_of_type(&self, ty: &Type, value: &Value) -> InstanceError {
        InstanceError::internal(format!(
            "in `{}`: {} is not of type {}",
            self.function.name,
            value.describe(),
            describe_type(ty)
        ))
    }
}

fn describe_type(ty: &Type) -> String {
    match ty {
        Type::Scalar(elem) => elem_name(*elem).to_string(),
        Type::Tensor { elem, shape } => {
            let dims: Vec<String> = shape
                .iter()
                .map(|dim| match dim {
                    Dim::Known(length) => length.to_string(),
                    Dim::Instance(name) => name.clone(),
                })
                .collect();
            format!("{}[{}]", elem_name(*elem), dims.join(", "))
        }
        Type::Tuple(types) => {
            let types: Vec<String> = types.iter().map(describe_type).collect();
            format!("({})", types.join(", "))
        }
        Type::Array(element) => format!("[{}]", describe_type(element)),
        Type::Str => "str".to_owned(),
        Type::Adt(adt) => format!("data type {}", adt.0),
    }
}
