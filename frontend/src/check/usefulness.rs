//! Whether arms cover all values, and whether each can be reached.
//!
//! Maranget's algorithm ("Warnings for pattern matching"): a pattern is useful after others if some
//! value matches it and none of them. It looks at one column of a matrix of patterns at a time and
//! splits the rows by the constructor they ask for. The answer comes with a value as witness.

use std::borrow::Cow;
use std::cell::Cell;

use super::items::Items;
use crate::hir::{Pattern, PatternKind};

/// Steps after which a match counts as too large; the problem is exponential at worst.
const MAX_STEPS: usize = 50_000;

pub enum Coverage {
    Complete,
    /// A value, as one would write it, that nothing matches.
    Missing(String),
    TooLarge,
}

pub struct Matrix<'a> {
    pub items: &'a Items,
}

/// What a value looks like at its outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    Constructor {
        adt: usize,
        constructor: usize,
        arity: usize,
    },
    Tuple(usize),
    Int(i32),
    Bool(bool),
}

/// `None` is a wildcard.
type Row<'p> = Vec<Option<&'p Pattern>>;

struct OutOfSteps;

impl Matrix<'_> {
    pub fn coverage(&self, arms: &[&Pattern]) -> Coverage {
        let rows: Vec<Row<'_>> = arms.iter().map(|arm| vec![Some(*arm)]).collect();
        let steps = Cell::new(MAX_STEPS);
        match self.missing(&rows, 1, &steps) {
            Err(OutOfSteps) => Coverage::TooLarge,
            Ok(None) => Coverage::Complete,
            Ok(Some(witness)) => {
                Coverage::Missing(witness.into_iter().next().unwrap_or_else(|| "_".to_owned()))
            }
        }
    }

    /// Whether some value reaches `arm` past the earlier ones; so it is when that is too hard.
    pub fn useful(&self, earlier: &[&Pattern], arm: &Pattern) -> bool {
        let rows: Vec<Row<'_>> = earlier.iter().map(|pattern| vec![Some(*pattern)]).collect();
        let steps = Cell::new(MAX_STEPS);
        self.reaches(&rows, &[Some(arm)], &steps).unwrap_or(true)
    }

    fn head(&self, pattern: Option<&Pattern>) -> Option<Head> {
        match &pattern?.kind {
            // An or-pattern is taken apart before it is looked at.
            PatternKind::Wildcard | PatternKind::Bind(_) | PatternKind::Or(_) => None,
            PatternKind::Construct {
                adt,
                constructor,
                fields,
            } => Some(Head::Constructor {
                adt: *adt,
                constructor: *constructor,
                arity: fields.len(),
            }),
            PatternKind::Tuple(parts) => Some(Head::Tuple(parts.len())),
            PatternKind::Int(value) => Some(Head::Int(*value)),
            PatternKind::Bool(value) => Some(Head::Bool(*value)),
        }
    }

    /// The row's rest once its first value is known to have this head; `None` if it cannot.
    fn specialise<'p>(&self, row: &[Option<&'p Pattern>], head: Head) -> Option<Row<'p>> {
        let (first, rest) = row.split_first()?;
        let mut specialised: Row<'p> = match self.head(*first) {
            None => vec![None; arity(head)],
            Some(own) if own == head => match first.map(|pattern| &pattern.kind) {
                Some(PatternKind::Construct { fields, .. } | PatternKind::Tuple(fields)) => {
                    fields.iter().map(Some).collect()
                }
                _ => Vec::new(),
            },
            Some(_) => return None,
        };
        specialised.extend_from_slice(rest);
        Some(specialised)
    }

    /// The heads that the first column asks for, each once.
    fn heads(&self, rows: &[Row<'_>]) -> Vec<Head> {
        let mut heads = Vec::new();
        for row in rows {
            if let Some(head) = self.head(row.first().copied().flatten())
                && !heads.contains(&head)
            {
                heads.push(head);
            }
        }
        heads
    }

    /// Every head that values of the column's type have, if they are finitely many.
    fn all_heads(&self, like: Head) -> Option<Vec<Head>> {
        match like {
            Head::Constructor { adt, .. } => {
                let decl = self.items.types.get(adt)?;
                let head = |(constructor, decl): (usize, &super::items::ConstructorDecl)| {
                    Head::Constructor {
                        adt,
                        constructor,
                        arity: decl.fields.len(),
                    }
                };
                Some(decl.constructors.iter().enumerate().map(head).collect())
            }
            Head::Tuple(_) => Some(vec![like]),
            Head::Bool(_) => Some(vec![Head::Bool(false), Head::Bool(true)]),
            Head::Int(_) => None,
        }
    }

    /// Values for `columns` columns that no row matches.
    fn missing(
        &self,
        rows: &[Row<'_>],
        columns: usize,
        steps: &Cell<usize>,
    ) -> Result<Option<Vec<String>>, OutOfSteps> {
        let rows = &split_first(rows);
        spend(steps, rows.len())?;
        if columns == 0 {
            return Ok(if rows.is_empty() {
                Some(Vec::new())
            } else {
                None
            });
        }
        let heads = self.heads(rows);
        let all = heads.first().and_then(|head| self.all_heads(*head));
        let complete = all
            .as_ref()
            .is_some_and(|all| all.iter().all(|h| heads.contains(h)));
        if !complete {
            // A value with a head that no row names is matched by wildcards alone.
            let rest: Vec<Row<'_>> = rows
                .iter()
                .filter(|row| self.head(row.first().copied().flatten()).is_none())
                .map(|row| row.iter().skip(1).copied().collect())
                .collect();
            let Some(witness) = self.missing(&rest, columns - 1, steps)? else {
                return Ok(None);
            };
            let unnamed = match &all {
                Some(all) => all.iter().find(|head| !heads.contains(head)).copied(),
                None => fresh_int(&heads),
            };
            let first = unnamed.map_or_else(|| "_".to_owned(), |head| self.show(head, &[]));
            return Ok(Some(std::iter::once(first).chain(witness).collect()));
        }
        for head in all.unwrap_or_default() {
            let rest: Vec<Row<'_>> = rows
                .iter()
                .filter_map(|row| self.specialise(row, head))
                .collect();
            let wide = columns - 1 + arity(head);
            if let Some(witness) = self.missing(&rest, wide, steps)? {
                let (fields, others) = witness.split_at(arity(head).min(witness.len()));
                let first = self.show(head, fields);
                return Ok(Some(
                    std::iter::once(first)
                        .chain(others.iter().cloned())
                        .collect(),
                ));
            }
        }
        Ok(None)
    }

    fn reaches(
        &self,
        rows: &[Row<'_>],
        row: &[Option<&Pattern>],
        steps: &Cell<usize>,
    ) -> Result<bool, OutOfSteps> {
        let rows = &split_first(rows);
        spend(steps, rows.len())?;
        let Some((first, rest)) = row.split_first() else {
            return Ok(rows.is_empty());
        };
        let alternatives = first.map_or_else(Vec::new, Pattern::alternatives);
        if alternatives.len() > 1 {
            for alternative in alternatives {
                let row: Row<'_> = std::iter::once(Some(alternative))
                    .chain(rest.iter().copied())
                    .collect();
                if self.reaches(rows, &row, steps)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if let Some(head) = self.head(*first) {
            let rows: Vec<Row<'_>> = rows
                .iter()
                .filter_map(|other| self.specialise(other, head))
                .collect();
            let Some(row) = self.specialise(row, head) else {
                return Ok(false);
            };
            return self.reaches(&rows, &row, steps);
        }
        let heads = self.heads(rows);
        let all = heads.first().and_then(|head| self.all_heads(*head));
        if let Some(all) = all.filter(|all| all.iter().all(|head| heads.contains(head))) {
            for head in all {
                let rows: Vec<Row<'_>> = rows
                    .iter()
                    .filter_map(|other| self.specialise(other, head))
                    .collect();
                let Some(row) = self.specialise(row, head) else {
                    continue;
                };
                if self.reaches(&rows, &row, steps)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let rows: Vec<Row<'_>> = rows
            .iter()
            .filter(|other| self.head(other.first().copied().flatten()).is_none())
            .map(|other| other.iter().skip(1).copied().collect())
            .collect();
        self.reaches(&rows, rest, steps)
    }

    fn show(&self, head: Head, fields: &[String]) -> String {
        let list = |fields: Vec<&str>| fields.join(", ");
        match head {
            Head::Int(value) => value.to_string(),
            Head::Bool(value) => value.to_string(),
            Head::Tuple(arity) => {
                let parts: Vec<&str> = (0..arity).map(|i| field(fields, i)).collect();
                format!("({})", list(parts))
            }
            Head::Constructor {
                adt,
                constructor,
                arity,
            } => {
                let decl = self
                    .items
                    .types
                    .get(adt)
                    .and_then(|d| d.constructors.get(constructor));
                let name = decl.map_or("_", |decl| decl.name.name.as_str());
                if arity == 0 {
                    return name.to_owned();
                }
                let parts: Vec<&str> = (0..arity).map(|i| field(fields, i)).collect();
                format!("{name}({})", list(parts))
            }
        }
    }
}

/// The rows with one for each alternative of an or-pattern in the first column.
fn split_first<'r, 'p>(rows: &'r [Row<'p>]) -> Cow<'r, [Row<'p>]> {
    let is_or = |row: &Row<'_>| {
        let first = row.first().copied().flatten();
        first.is_some_and(|first| matches!(first.kind, PatternKind::Or(_)))
    };
    if !rows.iter().any(is_or) {
        return Cow::Borrowed(rows);
    }
    let mut split = Vec::new();
    for row in rows {
        match row.split_first() {
            Some((Some(first), rest)) => split.extend(first.alternatives().into_iter().map(|p| {
                std::iter::once(Some(p))
                    .chain(rest.iter().copied())
                    .collect()
            })),
            _ => split.push(row.clone()),
        }
    }
    Cow::Owned(split)
}

fn field(fields: &[String], index: usize) -> &str {
    fields.get(index).map_or("_", String::as_str)
}

fn arity(head: Head) -> usize {
    match head {
        Head::Constructor { arity, .. } | Head::Tuple(arity) => arity,
        Head::Int(_) | Head::Bool(_) => 0,
    }
}

/// The smallest natural number that no row names.
fn fresh_int(heads: &[Head]) -> Option<Head> {
    if heads.is_empty() {
        return None;
    }
    (0..i32::MAX)
        .map(Head::Int)
        .find(|head| !heads.contains(head))
}

fn spend(steps: &Cell<usize>, amount: usize) -> Result<(), OutOfSteps> {
    let left = steps.get().checked_sub(amount.max(1)).ok_or(OutOfSteps)?;
    steps.set(left);
    Ok(())
}
