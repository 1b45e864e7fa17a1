//! `.coh` programs: checked, bound to the shapes of the weights, lowered.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_abi::manifest;
use cohort_frontend::program::{Elem, Program};
use cohort_frontend::{Checked, Diagnostic, Sources};
use cohort_oracle::Tensor;
use cohort_runtime::{WeightShape, Weights};
use melior::{Context, ir::Module};

use crate::exit::{Stop, USAGE};

/// What program dims are bound from.
#[derive(Clone, Debug, Default)]
pub struct Dims {
    /// The weights, whose shapes give sizes.
    pub weights: Option<Arc<Weights>>,
    /// `H=256`
    pub named: BTreeMap<String, u64>,
}

impl Dims {
    /// Reads `--dim` options.
    pub fn new(weights: Option<Arc<Weights>>, options: &[String]) -> Result<Dims, Stop> {
        let mut named = BTreeMap::new();
        for option in options {
            let parsed = option
                .split_once('=')
                .and_then(|(name, size)| Some((name.trim(), size.trim().parse::<u64>().ok()?)));
            let Some((name, size)) = parsed else {
                return Err(Stop::usage(format!(
                    "`--dim {option}`: write it as `--dim H=256`"
                )));
            };
            if named.insert(name.to_owned(), size).is_some() {
                return Err(Stop::usage(format!("`--dim` gives `{name}` twice")));
            }
        }
        Ok(Dims { weights, named })
    }

    /// Whether no size is known.
    pub fn is_empty(&self) -> bool {
        self.weights.is_none() && self.named.is_empty()
    }
}

/// Of a dim whose number nothing tells.
const UNTOLD_DIM: &str = "E0701";

/// Opens a weights file.
pub fn open_weights(path: Option<&Path>) -> Result<Option<Arc<Weights>>, Stop> {
    let open = |path| Weights::open(path).map(Arc::new);
    let weights = path.map(open).transpose();
    weights.map_err(|error| Stop::usage(error.to_string()))
}

/// Weights as the runtime has them, and as the oracle has.
pub type BothWeights = (Arc<Weights>, BTreeMap<String, Tensor>);

/// Reads weights for both the compiler and the oracle, each file once.
pub fn read_weights(path: &Path) -> Result<BothWeights, Stop> {
    let usage = |error: cohort_runtime::Error| Stop::usage(error.to_string());
    let (mut files, mut tensors) = (Vec::new(), BTreeMap::new());
    for file in cohort_runtime::program::weights::shards(path).map_err(usage)? {
        let bytes = crate::text::read(&file)?;
        files.push((file, bytes.into()));
    }
    let weights = Weights::of(path, files.clone()).map_err(usage)?;
    for (file, bytes) in &files {
        let parsed = cohort_oracle::parse_weights(bytes);
        tensors
            .extend(parsed.map_err(|error| Stop::usage(format!("{}: {error}", file.display())))?);
    }
    Ok((Arc::new(weights), tensors))
}

/// A program whose types are right.
pub struct Source {
    /// The files, for messages.
    pub sources: Sources,
    /// The number of the main file among them.
    pub file: usize,
    /// The program.
    pub checked: Checked,
}

impl Source {
    /// Reads a program's text, of which the function `entry` is to run; mistakes and warnings go to stderr.
    pub fn check(path: &Path, bytes: &[u8], entry: &str) -> Result<Source, Stop> {
        let source = Source::check_again(path, bytes, entry)?;
        show(source.checked.warnings(), &source.sources);
        Ok(source)
    }

    /// The same of a program whose warnings are shown elsewhere.
    pub fn check_again(path: &Path, bytes: &[u8], entry: &str) -> Result<Source, Stop> {
        let (sources, file) = sources(path, bytes)?;
        match cohort_frontend::check_with_entry(&sources, file, entry) {
            Ok(checked) => Ok(Source {
                sources,
                file,
                checked,
            }),
            Err(diagnostics) => Err(report(&diagnostics, &sources)),
        }
    }

    /// Gives every program dim its number; says whether gradients of the program are to be compiled.
    pub fn bind(&self, dims: &Dims, is_differentiated: bool) -> Result<Program, Stop> {
        let mut weights = BTreeMap::new();
        if let Some(file) = &dims.weights {
            for (name, WeightShape { dtype, elem, shape }) in file.shapes() {
                let elem = match elem {
                    Some(manifest::Elem::F32) => Elem::F32,
                    Some(manifest::Elem::I32) => Elem::I32,
                    Some(manifest::Elem::Bool) => Elem::Bool,
                    _ if self.checked.params().iter().any(|param| param.reads(&name)) => {
                        return Err(Stop::usage(format!(
                            "in {}: `{name}` has elements of type {dtype}; weights are f32 (also stored as \
                             f16, bf16 or f64), i32 (also as i64) or bool",
                            file.path().display()
                        )));
                    }
                    // Whether a tensor that the program does not use may be there is asked later.
                    _ => continue,
                };
                weights.insert(name, (elem, shape));
            }
        }
        let bound = match is_differentiated {
            true => self.checked.bind_differentiated(&weights, &dims.named),
            false => self.checked.bind(&weights, &dims.named),
        };
        bound.map_err(|mut diagnostics| {
            // Which file it is that lacks what would tell.
            if let Some(file) = &dims.weights {
                let path = file.path().display();
                let untold = diagnostics.iter_mut().filter(|one| one.code == UNTOLD_DIM);
                untold.for_each(|one| one.notes.push(format!("the weights are those of {path}")));
            }
            report(&diagnostics, &self.sources)
        })
    }

    /// The program at level 0.
    pub fn lower<'c>(&self, context: &'c Context, program: &Program) -> Result<Module<'c>, Stop> {
        cohort_lowering::lower(context, program, &self.sources)
            .map_err(|diagnostics| report(&diagnostics, &self.sources))
    }
}

/// The prelude, one file and all that it imports.
pub fn sources(path: &Path, bytes: &[u8]) -> Result<(Sources, usize), Stop> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let place = error.valid_up_to();
        Stop::usage(format!(
            "{} is not UTF-8 text, see byte {place}",
            path.display()
        ))
    })?;
    let name = if path == Path::new("-") {
        "<stdin>".into()
    } else {
        path.to_string_lossy()
    };
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    sources.read_imports(file, path);
    Ok((sources, file))
}

/// The files that a program imports, by the names under which they are read; none of what is not a program.
pub fn imported(path: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let Ok((sources, file)) = sources(path, bytes) else {
        return vec![];
    };
    let behind = sources.files().iter().skip(file + 1);
    behind.map(|source| PathBuf::from(&source.name)).collect()
}

/// Shows diagnostics to the user.
pub fn report(diagnostics: &[Diagnostic], sources: &Sources) -> Stop {
    show(diagnostics, sources);
    Stop::reported(USAGE)
}

/// The same of those that do not end the run.
pub fn show(diagnostics: &[Diagnostic], sources: &Sources) {
    for diagnostic in diagnostics {
        crate::sarif::add(|| super::diagnostics::finding(diagnostic, sources));
    }
    let mut stderr = std::io::stderr();
    let color = stderr.is_terminal();
    // Nothing can be done where stderr is gone.
    let _ = cohort_frontend::render(diagnostics, sources, &mut stderr, color);
}
