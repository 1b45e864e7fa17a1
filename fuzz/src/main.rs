//! `cohort-fuzz`: changes inputs and makes up programs until its time is over.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use clap::Parser;
use cohort_e2e::Rng;
use cohort_fuzz::case::Case;
use cohort_fuzz::child::{Ending, How, Under};
use cohort_fuzz::client;
use cohort_fuzz::findings::Findings;
use cohort_fuzz::judge::judge;
use cohort_fuzz::programs;
use cohort_fuzz::targets::{Corpora, NAMES, Target, Tools};
use cohort_tools::exit::finish;
use cohort_tools::reduce::shrink::{Budget, shrink};

/// Changes inputs of every class and makes up programs, and says what the tools take badly.
///
/// The same seed gives the same inputs. Exits with 1 if anything was found; what it was is saved.
#[derive(Debug, Parser)]
struct Arguments {
    /// How long to go on
    #[arg(long, value_name = "MINUTES", default_value_t = 1.0)]
    minutes: f64,
    /// How many rounds of all classes at the most: with a seed, always the same inputs
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// What the inputs are made from; today's day without
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Only these classes of inputs; `programs` are random programs, `chains` those of long chains
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    target: Vec<String>,
    /// Where to save what fails
    #[arg(long, value_name = "FOLDER", default_value = "target/fuzz")]
    findings: PathBuf,
    /// How often to try to make one input smaller
    #[arg(long, value_name = "N", default_value_t = 300)]
    shrink: usize,
    /// Run the tools by this program, such as `valgrind --quiet`
    #[arg(long, value_name = "COMMAND")]
    under: Option<String>,
    /// How much longer everything may take then
    #[arg(long, value_name = "N", default_value_t = 100, requires = "under")]
    slowness: u32,
    /// The folder of the tools that it runs
    #[arg(
        long,
        value_name = "FOLDER",
        default_value = "target/release",
        requires = "under"
    )]
    tools: PathBuf,
}

fn under(arguments: &Arguments, root: &Path) -> Option<Under> {
    let command = arguments.under.as_ref()?;
    Some(Under {
        command: command.split_whitespace().map(OsString::from).collect(),
        tools: root.join(&arguments.tools),
        slowness: arguments.slowness.max(1),
    })
}

/// What came of a class of inputs.
#[derive(Default)]
struct Counts {
    runs: u64,
    /// Of one run there may be several.
    inputs: u64,
    codes: [u64; 3],
    slowest: Duration,
    largest: u64,
    found: u64,
}

impl Counts {
    fn add(&mut self, case: &Case, ending: &Ending) {
        self.runs += 1;
        self.inputs += case.inputs();
        if let How::Code(code @ 0..=2) = ending.how {
            self.codes[code as usize] += 1;
        }
        self.slowest = self.slowest.max(ending.time);
        self.largest = self.largest.max(ending.peak_bytes);
    }
}

