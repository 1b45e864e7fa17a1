//! The command line tools: arguments, files and exit codes; the work is done by other crates.

#[cfg(feature = "compiler")]
pub mod compile;
pub mod exit;
pub mod formats;
pub mod model;
#[cfg(feature = "compiler")]
pub mod opt;
pub mod output;
#[cfg(feature = "compiler")]
pub mod reduce;
pub mod run;
pub mod sarif;
#[cfg(feature = "serve")]
pub mod serve;
pub mod stack;
pub mod text;
#[cfg(feature = "compiler")]
pub mod train;
