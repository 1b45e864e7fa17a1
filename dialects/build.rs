//! Generates the C++ of the dialects from their declarations and compiles it with the glue.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, exit},
};

const PREFIX_VARIABLE: &str = "MLIR_SYS_220_PREFIX";
const LLVM_MAJOR: &str = "22";
const SOURCES: [&str; 7] = [
    "Attributes.cpp",
    "CfbDialect.cpp",
    "CfbOps.cpp",
    "Glue.cpp",
    "RaggedDialect.cpp",
    "RaggedKernels.cpp",
    "RaggedOps.cpp",
];

/// What is generated: from which declarations, into which file, by which generator.
type Generated = (&'static str, &'static str, &'static str);

const CFB: &[Generated] = &[
    ("CfbDialect", "CfbDialect.h.inc", "-gen-dialect-decls"),
    ("CfbDialect", "CfbDialect.cpp.inc", "-gen-dialect-defs"),
    ("CfbAttrs", "CfbEnums.h.inc", "-gen-enum-decls"),
    ("CfbAttrs", "CfbEnums.cpp.inc", "-gen-enum-defs"),
    ("CfbAttrs", "CfbAttrs.h.inc", "-gen-attrdef-decls"),
    ("CfbAttrs", "CfbAttrs.cpp.inc", "-gen-attrdef-defs"),
    ("CfbTypes", "CfbTypes.h.inc", "-gen-typedef-decls"),
    ("CfbTypes", "CfbTypes.cpp.inc", "-gen-typedef-defs"),
    ("CfbOps", "CfbOps.h.inc", "-gen-op-decls"),
    ("CfbOps", "CfbOps.cpp.inc", "-gen-op-defs"),
];

const RAGGED: &[Generated] = &[
    ("RaggedDialect", "RaggedDialect.h.inc", "-gen-dialect-decls"),
    (
        "RaggedDialect",
        "RaggedDialect.cpp.inc",
        "-gen-dialect-defs",
    ),
    ("RaggedAttrs", "RaggedEnums.h.inc", "-gen-enum-decls"),
    ("RaggedAttrs", "RaggedEnums.cpp.inc", "-gen-enum-defs"),
    ("RaggedAttrs", "RaggedAttrs.h.inc", "-gen-attrdef-decls"),
    ("RaggedAttrs", "RaggedAttrs.cpp.inc", "-gen-attrdef-defs"),
    ("RaggedOps", "RaggedOps.h.inc", "-gen-op-decls"),
    ("RaggedOps", "RaggedOps.cpp.inc", "-gen-op-defs"),
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=include");
    println!("cargo:rerun-if-changed=lib");
    println!("cargo:rerun-if-env-changed={PREFIX_VARIABLE}");
    if let Err(message) = run() {
        eprintln!("error: {message}");
        exit(1);
    }
}

fn run() -> Result<(), String> {
    let llvm = Llvm::find()?;
    if is_linted() {
        return Ok(());
    }
    let out = PathBuf::from(env::var("OUT_DIR").map_err(|error| error.to_string())?);
    for (dialect, files) in [("cfb", CFB), ("ragged", RAGGED)] {
        let generated = out.join(dialect);
        fs::create_dir_all(&generated).map_err(|error| error.to_string())?;
        for (source, output, generator) in files {
            llvm.table_gen(dialect, generator, source, &generated.join(output))?;
        }
    }

    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .flag("-fno-exceptions")
        .define("NDEBUG", None)
        // Verifiers run rarely; compiling them fast matters more than running them fast.
        .opt_level(1)
        .warnings(false)
        .flag("-w")
        .include("include")
        .include("lib")
        .include(&out);
    // As system headers, so that a newer compiler's taste is not held against LLVM's.
    build.flag("-isystem").flag(llvm.config("--includedir")?);
    if llvm.config("--has-rtti")? == "NO" {
        build.flag("-fno-rtti");
    }
    for source in SOURCES {
        build.file(Path::new("lib").join(source));
    }
    build
        .try_compile("cohort_dialects_glue")
        .map_err(|error| error.to_string())
}

/// Whether Clippy asks, which links nothing. What it builds is kept apart from what the compiler builds.
fn is_linted() -> bool {
    let wrapper = env::var("RUSTC_WORKSPACE_WRAPPER");
    wrapper.is_ok_and(|wrapper| wrapper.contains("clippy-driver"))
}

/// The LLVM that mlir-sys links, found the same way.
struct Llvm {
    bin: PathBuf,
}

impl Llvm {
    fn find() -> Result<Self, String> {
        let hint = format!(
            "set {PREFIX_VARIABLE} to the prefix of LLVM {LLVM_MAJOR} with MLIR (on Debian \
             /usr/lib/llvm-{LLVM_MAJOR}, from the packages libmlir-{LLVM_MAJOR}-dev, \
             mlir-{LLVM_MAJOR}-tools and llvm-{LLVM_MAJOR}-dev)"
        );
        let prefix = env::var_os(PREFIX_VARIABLE)
            .ok_or_else(|| format!("{PREFIX_VARIABLE} is not set; {hint}"))?;
        let llvm = Llvm {
            bin: PathBuf::from(prefix).join("bin"),
        };
        for tool in ["llvm-config", "mlir-tblgen"] {
            if !llvm.bin.join(tool).exists() {
                return Err(format!("no {tool} in {}; {hint}", llvm.bin.display()));
            }
        }
        let version = llvm.config("--version")?;
        if version.split('.').next() != Some(LLVM_MAJOR) {
            return Err(format!("{} is LLVM {version}; {hint}", llvm.bin.display()));
        }
        Ok(llvm)
    }

    fn config(&self, option: &str) -> Result<String, String> {
        let output = run_tool(Command::new(self.bin.join("llvm-config")).arg(option))?;
        Ok(output.trim().to_owned())
    }

    fn table_gen(
        &self,
        dialect: &str,
        generator: &str,
        source: &str,
        output: &Path,
    ) -> Result<(), String> {
        let include = self.config("--includedir")?;
        let mut command = Command::new(self.bin.join("mlir-tblgen"));
        command.args([generator, "-I", "include", "-I", &include]);
        // Enums belong to no dialect.
        if !generator.starts_with("-gen-enum") {
            command.arg(format!("-dialect={dialect}"));
        }
        command
            .arg(format!("include/{dialect}/{source}.td"))
            .arg("-o")
            .arg(output);
        run_tool(&mut command).map(drop)
    }
}

fn run_tool(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?} could not be run: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{command:?} failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
