//! The frontend's tests: one executable, one module a stage.

mod diagnostics;
mod documentation;
mod examples;
mod robustness;
mod stages;
mod support;
mod syntax;
mod verify;
mod warnings;
