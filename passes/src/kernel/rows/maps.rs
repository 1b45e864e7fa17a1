//! Loops and index maps of structured operations.

use cohort_dialects::builder::{Op, name_of, operands_of, result_of};
use cohort_dialects::keys;
use melior::ir::{OperationRef, operation::OperationLike};

use super::read::Reader;
use crate::pass::{Failed, error};
use crate::support::ir::{affine_map, elements_of, integers};

pub use cohort_dialects::attributes::MapResult;
use cohort_dialects::attributes::folds_of;

/// A structured operation without its body.
pub struct Structure {
    pub maps: Vec<Vec<MapResult>>,
    pub folds: Vec<bool>,
    pub inputs: usize,
}

impl<'c> Reader<'c> {
    /// The loops and maps of an operation.
    pub fn structure(&self, op: OperationRef<'c, 'c>) -> Result<Structure, Failed> {
        let operands = operands_of(op);
        if Op::LinalgReduce.is(op) {
            let dims = integers(op, keys::DIMENSIONS);
            let rank = self.tensor_type(operands[0], op)?.rank();
            let folds: Vec<bool> = (0..rank)
                .map(|axis| dims.contains(&(axis as i64)))
                .collect();
            let kept = (0..rank)
                .filter(|axis| !folds[*axis])
                .map(MapResult::Loop)
                .collect();
            let inputs = operands.len() / 2;
            let mut maps = vec![(0..rank).map(MapResult::Loop).collect::<Vec<_>>(); inputs];
            maps.extend(vec![kept; inputs]);
            return Ok(Structure {
                maps,
                folds,
                inputs,
            });
        }
        if Op::LinalgMap.is(op) {
            let rank = self.tensor_type(result_of(op, 0), op)?.rank();
            let maps = vec![(0..rank).map(MapResult::Loop).collect(); operands.len()];
            return Ok(Structure {
                maps,
                folds: vec![false; rank],
                inputs: operands.len() - 1,
            });
        }
        let refuse = || {
            let message = format!("not supported yet: this form of `{}`", name_of(op));
            error(op, &message)
        };
        if let Some(named) = Op::of(op).and_then(named_structure) {
            return match indexing_maps(op) {
                Some(maps) => Ok(Structure { maps, ..named }),
                _ => Ok(named),
            };
        }
        let maps = indexing_maps(op).ok_or_else(refuse)?;
        let folds = folds_of(op).ok_or_else(refuse)?;
        let inputs = operands.len() - op.result_count();
        Ok(Structure {
            maps,
            folds,
            inputs,
        })
    }
}

/// Loops and maps of the named operations that level 2 uses.
pub fn named_structure(kind: Op) -> Option<Structure> {
    let structure = |maps: [&[usize]; 3], loops: usize| Structure {
        maps: maps
            .iter()
            .map(|map| map.iter().map(|l| MapResult::Loop(*l)).collect())
            .collect(),
        // The last loop of each is the one that folds.
        folds: (0..loops).map(|number| number + 1 == loops).collect(),
        inputs: 2,
    };
    Some(match kind {
        Op::LinalgDot => structure([&[0], &[0], &[]], 1),
        Op::LinalgVecmat => structure([&[1], &[1, 0], &[0]], 2),
        Op::LinalgMatvec => structure([&[0, 1], &[1], &[0]], 2),
        Op::LinalgMatmul => structure([&[0, 2], &[2, 1], &[0, 1]], 3),
        Op::LinalgBatchVecmat => structure([&[0, 2], &[0, 2, 1], &[0, 1]], 3),
        Op::LinalgBatchMatvec => structure([&[0, 1, 2], &[0, 2], &[0, 1]], 3),
        Op::LinalgBatchMatmul => structure([&[0, 1, 3], &[0, 3, 2], &[0, 1, 2]], 4),
        _ => return None,
    })
}

/// The `indexing_maps` of an operation, when all results are loops or constants.
pub fn indexing_maps(op: OperationRef<'_, '_>) -> Option<Vec<Vec<MapResult>>> {
    let maps = elements_of(op.attribute(&keys::INDEXING_MAPS).ok()?);
    maps.into_iter()
        .map(|map| {
            let map = affine_map(map)?;
            (0..map.result_count())
                .map(|index| {
                    let result = map.result(index).ok()?;
                    match () {
                        () if result.is_dim() => Some(MapResult::Loop(result.dim_position())),
                        () if result.is_constant() => {
                            Some(MapResult::Constant(result.constant_value()))
                        }
                        () => None,
                    }
                })
                .collect()
        })
        .collect()
}
