//! The runtime as a module of Python, `cohort._cohort`; what users see of it is in `cohort/`.
//!
//! ```text
//! objects   a Python object -> a source of instances
//! nodes     values of data types made of plain objects, the short way
//! watch     sees an object that contains itself
//! arrays    whatever has a buffer -> the elements of a tensor
//! flat      flat arrays -> instances
//! arrow     tables of Arrow -> instances, results -> tables
//! types     the program's types, as names and classes of Python
//! owner     the thread that has the session
//! engine    instances one at a time, for an event loop
//! run       one run of instances through a session, fed and emptied from Python
//! detached  waiting without the interpreter
//! errors    errors of the runtime -> exceptions
//! ```
//!
//! A session belongs to one thread for all its life, which never touches Python; so instances are built
//! where the caller is, and results become objects there.

mod arrays;
mod arrow;
mod detached;
mod engine;
mod errors;
mod flat;
mod model;
mod nodes;
mod objects;
mod owner;
mod process;
mod run;
mod types;
mod watch;

#[pyo3::pymodule]
mod _cohort {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::detached::end;
    #[pymodule_export]
    use super::engine::{Built, Engine};
    #[pymodule_export]
    use super::errors::in_python;
    #[pymodule_export]
    use super::flat::Flat;
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::run::Run;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let end = module.getattr("end")?;
        module
            .py()
            .import("atexit")?
            .call_method1("register", (end,))?;
        Ok(())
    }
}
