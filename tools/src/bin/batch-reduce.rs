//! `batch-reduce`: see [`cohort_tools::reduce`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cohort_tools::exit::finish(cohort_tools::reduce::main(
        std::env::args_os(),
    )))
}
