//! Optimisers, the loop and checkpoints, without any program.

mod checkpoints;
mod loops;
mod model;
mod optimisers;
