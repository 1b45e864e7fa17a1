//! Compiled programs are kept on disk: what is found there is what would be compiled, whoever else writes there and
//! whatever became of the files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cohort_e2e::tools::command;
use tempfile::TempDir;

const INPUT: &str = "{\"x\": 1.5}\n";

/// A program `main` that multiplies by a number, and an empty cache.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Case {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Case { folder }
    }

    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("the temporary folder is writable");
        path
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// The artifacts that are kept, in the order of the names.
    fn kept(&self) -> Vec<PathBuf> {
        self.kept_as("cohort")
    }

    /// The files with this ending.
    fn kept_as(&self, ending: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.cache()) else {
            return vec![];
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|own| own == ending))
            .collect();
        paths.sort();
        paths
    }

    /// Starts a run; its input is the file `input`.
    fn start(&self, program: &Path, options: &[&str]) -> std::process::Child {
        let input = self.folder.path().join("input.jsonl");
        fs::write(&input, INPUT).expect("the temporary folder is writable");
        command("batch-run")
            .env("COHORT_CACHE", self.cache())
            .arg(program)
            .arg("--input")
            .arg(input)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("batch-run can be started")
    }

    #[track_caller]
    fn run(&self, program: &Path, options: &[&str]) -> String {
        let ended = self.start(program, options).wait_with_output();
        let ended = ended.expect("batch-run ends");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{stderr}");
        String::from_utf8_lossy(&ended.stdout).into_owned()
    }
}

fn times(factor: &str) -> String {
    format!("fn main(x: f32) -> f32 {{ sum(stack([x, x]) * {factor}) }}\n")
}

fn line(number: &str) -> String {
    format!("{{\"id\": 1, \"output\": {number}}}\n")
}

#[test]
fn a_program_is_compiled_once() {
    let case = Case::new();
    let (a, b) = (
        case.program("a.coh", &times("2.0")),
        case.program("b.coh", &times("4.0")),
    );
    assert_eq!(case.run(&a, &[]), line("6.0"));
    let of_a = case.kept();
    assert_eq!(of_a.len(), 1);
    assert_eq!(case.run(&a, &[]), line("6.0"));
    assert_eq!(case.kept(), of_a);
    assert_eq!(case.run(&b, &[]), line("12.0"));
    let both = case.kept();
    assert_eq!(both.len(), 2);

    // That it is what runs shows where one program's code is put in the place of another's.
    let of_b = both.iter().find(|path| !of_a.contains(path));
    fs::copy(of_b.expect("a second file"), &of_a[0]).expect("the cache is writable");
    assert_eq!(case.run(&a, &[]), line("12.0"));
    assert_eq!(case.run(&a, &["--no-cache"]), line("6.0"));
}

#[test]
fn whatever_decides_what_is_compiled_is_told_apart() {
    let case = Case::new();
    let program = case.program(
        "a.coh",
        "import \"b.coh\"\nfn main(x: f32) -> f32 { twice(x) }\n",
    );
    case.program("b.coh", "fn twice(x: f32) -> f32 { sum(stack([x, x])) }\n");
    assert_eq!(case.run(&program, &[]), line("3.0"));
    case.program(
        "b.coh",
        "fn twice(x: f32) -> f32 { sum(stack([x, x, x])) }\n",
    );
    assert_eq!(case.run(&program, &[]), line("4.5"));
    case.run(&program, &["--granularity", "operator"]);
    case.run(&program, &["--without", "unify-kernels"]);
    case.run(&program, &["--entry", "twice"]);
    case.run(&program, &["--device", "gpu-sim"]);
    assert_eq!(case.kept().len(), 6);

    // How it runs does not.
    case.run(
        &program,
        &["--batch", "3", "--threads", "2", "--scheduler", "agenda"],
    );
    assert_eq!(case.kept().len(), 6);

    let sized = case.program(
        "c.coh",
        "dim N\nfn main(x: f32) -> f32 { sum(zeros([N]) + x) }\n",
    );
    assert_eq!(case.run(&sized, &["--dim", "N=2"]), line("3.0"));
    assert_eq!(case.run(&sized, &["--dim", "N=3"]), line("4.5"));
    assert_eq!(case.kept().len(), 8);
}

