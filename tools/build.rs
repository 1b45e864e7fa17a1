//! Compiles the C++ side of the tools.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=glue");
    #[cfg(feature = "compiler")]
    compile_glue();
}

#[cfg(feature = "compiler")]
fn compile_glue() {
    println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let prefix = std::env::var("MLIR_SYS_220_PREFIX").unwrap_or_else(|_| "/usr".to_owned());
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .flag("-fno-rtti")
        .flag("-Wno-unused-parameter")
        // What the headers themselves are warned of is nothing to mend here.
        .flag("-isystem")
        .flag(format!("{prefix}/include"))
        .file("glue/opt_main.cpp")
        .file("glue/reduce_main.cpp")
        .compile("cohort_tools_glue");
    // The shared library of MLIR is without what only mlir-reduce uses.
    println!("cargo:rustc-link-search=native={prefix}/lib/llvm-22/lib");
    println!("cargo:rustc-link-search=native={prefix}/lib");
    println!("cargo:rustc-link-lib=static=MLIRReduceLib");
    println!("cargo:rustc-link-lib=static=MLIRReduce");
}
