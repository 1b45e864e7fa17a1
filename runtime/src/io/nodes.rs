//! Values of data types as lists of their nodes, which is how formats without recursion have them: in
//! postorder, each node behind those that are its parts, and by constructor what the nodes have in their other
//! fields.
//!
//! A field of the type itself takes no room: its value is the nodes before. One that is an array of the type
//! has the number of its elements, whose nodes are before too. All else stands for itself, values of other
//! types included. A type that contains itself in any other way, by a tuple or another type, has no such form.

use cohort_abi::manifest::{Adt, Elem, Manifest, Type};

/// What the nodes of a constructor have in a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'m> {
    /// A value of the type itself.
    Part,
    /// An array of such.
    Parts,
    /// Of another type.
    Other(&'m Type),
}

impl<'m> Field<'m> {
    /// A field of that type, of the data type of this number.
    pub fn of(adt: usize, ty: &'m Type) -> Field<'m> {
        let is_own = |ty: &Type| *ty == Type::Adt(adt);
        match ty {
            _ if is_own(ty) => Field::Part,
            Type::Array(element) if is_own(element) => Field::Parts,
            _ => Field::Other(ty),
        }
    }

    /// The type of what stands for it, if anything does.
    pub fn column(self) -> Option<&'m Type> {
        match self {
            Field::Part => None,
            Field::Parts => Some(&Type::Scalar(Elem::I32)),
            Field::Other(ty) => Some(ty),
        }
    }
}

/// Columns that a value's form may have: types in types double them, each time.
const MOST_COLUMNS: u64 = 10_000;
/// Levels of lists and structs: readers take no more than 64.
const MOST_LEVELS: u64 = 60;

/// Whether all values of the type have a form without recursion; if not, why.
pub fn check(manifest: &Manifest, ty: &Type) -> Result<(), String> {
    let mut seen = vec![Seen::No; manifest.adts.len()];
    let size = visit(manifest, ty, &mut seen)?;
    if size.columns > MOST_COLUMNS || size.levels > MOST_LEVELS {
        return Err(format!(
            "it would take {} columns in {} levels of Arrow, and {MOST_COLUMNS} in {MOST_LEVELS} are the most; use \
             JSON",
            size.columns, size.levels
        ));
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Seen {
    No,
    Around,
    Done(Size),
}

#[derive(Clone, Copy)]
struct Size {
    columns: u64,
    levels: u64,
}

/// Types nest as deep as the program writes them.
fn visit(manifest: &Manifest, ty: &Type, seen: &mut [Seen]) -> Result<Size, String> {
    let array = |levels: usize| Size {
        columns: 1,
        levels: 1 + levels as u64,
    };
    let rank = |pool: usize| manifest.row_pools[pool].shape.len();
    match ty {
        Type::Scalar(_) | Type::Str => Ok(array(0)),
        Type::Tensor { pool } => Ok(array(rank(*pool))),
        Type::Stacked { pool } => Ok(array(1 + rank(*pool))),
        Type::Ragged { pool, dims } => Ok(array(dims.len() + rank(*pool))),
        Type::Array(element) => visit(manifest, element, seen).map(|size| size.within(1)),
        Type::Tuple(types) => {
            let sizes = types.iter().map(|ty| visit(manifest, ty, seen));
            sum(sizes).map(|size| size.within(1))
        }
        Type::Adt(adt) => match seen[*adt] {
            Seen::Done(size) => Ok(size),
            Seen::Around => Err(recursive(&manifest.adts[*adt])),
            Seen::No => {
                seen[*adt] = Seen::Around;
                let constructors = manifest.adts[*adt].constructors.iter();
                let fields = constructors.flat_map(|constructor| &constructor.fields);
                let columns = fields.filter_map(|ty| Field::of(*adt, ty).column());
                let sizes = columns.map(|ty| visit(manifest, ty, seen));
                // A struct of lists of structs, and the tags.
                let size = sum(sizes)?.within(3);
                seen[*adt] = Seen::Done(size);
                Ok(size)
            }
        },
    }
}

impl Size {
    fn within(self, levels: u64) -> Size {
        Size {
            columns: self.columns.saturating_add(1),
            levels: self.levels.saturating_add(levels),
        }
    }
}

/// Of what stands side by side.
fn sum(sizes: impl Iterator<Item = Result<Size, String>>) -> Result<Size, String> {
    let mut all = Size {
        columns: 0,
        levels: 1,
    };
    for size in sizes {
        let size = size?;
        all.columns = all.columns.saturating_add(size.columns);
        all.levels = all.levels.max(size.levels);
    }
    Ok(all)
}

fn recursive(adt: &Adt) -> String {
    let name = &adt.name;
    format!(
        "values of {name} have no form in Arrow, as {name} contains itself by a tuple or another type and not only \
         in fields of the types {name} and [{name}]; use JSON"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_abi::manifest::Constructor;

    fn manifest(types: &[(&str, Vec<Type>)]) -> Manifest {
        let adts = types.iter().map(|(name, fields)| Adt {
            name: (*name).to_owned(),
            constructors: vec![Constructor {
                name: format!("C{name}"),
                fields: fields.clone(),
                names: Vec::new(),
            }],
        });
        Manifest {
            adts: adts.collect(),
            ..crate::memory::arena::tests::manifest()
        }
    }

    #[test]
    fn a_type_may_contain_itself_and_others_but_no_circle_of_others() {
        let (a, b) = (Type::Adt(0), Type::Adt(1));
        let list = |ty: &Type| Type::Array(Box::new(ty.clone()));
        let is_fit = |of_a: Vec<Type>, of_b: Vec<Type>| {
            let manifest = manifest(&[("A", of_a), ("B", of_b)]);
            check(&manifest, &Type::Tuple(vec![list(&a)]))
        };
        assert!(
            is_fit(
                vec![a.clone(), list(&a), b.clone(), list(&b)],
                vec![b.clone()]
            )
            .is_ok()
        );
        assert!(is_fit(vec![], vec![a.clone()]).is_ok());
        for (of_a, of_b) in [
            (vec![b.clone()], vec![a.clone()]),
            (vec![list(&list(&a))], vec![]),
            (vec![Type::Tuple(vec![a.clone()])], vec![]),
        ] {
            let message = is_fit(of_a, of_b).expect_err("a circle");
            assert!(message.contains("A contains itself"), "{message}");
        }
    }

    #[test]
    fn types_that_double_are_refused_and_not_written_out() {
        let names: Vec<String> = (0..64).map(|number| format!("T{number}")).collect();
        let types = names.iter().enumerate().map(|(number, name)| {
            let fields = match number {
                63 => vec![],
                _ => vec![Type::Adt(number + 1), Type::Adt(number + 1)],
            };
            (name.as_str(), fields)
        });
        let manifest = manifest(&types.collect::<Vec<_>>());
        assert!(check(&manifest, &Type::Adt(60)).is_ok());
        let message = check(&manifest, &Type::Adt(0)).expect_err("columns beyond count");
        assert!(message.contains("are the most"), "{message}");
    }
}
