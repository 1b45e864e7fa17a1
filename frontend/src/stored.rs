//! Where weights files have a parameter: `from "layer.{}.query.weight".T`.

use std::collections::{BTreeMap, BTreeSet};

use crate::bind::shown_shape;
use crate::program::Elem;

/// The names under which a parameter is stored, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Each `{}` stands for the numbers of one of the parameter's first axes: there is a tensor for each.
    pub name: String,
    /// The last two axes of each tensor are swapped.
    pub transposed: bool,
}

/// What stands for a number in a name.
const HOLE: &str = "{}";

impl Stored {
    /// How many of the parameter's first axes are numbers in names.
    pub fn axes(&self) -> usize {
        self.name.matches(HOLE).count()
    }

    /// The name of one of the tensors.
    pub fn name_of(&self, index: &[u64]) -> String {
        let mut pieces = self.name.split(HOLE);
        let mut name = pieces.next().unwrap_or_default().to_owned();
        for (piece, number) in pieces.zip(index) {
            name.push_str(&number.to_string());
            name.push_str(piece);
        }
        name
    }

    /// The names of all tensors of a parameter of this shape, in its order.
    pub fn names(&self, shape: &[u64]) -> impl Iterator<Item = String> {
        Indices::new(&shape[..self.axes()]).map(|index| self.name_of(&index))
    }

    /// Whether a tensor is one of these, and which.
    pub fn index_of(&self, name: &str) -> Option<Vec<u64>> {
        let mut pieces = self.name.split(HOLE);
        let mut rest = name.strip_prefix(pieces.next()?)?;
        let mut index = Vec::new();
        for piece in pieces {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, behind) = rest.split_at(digits);
            index.push(number.parse().ok()?);
            rest = behind.strip_prefix(piece)?;
        }
        // Numbers are written without zeros before them.
        (rest.is_empty() && self.name_of(&index) == name).then_some(index)
    }

    /// What the tensors are together; nothing where there is none of them.
    ///
    /// # Errors
    /// A sentence of what keeps them from being one parameter.
    pub fn find(
        &self,
        weights: &BTreeMap<String, (Elem, Vec<u64>)>,
    ) -> Result<Option<(Elem, Vec<u64>)>, String> {
        let found: BTreeSet<Vec<u64>> = weights
            .keys()
            .filter_map(|name| self.index_of(name))
            .collect();
        let Some(last) = found.last() else {
            return Ok(None);
        };
        let mut shape = vec![0; last.len()];
        for index in &found {
            for (length, number) in shape.iter_mut().zip(index) {
                *length = number.saturating_add(1).max(*length);
            }
        }
        // The first one that is missing comes before there are more than were found.
        if let Some(missing) = Indices::new(&shape).find(|index| !found.contains(index)) {
            return Err(format!(
                "there is `{}`, and no `{}`",
                self.name_of(last),
                self.name_of(&missing)
            ));
        }
        let mut each = found.iter().map(|index| self.name_of(index));
        let Some(first) = each.next() else {
            return Ok(None);
        };
        let (elem, inner) = &weights[&first];
        for name in each {
            if weights[&name] != (*elem, inner.clone()) {
                let (other, shape) = &weights[&name];
                return Err(format!(
                    "`{first}` is {}, and `{name}` is {}",
                    shown_shape(*elem, inner),
                    shown_shape(*other, shape)
                ));
            }
        }
        let mut inner = inner.clone();
        if self.transposed {
            match inner.as_mut_slice() {
                [.., rows, columns] => std::mem::swap(rows, columns),
                _ => return Err(format!("`{first}` has no two dims that `.T` swaps")),
            }
        }
        shape.extend(inner);
        Ok(Some((*elem, shape)))
    }
}

/// Whether weights have the parameters by their own names, as a trained file does, and not by those under
/// which the program says that they are stored.
pub fn are_own<'a, T>(
    params: impl Iterator<Item = (&'a str, Option<&'a Stored>)> + Clone,
    weights: &BTreeMap<String, T>,
) -> bool {
    let is_stored = |stored: &Stored| weights.keys().any(|name| stored.index_of(name).is_some());
    params.clone().all(|(name, _)| weights.contains_key(name))
        || params
            .filter_map(|(_, stored)| stored)
            .all(|stored| !is_stored(stored))
}

impl std::fmt::Display for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let transposed = if self.transposed { ".T" } else { "" };
        write!(f, "\"{}\"{transposed}", self.name)
    }
}

/// The indices of a shape, the last axis fastest. Of no axes there is one.
struct Indices<'a> {
    shape: &'a [u64],
    next: Option<Vec<u64>>,
}

impl Indices<'_> {
    fn new(shape: &[u64]) -> Indices<'_> {
        let next = (!shape.contains(&0)).then(|| vec![0; shape.len()]);
        Indices { shape, next }
    }
}

impl Iterator for Indices<'_> {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        let index = self.next.take()?;
        let mut following = index.clone();
        for (number, length) in following.iter_mut().zip(self.shape).rev() {
            *number += 1;
            if *number < *length {
                self.next = Some(following);
                break;
            }
            *number = 0;
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(name: &str, transposed: bool) -> Stored {
        Stored {
            name: name.to_owned(),
            transposed,
        }
    }

    fn weights(names: &[(&str, &[u64])]) -> BTreeMap<String, (Elem, Vec<u64>)> {
        let entry =
            |(name, shape): &(&str, &[u64])| (name.to_string(), (Elem::F32, shape.to_vec()));
        names.iter().map(entry).collect()
    }

    #[test]
    fn numbers_are_told_from_names() {
        let one = stored("h.{}.mlp.{}.w", false);
        assert_eq!(one.index_of("h.10.mlp.0.w"), Some(vec![10, 0]));
        for other in ["h.01.mlp.0.w", "h..mlp.0.w", "h.1.mlp.0.w2", "h.-1.mlp.0.w"] {
            assert_eq!(one.index_of(other), None, "{other}");
        }
        let names: Vec<String> = one.names(&[1, 2, 7]).collect();
        assert_eq!(names, ["h.0.mlp.0.w", "h.0.mlp.1.w"]);
        assert_eq!(stored("w", false).index_of("w"), Some(vec![]));
    }

    #[test]
    fn layers_are_one_shape_in_the_order_of_their_numbers() {
        let file: Vec<(String, [u64; 2])> = (0..11).map(|i| (format!("l.{i}.w"), [3, 5])).collect();
        let file: Vec<(&str, &[u64])> = file.iter().map(|(n, s)| (n.as_str(), &s[..])).collect();
        let file = weights(&file);
        let found = stored("l.{}.w", true).find(&file);
        assert_eq!(found, Ok(Some((Elem::F32, vec![11, 5, 3]))));
        assert_eq!(stored("m.{}.w", true).find(&file), Ok(None));
    }

    #[test]
    fn what_is_missing_or_differs_is_named() {
        let file = weights(&[
            ("l.0", &[2]),
            ("l.18446744073709551615", &[2]),
            ("k.0", &[1]),
            ("k.1", &[2]),
        ]);
        let problem = |name, transposed| stored(name, transposed).find(&file).unwrap_err();
        assert!(problem("l.{}", false).contains("no `l.1`"));
        assert!(problem("k.{}", false).contains("`k.0` is f32[1], and `k.1` is f32[2]"));
        assert!(
            stored("k.0", true)
                .find(&file)
                .unwrap_err()
                .contains("`k.0` has no two dims")
        );
    }
}
