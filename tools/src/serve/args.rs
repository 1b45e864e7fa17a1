//! The command line of `batch-serve`.

use std::time::Duration;

use clap::Parser;

use crate::model::args::{ModelArguments, parse_bytes, parse_seconds};

/// Serves a program over HTTP: instances come one at a time or many, and are batched together.
///
/// Exits with 0 after SIGTERM or SIGINT, when what was in flight is answered; with 1 when some of it was
/// not in time; with 2 when the command line, the program or the weights are wrong, or the program can
/// compute nothing any more.
#[derive(Debug, Parser)]
#[command(name = "batch-serve", version)]
pub struct Arguments {
    #[command(flatten)]
    pub model: ModelArguments,
    /// Where to listen; port 0 is any that is free, and the first line of stdout says which
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: String,
    /// What the model is called in paths; without, the name of its file
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub name: Option<String>,
    /// Instances that are computed at once
    #[arg(
        long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u64).range(1..=1 << 20)
    )]
    pub in_flight: u64,
    /// Instances that may wait beside them; more are refused with 429
    #[arg(
        long, value_name = "N", default_value_t = 1024,
        value_parser = clap::value_parser!(u64).range(1..=1 << 24)
    )]
    pub max_queued: u64,
    /// How much memory those that wait may use together, and the same again bodies of requests, and results whose
    /// answers are not read yet
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = parse_bytes)]
    pub max_queued_memory: u64,
    /// How long the body of a request may be; a longer one is refused with 413
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = parse_bytes)]
    pub max_body: u64,
    /// How much the results of one request may have together
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = parse_bytes)]
    pub max_response: u64,
    /// How many seconds a request may take before it is answered with 504
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    pub deadline: Duration,
    /// Connections at once; others wait until one is closed
    #[arg(
        long, value_name = "N", default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=1 << 16)
    )]
    pub max_connections: u32,
    /// How many seconds a client may take to send a head or a body, and to read a MiB of an answer, before
    /// its connection is closed
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    pub patience: Duration,
    /// How many seconds what is in flight may take after SIGTERM or SIGINT
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds)]
    pub grace: Duration,
    /// Threads that read requests and write responses
    #[arg(
        long, value_name = "N", default_value_t = 2,
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    pub http_threads: u16,
}

/// A name that stands in a path as it is.
fn parse_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("letters, digits, `-`, `_` and `.`".to_owned()),
    }
}

impl Arguments {
    /// What the model is called.
    pub fn name(&self) -> String {
        let stem = || {
            let stem = self.model.path.file_stem()?.to_str()?;
            parse_name(stem).ok()
        };
        let name = self.name.clone().or_else(stem);
        name.unwrap_or_else(|| "model".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
