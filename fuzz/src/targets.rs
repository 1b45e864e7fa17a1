//! The classes of inputs, and what each begins with: the repository's own examples and tests.

mod artifacts;
mod files;
mod ir;
mod requests;
mod source;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cohort_e2e::Rng;

use crate::case::{Case, Tool};
use crate::child::{self, Ending, Main, Under};
use crate::client;
use crate::judge::essence;

/// The tools.
pub struct Tools {
    /// `batch-opt`, in this process's children.
    pub opt: Main,
    /// `batch-run`, in this process's children.
    pub run: Main,
    under: Option<Under>,
    /// What `--without` takes when a program is compiled.
    pub passes: Vec<String>,
    /// What `--without` takes when a program is run.
    pub techniques: Vec<String>,
}

impl Tools {
    /// The tools of these mains; the tools themselves say what `--without` takes.
    pub fn new(opt: Main, run: Main, under: Option<Under>) -> io::Result<Tools> {
        let mut tools = Tools {
            opt,
            run,
            under,
            passes: Vec::new(),
            techniques: Vec::new(),
        };
        fs::write("none.coh", "fn main() -> i32 { 0 }")?;
        let names = |ending: &Ending| -> Vec<String> {
            let lines = ending
                .stderr
                .lines()
                .filter_map(|line| line.strip_prefix("  "));
            lines
                .filter_map(|line| Some(line.split_once(": without it")?.0.to_owned()))
                .collect()
        };
        let arguments = strings(&["none.coh", "--emit=llvm", "--without=?"]);
        tools.passes = names(&tools.call(opt, "batch-opt", &arguments)?);
        let arguments = strings(&["none.coh", "--without=?"]);
        tools.techniques = names(&tools.call(run, "batch-run", &arguments)?);
        tools.techniques.retain(|name| !tools.passes.contains(name));
        match tools.passes.is_empty() || tools.techniques.is_empty() {
            true => Err(io::Error::other(
                "the tools do not say what `--without` takes",
            )),
            false => Ok(tools),
        }
    }

    /// Runs a case in the current folder.
    pub fn run(&self, case: &Case) -> io::Result<Ending> {
        case.write()?;
        let (main, name) = (self.main(case.tool), case.tool.name());
        child::run(main, &with_name(name, &case.arguments), self.under.as_ref())
    }

    /// Runs a tool as it is.
    pub fn call(&self, main: Main, name: &str, arguments: &[String]) -> io::Result<Ending> {
        child::run(main, &with_name(name, arguments), None)
    }

    fn main(&self, tool: Tool) -> Main {
        match tool {
            Tool::Opt => self.opt,
            Tool::Run => self.run,
            Tool::Serve => client::run,
        }
    }

    /// Runs `batch-opt` on what is known to be good.
    fn prepare(&self, arguments: &[&str]) -> io::Result<bool> {
        let mut arguments: Vec<String> = arguments.iter().map(|text| text.to_string()).collect();
        if self.under.is_some() && arguments.iter().any(|text| text == "--emit=artifact") {
            arguments.push(format!("--target-cpu={SIMULATED}"));
        }
        let ending = self.call(self.opt, "batch-opt", &arguments)?;
        Ok(ending.how == child::How::Code(0))
    }
}

fn with_name(name: &str, arguments: &[String]) -> Vec<OsString> {
    let arguments = arguments.iter().map(OsString::from);
    [OsString::from(name)]
        .into_iter()
        .chain(arguments)
        .collect()
}

/// The processor that programs which run the tools, such as valgrind, know all instructions of.
const SIMULATED: &str = "x86-64-v3";

/// Where the corpora come from.
pub struct Corpora<'a> {
    /// The root of the repository.
    root: &'a Path,
    tools: &'a Tools,
    /// Compiled when they are first asked for.
    compiled: OnceCell<Vec<artifacts::Compiled>>,
}

