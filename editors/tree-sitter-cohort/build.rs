//! Compiles the parser that tree-sitter made of `grammar.js`.

fn main() {
    println!("cargo:rerun-if-changed=src/parser.c");
    cc::Build::new()
        .include("src")
        .file("src/parser.c")
        .std("c11")
        .warnings(false)
        .compile("tree-sitter-cohort");
}
