//! `batch-serve`: see [`cohort_tools::serve`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cohort_tools::exit::finish(cohort_tools::serve::main(
        std::env::args_os(),
    )))
}
