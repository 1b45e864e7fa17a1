//! Lowering: one small program, built by hand, for each kind of expression; and the model zoo.

mod build;
mod control;
mod models;
mod refused;
mod tensors;
