//! `--gradients`: the gradient of the instances' losses, or of all that they give.

use std::path::PathBuf;

use clap::Args;
use cohort_runtime::Config;
use cohort_runtime::backward::{CotangentLines, Question};
use cohort_runtime::io::sink::GradientLines;

use crate::exit::Stop;
use crate::output::Lines;

/// What is differentiated, and where the gradients go.
#[derive(Debug, Args)]
pub struct Gradients {
    /// Write the gradient of the sum of the instances' losses for every parameter of floats, a
    /// safetensors file; a loss is an f32, or the first part of a tuple
    #[arg(long = "gradients", value_name = "FILE")]
    pub of_params: Option<PathBuf>,
    /// Write the gradient of each instance's loss for its inputs, one JSON object a line
    #[arg(long = "input-gradients", value_name = "FILE")]
    pub of_inputs: Option<PathBuf>,
    /// Differentiate the outputs, each number weighed by one of this file, in place of losses; one
    /// object a line, `{"id": ..., "cotangent": ...}`, of the output's form
    #[arg(long, value_name = "FILE")]
    pub cotangents: Option<PathBuf>,
}

impl Gradients {
    pub fn are_wanted(&self) -> bool {
        self.of_params.is_some() || self.of_inputs.is_some()
    }

    pub fn refuse_unsupported(&self) -> Result<(), Stop> {
        if self.cotangents.is_some() && !self.are_wanted() {
            return Err(Stop::usage(
                "`--cotangents` weighs what is differentiated: say by `--gradients` or \
                 `--input-gradients` where the gradients go",
            ));
        }
        Ok(())
    }

    /// The files that are written, by their options.
    pub fn written(&self) -> [Option<(&'static str, &PathBuf)>; 2] {
        let named = |name| move |path| (name, path);
        [
            self.of_params.as_ref().map(named("--gradients")),
            self.of_inputs.as_ref().map(named("--input-gradients")),
        ]
    }

    pub fn read(&self) -> Option<(&'static str, &PathBuf)> {
        let path = self.cotangents.as_ref();
        path.map(|path| ("the file of cotangents", path))
    }

    /// Reads by what outputs are weighed.
    pub fn cotangents(&self, config: &Config) -> Result<Option<CotangentLines>, Stop> {
        let Some(path) = &self.cotangents else {
            return Ok(None);
        };
        let lines = CotangentLines::read(super::files::input(path)?, config.max_line_bytes);
        let lines = lines.map_err(|error| Stop::usage(format!("{}: {error}", path.display())))?;
        Ok(Some(lines))
    }

    /// What is asked of a compiled program's run, and the lines of the gradients of inputs.
    pub fn question(&self, config: &Config) -> Result<(Question, Option<Lines>), Stop> {
        let mut question = Question::default();
        if let Some(lines) = self.cotangents(config)? {
            question.cotangents = Some(Box::new(lines));
        }
        let lines = self.of_inputs.as_deref().map(Lines::open).transpose()?;
        if let Some(lines) = &lines {
            question.inputs = Some(Box::new(GradientLines::new(&config.limits, lines.clone())));
        }
        Ok((question, lines))
    }
}
