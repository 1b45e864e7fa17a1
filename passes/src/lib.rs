//! The passes of the compiler, by the level of IR that they work on; see `docs/ir.md`.
//!
//! A pass `foo-bar` is `foo_bar.rs` in the folder of its level and is tested in `test/passes/foo-bar/`.
//! What depends on a target is in `cohort-codegen`, which also puts all passes in order (its `pipeline`).
//!
//! ```text
//! level0 --form-blocks--> level1 --batch-blocks--> level2 --> kernel (read) --planned for a target--> loops
//!                                                        \--> control program
//! ```

pub mod kernel;
pub mod level0;
pub mod level1;
pub mod level2;
pub mod loops;
pub mod pass;
pub mod support;