fn main() -> ExitCode {
    // SAFETY: no other thread runs yet. What is compiled once is not worth keeping.
    unsafe { std::env::set_var("COHORT_CACHE", "") };
    match fuzz(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn fuzz(arguments: &Arguments) -> io::Result<bool> {
    let root = std::env::current_dir()?;
    if !root.join("examples").is_dir() {
        return Err(io::Error::other(
            "run this in the root of the repository, where `examples` is",
        ));
    }
    let seed = arguments.seed.unwrap_or_else(day);
    println!("seed {seed}: `make fuzz SEED={seed}` repeats this");

    let folder = tempfile::tempdir()?;
    std::env::set_current_dir(folder.path())?;
    for variable in ["TMPDIR", "JITDUMPDIR"] {
        // SAFETY: this process has one thread.
        unsafe { std::env::set_var(variable, folder.path()) };
    }
    client::set_server(|arguments| finish(cohort_tools::serve::main(arguments.into_iter())));
    let tools = Tools::new(
        |arguments| finish(cohort_tools::opt::main(arguments.into_iter())),
        |arguments| finish(cohort_tools::run::main(arguments.into_iter())),
        under(arguments, &root),
    )?;
    let place = Corpora::new(&root, &tools);
    let is_wanted =
        |name: &str| arguments.target.is_empty() || arguments.target.iter().any(|t| t == name);
    // Clients talk to a server that is a process of this program.
    let is_wanted = |name: &str| is_wanted(name) && (name != "http" || arguments.under.is_none());
    let kinds = programs::Kind::ALL.map(programs::Kind::name);
    let known = [&NAMES[..], &kinds[..]].concat();
    let unknown = arguments
        .target
        .iter()
        .find(|name| !known.contains(&name.as_str()));
    if let Some(name) = unknown {
        return Err(io::Error::other(format!(
            "no target `{name}`; there are {}",
            known.join(", ")
        )));
    }
    let mut targets = Vec::new();
    for name in NAMES.into_iter().filter(|name| is_wanted(name)) {
        targets.push(Target::new(name, &place)?);
    }

    let mut findings = Findings::new(&root.join(&arguments.findings));
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut tried: BTreeMap<programs::Kind, programs::Counts> = programs::Kind::ALL
        .into_iter()
        .filter(|kind| is_wanted(kind.name()))
        .map(|kind| (kind, programs::Counts::default()))
        .collect();
    let budget = || Budget::new(arguments.shrink, Duration::from_secs(30));
    // The corpora are compiled by now.
    let end = Instant::now() + Duration::from_secs_f64(arguments.minutes.max(0.0) * 60.0);
    let mut round = 0;
    let is_over = |round| arguments.rounds.is_some_and(|rounds| round >= rounds);
    while Instant::now() < end && !is_over(round) {
        for target in &mut targets {
            for number in 0..target.share {
                let mut rng = of_case(seed, target.name, round, number);
                let case = target.case(&mut rng);
                let ending = tools.run(&case)?;
                let counts = counts.entry(target.name).or_default();
                counts.add(&case, &ending);
                if let Some(found) = judge(&case, &ending) {
                    counts.found += 1;
                    if findings.count(target.name, &found) == 1 {
                        save(&findings, target.name, case, &found, &tools, budget())?;
                    }
                } else {
                    target.learn(case, &ending);
                }
                if Instant::now() > end {
                    break;
                }
            }
        }
        for (kind, counts) in &mut tried {
            if round % kind.rounds() == 0 {
                let rng = of_case(seed, kind.name(), round, 0);
                programs::try_one(*kind, rng, &tools, counts, &mut findings, budget())?;
            }
        }
        round += 1;
    }
    Ok(report(&counts, &tried, &findings))
}

/// Days since 1970: each day has inputs of its own.
fn day() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs() / 86_400)
}

/// The random numbers of one case.
fn of_case(seed: u64, target: &str, round: u64, number: usize) -> Rng {
    let mut state = seed;
    let parts = target.bytes().map(u64::from).chain([round, number as u64]);
    for part in parts {
        state = Rng::new(state ^ part).bits();
    }
    Rng::new(state)
}

/// Makes an input small and saves it with what repeats it.
fn save(
    findings: &Findings,
    target: &str,
    mut case: Case,
    signature: &str,
    tools: &Tools,
    mut budget: Budget,
) -> io::Result<()> {
    let fails = |case: &Case| {
        let ending = tools.run(case);
        ending.is_ok_and(|ending| judge(case, &ending).is_some_and(|found| found == signature))
    };
    if fails(&case) {
        let units = case.form.units(&case.bytes);
        let mut trial = case.clone();
        let small = shrink(&units, &mut budget, |units| {
            trial.bytes = units.concat();
            trial.form.is_possible(&trial.bytes) && fails(&trial)
        });
        case.bytes = small.concat();
    }
    let ending = tools.run(&case)?;
    let subject = case.form.file(&case.bytes, &case.files);
    let mut files: Vec<(&str, &[u8])> = vec![(&case.subject, &subject)];
    files.extend(
        case.files
            .iter()
            .map(|(name, bytes)| (name.as_str(), &**bytes)),
    );
    let message = format!("{signature}\n{:?}\n{}", ending.how, ending.stderr);
    let folder = findings.save(target, &files, &case.command(), &message)?;
    println!("{target}: {signature}\n  saved in {}", folder.display());
    Ok(())
}

/// Says what came of it; true if nothing was found.
fn report(
    counts: &BTreeMap<&str, Counts>,
    tried: &BTreeMap<programs::Kind, programs::Counts>,
    findings: &Findings,
) -> bool {
    println!(
        "\nclass          inputs      runs    exit 0    exit 1    exit 2   slowest     memory  failures"
    );
    for (name, counts) in counts {
        let [good, failed, refused] = counts.codes;
        println!(
            "{name:10} {:10} {:9} {good:9} {failed:9} {refused:9} {:7.2} s {:6} MiB {:9}",
            counts.inputs,
            counts.runs,
            counts.slowest.as_secs_f64(),
            counts.largest >> 20,
            counts.found
        );
    }
    for (kind, counts) in tried {
        print!("{}", counts.describe(*kind));
    }
    if !findings.is_empty() {
        print!("\nfound:\n{}", findings.describe());
    }
    let failed = counts.values().filter(|counts| counts.found > 0).count()
        + tried.values().filter(|counts| counts.failed > 0).count();
    let all = counts.len() + tried.len();
    println!("\n{} passed, {failed} failed", all - failed);
    failed == 0
}
