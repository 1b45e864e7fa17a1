//! The built tools, end to end: against goldens and the oracle, and bit for bit against
//! themselves. One executable; a module a promise.

mod arrays;
mod artifacts;
mod bad_files;
mod bad_input;
mod batch_train;
mod compilations;
mod debug;
mod deciding;
mod devices;
mod edges;
mod einsum;
mod endings;
mod goldens;
mod gradients;
mod imports;
mod integers;
mod invariance;
mod language;
mod lengths;
mod limits;
mod models;
mod named_fields;
mod operations;
mod ordering;
mod patterns;
mod ragged_values;
mod random_inputs;
mod shapes;
mod stats;
mod stored_weights;
mod streams;
mod texts;
mod trained;
mod training;
