//! Loops and index maps of structured operations.

use cohort_dialects::builder::{operands_of, result_of};
use melior::ir::{OperationRef, operation::OperationLike};

use super::read::Reader;
use crate::pass::{Failed, error};
use crate::support::ir::{affine_map, elements_of, integers};

pub use cohort_dialects::attributes::Place;

/// A structured operation without its body.
pub struct Structure {
    pub maps: Vec<Vec<Place>>,
    pub folds: Vec<bool>,
    pub inputs: usize,
}

impl<'c> Reader<'c> {
    /// The loops and maps of an operation.
    pub fn structure(&self, op: OperationRef<'c, 'c>, name: &str) -> Result<Structure, Failed> {
        let operands = operands_of(op);
        if name == "linalg.reduce" {
            let dims = integers(op, "dimensions");
            let rank = self.tensor_type(operands[0], op)?.rank();
            let folds: Vec<bool> = (0..rank)
                .map(|axis| dims.contains(&(axis as i64)))
                .collect();
            let kept = (0..rank)
                .filter(|axis| !folds[*axis])
                .map(Place::Loop)
                .collect();
            let inputs = operands.len() / 2;
            let mut maps = vec![(0..rank).map(Place::Loop).collect::<Vec<_>>(); inputs];
            maps.extend(vec![kept; inputs]);
            return Ok(Structure {
                maps,
                folds,
                inputs,
            });
        }
        if name == "linalg.map" {
            let rank = self.tensor_type(result_of(op, 0), op)?.rank();
            let maps = vec![(0..rank).map(Place::Loop).collect(); operands.len()];
            return Ok(Structure {
                maps,
                folds: vec![false; rank],
                inputs: operands.len() - 1,
            });
        }
        let refuse = || error(op, &format!("not supported yet: this form of `{name}`"));
        if let Some(named) = named_structure(name) {
            return match indexing_maps(op) {
                Some(maps) if name != "linalg.generic" => Ok(Structure { maps, ..named }),
                _ => Ok(named),
            };
        }
        let maps = indexing_maps(op).ok_or_else(refuse)?;
        let kinds = op.attribute("iterator_types").map_err(|_| refuse())?;
        let folds = elements_of(kinds)
            .iter()
            .map(|kind| kind.to_string().contains("reduction"))
            .collect();
        let inputs = operands.len() - op.result_count();
        Ok(Structure {
            maps,
            folds,
            inputs,
        })
    }
}

/// Loops and maps of the named operations that level 2 uses.
pub fn named_structure(name: &str) -> Option<Structure> {
    let structure = |maps: [&[usize]; 3], loops: usize| Structure {
        maps: maps
            .iter()
            .map(|map| map.iter().map(|l| Place::Loop(*l)).collect())
            .collect(),
        // The last loop of each is the one that folds.
        folds: (0..loops).map(|number| number + 1 == loops).collect(),
        inputs: 2,
    };
    Some(match name {
        "linalg.dot" => structure([&[0], &[0], &[]], 1),
        "linalg.vecmat" => structure([&[1], &[1, 0], &[0]], 2),
        "linalg.matvec" => structure([&[0, 1], &[1], &[0]], 2),
        "linalg.matmul" => structure([&[0, 2], &[2, 1], &[0, 1]], 3),
        "linalg.batch_vecmat" => structure([&[0, 2], &[0, 2, 1], &[0, 1]], 3),
        "linalg.batch_matvec" => structure([&[0, 1, 2], &[0, 2], &[0, 1]], 3),
        "linalg.batch_matmul" => structure([&[0, 1, 3], &[0, 3, 2], &[0, 1, 2]], 4),
        _ => return None,
    })
}

/// The `indexing_maps` of an operation, when all results are loops or constants.
pub fn indexing_maps(op: OperationRef<'_, '_>) -> Option<Vec<Vec<Place>>> {
    let maps = elements_of(op.attribute("indexing_maps").ok()?);
    maps.into_iter()
        .map(|map| {
            let map = affine_map(map)?;
            (0..map.result_count())
                .map(|index| {
                    let result = map.result(index).ok()?;
                    match () {
                        () if result.is_dim() => Some(Place::Loop(result.dim_position())),
                        () if result.is_constant() => {
                            Some(Place::Constant(result.constant_value()))
                        }
                        () => None,
                    }
                })
                .collect()
        })
        .collect()
}
