//! `batch-train`: see [`cohort_tools::train`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cohort_tools::exit::finish(cohort_tools::train::main(
        std::env::args_os(),
    )))
}