#[test]
fn what_is_damaged_is_compiled_again() {
    let case = Case::new();
    let program = case.program("a.coh", &times("2.0"));
    case.run(&program, &[]);
    let kept = case.kept().remove(0);
    let good = fs::read(&kept).expect("the file is there");
    let damages: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.clear(),
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        },
        |bytes| bytes.push(0),
    ];
    for damage in damages {
        let mut bytes = good.clone();
        damage(&mut bytes);
        fs::write(&kept, bytes).expect("the cache is writable");
        assert_eq!(case.run(&program, &[]), line("6.0"));
        assert!(fs::read(&kept).is_ok_and(|bytes| bytes == good));
    }
}

/// What products are computed by, which different programs have in common: one object file that is right in both, and
/// is made again where it is damaged.
#[test]
fn a_library_is_compiled_once_for_all_programs() {
    let case = Case::new();
    let product = |name: &str, row: &str| {
        let text = format!(
            "fn main(x: f32) -> f32 {{ sum(stack([x, 2.0]) @ stack([stack([1.0, 3.0]), stack([{row}])])) }}\n"
        );
        case.program(name, &text)
    };
    let (a, b) = (product("a.coh", "1.0, 0.5"), product("b.coh", "2.0, 0.25"));
    assert_eq!(case.run(&a, &[]), line("9.0"));
    let libraries = case.kept_as("code");
    assert!(!libraries.is_empty());
    assert_eq!(case.run(&b, &[]), line("10.5"));
    assert_eq!(case.kept_as("code"), libraries);

    for library in &libraries {
        let good = fs::read(library).expect("the file is there");
        for damaged in [&good[..good.len() / 2], &good[1..], &[]] {
            fs::write(library, damaged).expect("the cache is writable");
            fs::remove_file(&case.kept()[0]).expect("the folder is ours");
            assert_eq!(case.run(&a, &[]), line("9.0"));
            assert_eq!(case.run(&b, &[]), line("10.5"));
            assert!(fs::read(library).is_ok_and(|bytes| bytes == good));
        }
    }
}

#[test]
fn many_may_use_it_at_once() {
    let case = Case::new();
    let program = case.program("a.coh", &times("2.0"));
    let running: Vec<_> = (0..8).map(|_| case.start(&program, &[])).collect();
    for child in running {
        let ended = child.wait_with_output().expect("batch-run ends");
        assert_eq!(String::from_utf8_lossy(&ended.stdout), line("6.0"));
    }
    let kept = case.kept();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

/// Artifacts are code, so what others can put there is not run, and a cache that cannot be is not an error.
#[test]
fn a_folder_that_is_not_ones_own_is_not_used() {
    let case = Case::new();
    let program = case.program("a.coh", &times("2.0"));
    fs::create_dir(case.cache()).expect("the temporary folder is writable");
    let mode = |mode| fs::set_permissions(case.cache(), Permissions::from_mode(mode));
    mode(0o777).expect("the folder is ours");
    assert_eq!(case.run(&program, &[]), line("6.0"));
    assert!(case.kept().is_empty());
    mode(0o700).expect("the folder is ours");
    case.run(&program, &[]);
    assert_eq!(case.kept().len(), 1);

    fs::remove_dir_all(case.cache()).expect("the folder is ours");
    fs::write(case.cache(), "a file").expect("the temporary folder is writable");
    assert_eq!(case.run(&program, &[]), line("6.0"));
}

/// What a pass warns of would not be said the second time; remarks go into a log only.
#[test]
fn what_is_to_be_said_is_said_each_time() {
    let case = Case::new();
    let program = case.program("a.coh", &times("2.0"));
    let log = case.folder.path().join("log.sarif");
    let log = log.to_str().expect("a path of text");
    case.run(&program, &["--sarif", log]);
    assert!(case.kept().is_empty());
    case.run(&program, &["--check-kernels"]);
    assert!(case.kept().is_empty());
}
