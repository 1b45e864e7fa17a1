//! The program, and what its parameters begin with.

use std::collections::BTreeMap;

use cohort_frontend::check_loss;
use cohort_frontend::program::{self, Elem, ExprKind};
use cohort_lowering::walk::each_expr;
use cohort_oracle::{Data as Numbers, Tensor, named_weights, unused_weights};
use cohort_train::init::Rules;
use cohort_train::parameters::describe;
use cohort_train::{Data, Parameter, Parameters, fingerprint};

use super::args::Arguments;
use super::stop;
use crate::compile::source::{Dims, Source, read_weights, report};
use crate::exit::Stop;

/// A program with one entry.
pub struct Program {
    pub program: program::Program,
    /// Of its texts, its entry and its dims.
    pub fingerprint: String,
}

/// The bytes of the weights file, with its shapes for the dims.
pub struct Given {
    pub dims: Dims,
    tensors: BTreeMap<String, Tensor>,
}

pub fn dims(arguments: &Arguments) -> Result<Given, Stop> {
    let (mut shapes, mut tensors) = (None, BTreeMap::new());
    if let Some(path) = &arguments.weights {
        let (read, all) = read_weights(path)?;
        (shapes, tensors) = (Some(read), all);
    }
    Ok(Given {
        dims: Dims::new(shapes, &arguments.dims)?,
        tensors,
    })
}

impl Program {
    pub fn read(arguments: &Arguments, entry: &str, given: &Given) -> Result<Program, Stop> {
        let bytes = crate::text::read(&arguments.model)?;
        let source = Source::check(&arguments.model, &bytes, entry)?;
        let program = source.bind(&given.dims, false)?;
        check_loss(&program).map_err(|diagnostic| report(&[*diagnostic], &source.sources))?;
        let dims = program
            .dims
            .iter()
            .map(|dim| format!("{}={}", dim.name, dim.size));
        let about: Vec<String> = dims.chain([entry.to_owned()]).collect();
        let texts = source
            .sources
            .files()
            .iter()
            .map(|file| file.text.as_bytes());
        let pieces = texts.chain(about.iter().map(String::as_bytes));
        let fingerprint = fingerprint::of(pieces);
        Ok(Program {
            program,
            fingerprint,
        })
    }
}

/// Those of the weights file, and by rules those that it does not have.
pub fn parameters(
    arguments: &Arguments,
    program: &Program,
    given: &Given,
) -> Result<Parameters, Stop> {
    let rules = Rules::new(&arguments.init).map_err(stop)?;
    let declared = &program.program.params;
    let unused = unused_weights(&program.program, &given.tensors);
    if !arguments.allow_unused_weights && !unused.is_empty() {
        return Err(Stop::usage(format!(
            "the program has no parameter {}; allow it with --allow-unused-weights",
            unused.join(", ")
        )));
    }
    check_size(&program.program)?;
    let given = named_weights(&program.program, &given.tensors)
        .map_err(|error| Stop::usage(error.to_string()))?;
    let tables = tables(&program.program);
    let each = declared.iter().zip(tables).map(|(declared, is_table)| {
        let shape: Vec<usize> = declared.shape.iter().map(|&length| length as usize).collect();
        let name = declared.name.clone();
        let data = match given.get(&name) {
            Some(tensor) => of_file(declared, &shape, tensor)?,
            None if declared.elem == Elem::F32 => {
                Data::F32(rules.of(&name, &shape).values(arguments.seed, &name, &shape))
            }
            None => {
                return Err(Stop::usage(format!(
                    "the parameter `{name}` is not of floats, so no rule makes it; give it by `--weights`"
                )));
            }
        };
        Ok(Parameter {
            name,
            shape,
            data,
            is_table,
        })
    });
    let list: Vec<Parameter> = each.collect::<Result<_, Stop>>()?;
    rules.check(&list).map_err(stop)?;
    Ok(Parameters { list })
}

/// The parameters, what is remembered of them, their gradient and the best ones are in memory at once, and
/// gradients in f64.
fn check_size(program: &program::Program) -> Result<(), Stop> {
    const BYTES_AN_ELEMENT: u64 = 48;
    let elements = |declared: &program::Param| {
        let product = |all: u64, length: &u64| all.checked_mul(*length);
        declared.shape.iter().try_fold(1, product)
    };
    let each = program.params.iter().map(elements);
    let all = each.reduce(|all, more| all?.checked_add(more?));
    let bytes = all
        .unwrap_or(Some(0))
        .and_then(|all| all.checked_mul(BYTES_AN_ELEMENT));
    let free = cohort_runtime::memory::free_bytes().unwrap_or(u64::MAX);
    match bytes {
        Some(bytes) if bytes <= free => Ok(()),
        _ => Err(Stop::usage(format!(
            "to train these parameters takes {} MB of memory, and {} MB are free",
            bytes.map_or("more than 10^13".to_owned(), |bytes| (bytes >> 20)
                .to_string()),
            free >> 20
        ))),
    }
}

fn of_file(declared: &program::Param, shape: &[usize], tensor: &Tensor) -> Result<Data, Stop> {
    let elem = match &tensor.data {
        Numbers::F32(_) => Elem::F32,
        Numbers::I32(_) => Elem::I32,
        Numbers::Bool(_) => Elem::Bool,
    };
    if elem != declared.elem || tensor.shape != shape {
        return Err(Stop::usage(format!(
            "the parameter `{}` is {}, and {} in the weights file",
            declared.name,
            describe(name_of(declared.elem), shape),
            describe(name_of(elem), &tensor.shape)
        )));
    }
    Ok(match &tensor.data {
        Numbers::F32(values) => Data::F32(values.iter().map(|value| *value as f32).collect()),
        Numbers::I32(values) => Data::I32(values.clone()),
        Numbers::Bool(values) => Data::Bool(values.clone()),
    })
}

fn name_of(elem: Elem) -> &'static str {
    match elem {
        Elem::F32 => "f32",
        Elem::I32 => "i32",
        Elem::Bool => "bool",
    }
}

/// Which parameters are looked up by rows wherever they stand, `emb[w]` and `gather(emb, words)`.
fn tables(program: &program::Program) -> Vec<bool> {
    let mut uses = vec![(0, 0); program.params.len()];
    for function in &program.functions {
        each_expr(&function.body, |expr| match &expr.kind {
            ExprKind::Param(param) => uses[param.0].0 += 1,
            ExprKind::Row { table, .. } | ExprKind::Gather { table, .. } => {
                if let ExprKind::Param(param) = &table.kind {
                    uses[param.0].1 += 1;
                }
            }
            _ => {}
        });
    }
    let each = uses.iter().zip(&program.params);
    each.map(|((all, lookups), param)| *all > 0 && all == lookups && param.shape.len() > 1)
        .collect()
}
