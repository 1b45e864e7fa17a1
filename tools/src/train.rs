//! `batch-train`: trains a program's parameters on a file of instances.
//!
//! Reads the program, the data and what the parameters begin with, and hands them to a
//! [`cohort_train::Trainer`], with who computes gradients.

mod args;
mod begin;
mod compiled;
mod data;
mod interrupt;
mod oracle;
mod settings;
mod terminal;

use std::ffi::OsString;

use clap::Parser;
use cohort_frontend::metrics;
use cohort_train::checkpoint;
use cohort_train::trainer::Dev;
use cohort_train::{Ending, Error, Evaluate, State, Step, Trainer};

use crate::exit::{FAILED, SUCCESS, Stop, say};
use crate::output::{self, Document};
use args::Arguments;
use begin::Program;
use compiled::CompiledStep;
use data::Data;
use oracle::OracleStep;
use terminal::Terminal;

/// Runs the tool and returns its exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> Result<u8, Stop> {
    match Arguments::try_parse_from(arguments) {
        Ok(arguments) => run(&arguments),
        Err(error) => {
            // Help goes to stdout with code 0, a mistake to stderr with code 2.
            let code = u8::try_from(error.exit_code()).unwrap_or(crate::exit::USAGE);
            let _ = error.print();
            Ok(code)
        }
    }
}

fn run(arguments: &Arguments) -> Result<u8, Stop> {
    arguments.refuse_unsupported()?;
    arguments.refuse_overwriting()?;
    let interrupt = interrupt::watch()?;
    let dims = begin::dims(arguments)?;
    let program = Program::read(arguments, &arguments.entry, &dims)?;
    let dev_program = match (&arguments.dev, &arguments.dev_entry) {
        (Some(_), Some(entry)) => Some(Program::read(arguments, entry, &dims)?),
        _ => None,
    };
    let parameters = begin::parameters(arguments, &program, &dims)?;
    let settings = arguments.settings(&parameters).map_err(stop)?;
    let count = |program: &Program| metrics(&program.program).len();
    let (of_loss, of_dev) = (
        count(&program),
        count(dev_program.as_ref().unwrap_or(&program)),
    );
    settings
        .check_metrics(of_loss.max(of_dev))
        .and_then(|()| settings.best_metric(of_dev))
        .map_err(stop)?;
    let data = Data::read(&arguments.input)?;
    let dev = arguments.dev.as_deref().map(Data::read).transpose()?;
    if settings.groups.iter().all(|group| group.frozen) {
        return Err(Stop::usage(
            "nothing is trained: the program has no parameter of floats that is not frozen",
        ));
    }
    data.check("training")?;
    dev.as_ref()
        .map_or(Ok(()), |dev| dev.check("development"))?;
    let identity = arguments.identity(&program, dev_program.as_ref(), &data, dev.as_ref());

    let mut state = State::new(parameters, &settings.groups);
    if let Some(path) = arguments.resumed() {
        state = checkpoint::load(path, &settings.groups, &identity, &state).map_err(stop)?;
    }
    let output = arguments
        .output
        .as_deref()
        .map(Document::open)
        .transpose()?;
    let mut terminal = Terminal::new(arguments, &settings, &identity, &state).map_err(stop)?;
    let mut bad_lines = 0;
    for data in [Some(&data), dev.as_ref()].into_iter().flatten() {
        bad_lines += data.report(arguments, &mut terminal)?;
    }

    let (mut step, mut evaluate): (Box<dyn Step>, Option<Box<dyn Evaluate>>) =
        match arguments.oracle {
            true => {
                let limits = arguments.limits();
                let oracle = |program| OracleStep::new(program, limits, interrupt.clone());
                let dev_program = dev_program.as_ref().unwrap_or(&program);
                let evaluate = dev
                    .as_ref()
                    .map(|_| Box::new(oracle(&dev_program.program)) as _);
                (Box::new(oracle(&program.program)), evaluate)
            }
            false => {
                let compile = |entry: &str, program: &Program, is_trained| {
                    let parameters = &state.parameters;
                    let (metrics, interrupt) = (metrics(&program.program), interrupt.clone());
                    CompiledStep::new(
                        arguments, entry, metrics, &dims, parameters, is_trained, interrupt,
                    )
                };
                let entry = arguments.dev_entry.as_ref().unwrap_or(&arguments.entry);
                let measured = dev_program.as_ref().unwrap_or(&program);
                let evaluate = dev.as_ref().map(|_| compile(entry, measured, false));
                let evaluate = evaluate.transpose()?.map(|step| Box::new(step) as _);
                (
                    Box::new(compile(&arguments.entry, &program, true)?),
                    evaluate,
                )
            }
        };
    let mut trainer = Trainer {
        settings: &settings,
        instances: &data.instances,
        step: &mut *step,
        dev: dev
            .as_ref()
            .zip(evaluate.as_mut())
            .map(|(dev, evaluate)| Dev {
                instances: &dev.instances,
                evaluate: &mut **evaluate,
            }),
        interrupt,
        watcher: &mut terminal,
    };
    let ending = trainer.run(&mut state).map_err(stop)?;
    let failed = terminal.finish(&state) + bad_lines;

    // What is interrupted goes on from its checkpoint; where there is none, nothing should be lost.
    let is_over = !matches!(ending, Ending::Interrupted(_));
    if let Some(output) = output.filter(|_| is_over || arguments.checkpoint_file().is_none()) {
        let bytes = state.result().to_safetensors();
        output.write(&bytes.map_err(|error| Stop::usage(error.to_string()))?)?;
    }
    if let Some(path) = &arguments.plot {
        let svg = cohort_train::plot::draw(&state.progress.history, &settings);
        let svg = svg.map_err(|error| Stop::usage(format!("cannot draw the plot: {error}")))?;
        output::write(path, svg.as_bytes())?;
    }
    match ending {
        Ending::Interrupted(signal) => {
            say(&match arguments.checkpoint_file() {
                Some(path) => format!(
                    "interrupted; the state is in {}, go on with --resume",
                    path.display()
                ),
                None => {
                    "interrupted; without --checkpoint there is nothing to resume from".to_owned()
                }
            });
            Ok(u8::try_from(128 + signal).unwrap_or(FAILED))
        }
        _ if failed > 0 => Ok(FAILED),
        Ending::Done | Ending::StoppedEarly => Ok(SUCCESS),
    }
}

/// What training refuses ends the tool.
fn stop(error: Error) -> Stop {
    match error {
        Error::Diverged(_) => Stop::failed(error.to_string()),
        _ => Stop::usage(error.to_string()),
    }
}
