//! `--gradients`: the gradient of the instances' losses, or of all that they give.

use std::path::PathBuf;

use clap::Args;

use crate::exit::Stop;

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

    pub fn refuse_unsupported(&self, is_oracle: bool) -> Result<(), Stop> {
        let wanted = [
            (&self.of_inputs, "--input-gradients"),
            (&self.cotangents, "--cotangents"),
        ];
        let option = wanted.into_iter().find(|(path, _)| path.is_some());
        if let Some((_, option)) = option
            && !is_oracle
        {
            return Err(Stop::usage(format!(
                "`{option}` needs `--oracle`: compiled programs compute gradients of losses for parameters only, so far"
            )));
        }
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
}