impl<'a> Corpora<'a> {
    /// The repository of this root, with nothing compiled yet.
    pub fn new(root: &'a Path, tools: &'a Tools) -> Corpora<'a> {
        Corpora {
            root,
            tools,
            compiled: OnceCell::new(),
        }
    }
}

/// A class of inputs.
pub struct Target {
    /// Its name on the command line, one of [`NAMES`].
    pub name: &'static str,
    /// Cases in a round: more of what is quick.
    pub share: usize,
    /// How many inputs the corpus has; they come first.
    corpus: usize,
    /// Inputs that are changed: the corpus, and those changed ones that made a tool say something new.
    pool: Vec<Case>,
    heard: BTreeSet<String>,
}

/// Changed inputs that a pool takes at most.
const MOST_KEPT: usize = 2000;
/// Longer inputs are not kept: they would grow from change to change.
const MOST_BYTES_KEPT: usize = 1 << 16;

/// The names of all targets.
pub const NAMES: [&str; 13] = [
    "source", "compile", "ir", "json", "npz", "npy", "arrow", "parquet", "weights", "manifest",
    "object", "artifact", "http",
];

impl Target {
    /// The target of a name, its corpus read and compiled.
    pub fn new(name: &str, place: &Corpora) -> io::Result<Target> {
        let (name, share, pool) = match name {
            "source" => ("source", 16, source::checked(place)?),
            "compile" => ("compile", 2, source::compiled(place)?),
            "ir" => ("ir", 16, ir::passes(place)?),
            "json" => ("json", 12, artifacts::instances(place)?),
            "npz" => ("npz", 4, files::of(place, "npz")?),
            "npy" => ("npy", 2, files::of(place, "npy")?),
            "arrow" => ("arrow", 4, files::of(place, "arrow")?),
            "parquet" => ("parquet", 4, files::of(place, "parquet")?),
            "weights" => ("weights", 12, artifacts::weights(place)?),
            "manifest" => ("manifest", 6, artifacts::manifests(place)?),
            "object" => ("object", 6, artifacts::objects(place)?),
            "http" => ("http", 2, requests::of(place)?),
            "artifact" => ("artifact", 8, artifacts::whole(place)?),
            _ => return Err(io::Error::other(format!("there is no target `{name}`"))),
        };
        if pool.is_empty() {
            return Err(io::Error::other(format!(
                "the target `{name}` has no corpus"
            )));
        }
        Ok(Target {
            name,
            share,
            corpus: pool.len(),
            pool,
            heard: BTreeSet::new(),
        })
    }

    /// The inputs as they are.
    pub fn corpus(&self) -> &[Case] {
        &self.pool[..self.corpus]
    }

    /// A changed input.
    pub fn case(&self, rng: &mut Rng) -> Case {
        // What was refused is mostly refused again.
        let from = if rng.one_in(2) {
            self.corpus()
        } else {
            &self.pool
        };
        let mut case = rng.pick(from).clone();
        let original = case.bytes.clone();
        for _ in 0..50 {
            let other = &rng.pick(&self.pool).bytes;
            case.bytes = case.form.mutate(&original, other, rng);
            if case.bytes != original && case.form.is_possible(&case.bytes) {
                break;
            }
            case.bytes.clone_from(&original);
        }
        case
    }

    /// Keeps an input whose message is the first of its kind, to be changed further.
    pub fn learn(&mut self, case: Case, ending: &Ending) {
        let is_new = self
            .heard
            .insert(format!("{:?} {}", ending.how, essence(&ending.stderr)));
        if is_new && self.heard.len() < MOST_KEPT && case.bytes.len() < MOST_BYTES_KEPT {
            self.pool.push(case);
        }
    }
}

/// All files below a folder whose names end so, in order.
fn files(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

/// Limits under which nothing takes long or much.
const LIMITS: [&str; 8] = [
    "--max-memory",
    "256M",
    "--max-depth",
    "2000",
    "--max-steps",
    "1000000",
    "--batch",
    "32",
];
