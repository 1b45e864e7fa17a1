//! The language of Cohort for [tree-sitter](https://tree-sitter.github.io).

use tree_sitter_language::LanguageFn;

unsafe extern "C" {
    fn tree_sitter_cohort() -> *const ();
}

/// The grammar.
// SAFETY: the function is that of the parser that the build script compiles; it gives a constant.
pub const LANGUAGE: LanguageFn = unsafe { LanguageFn::from_raw(tree_sitter_cohort) };

/// What editors show how.
pub const HIGHLIGHTS: &str = include_str!("../queries/highlights.scm");
