//! A program as it is loaded: code, manifest and weights, each checked before it is used; and what is written of its calls.

pub mod artifact;
pub mod call_form;
pub mod code;
pub(crate) mod computed;
pub(crate) mod log;
pub(crate) mod numbering;
pub mod pack;
pub(crate) mod parameters;
pub mod rounding;
pub mod slot;
pub(crate) mod structure;
pub(crate) mod validate;
pub mod weights;

pub use artifact::Artifact;
