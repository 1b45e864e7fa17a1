//! `cohort-lsp`: the language server of `.coh` programs, over stdin and stdout.
//!
//! It checks what an editor has open by the frontend alone: nothing is compiled, and no weights are read, so
//! that mistakes which need numbers of dims are for `batch-opt` to find.

mod documents;
mod positions;
mod server;

use std::process::ExitCode;

use lsp_server::Connection;

fn main() -> ExitCode {
    if let Some(argument) = std::env::args().nth(1) {
        // Some editors say how they speak.
        match argument.as_str() {
            "--stdio" => {}
            "--version" => {
                println!("cohort-lsp {}", env!("CARGO_PKG_VERSION"));
                return ExitCode::SUCCESS;
            }
            _ => {
                eprintln!(
                    "cohort-lsp speaks the language server protocol on stdin and stdout; no arguments"
                );
                return ExitCode::from(2);
            }
        }
    }
    let (connection, threads) = Connection::stdio();
    let result = server::serve(&connection);
    // The writing thread ends with the connection.
    drop(connection);
    match (result, threads.join()) {
        (Ok(()), Ok(())) => ExitCode::SUCCESS,
        (Err(error), _) => {
            eprintln!("cohort-lsp: {error}");
            ExitCode::FAILURE
        }
        (_, Err(error)) => {
            eprintln!("cohort-lsp: {error}");
            ExitCode::FAILURE
        }
    }
}
