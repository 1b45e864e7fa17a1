//! Programs of several files.

use std::fs;
use std::path::Path;

use cohort_e2e::records::{Closeness, compare_records};
use cohort_e2e::tools::{BatchRun, run};
use cohort_e2e::{Model, Rng};

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is writable");
        fs::write(path, text).expect("the folder is writable");
    }
}

const CELL: &str = "import \"../model.coh\"
import \"types.coh\"
param w: f32[H, H]
fn cell(l: Row, r: Row) -> Row { tanh(l @ w + r) }
fn main(x: f32) -> f32 { x }
";
const TYPES: &str = "import \"cell.coh\" import \"../parts/types.coh\";
dim V, H
param emb: f32[V, H]
type Row = f32[H]
type Tree = Leaf(word: i32) | Node(left: Tree, right: Tree)
";
const MODEL: &str = "import \"parts/cell.coh\"
import \"parts/types.coh\"
import \"model.coh\"
fn state(t: Tree) -> Row {
  match t { Leaf(k) => emb[k], Node(l, r) => cell(state(l), state(r)) }
}
fn main(t: Tree) -> Row { state(t) }
";

/// Files import each other in a circle, by several paths, and are taken in once.
#[test]
fn items_of_several_files_are_one_program() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = [
        ("model.coh", MODEL),
        ("parts/cell.coh", CELL),
        ("parts/types.coh", TYPES),
    ];
    write(folder.path(), &files);
    let source = folder.path().join("model.coh");
    let model = Model::with_random_weights(&source, &[("V", 5), ("H", 3)], &mut Rng::new(3));
    let input = "{\"t\":{\"Node\":[{\"Leaf\":[1]},{\"Leaf\":[4]}]}}\n{\"t\":{\"Leaf\":[7]}}\n";
    let expected = model.oracle_lines(input);
    let outcome = model.batch_run().run(input);
    assert!(outcome.code < 2, "{}", outcome.describe());
    compare_records(&expected, &outcome.lines(), Closeness::EachNumber(1e-5))
        .unwrap_or_else(|message| panic!("{message}\nfrom {}", outcome.describe()));
}

/// What is wrong is shown in the file that it is in.
#[test]
fn mistakes_are_located_in_their_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let main = "import \"lib.coh\"
import \"none.coh\"
import \"/etc/passwd\"
import \"lib.txt\"
import \"folder.coh\"
import \"bytes.coh\"
fn twice(x: f32) -> f32 { x }
fn main(x: f32) -> f32 { twice(x) }
";
    write(
        folder.path(),
        &[
            ("main.coh", main),
            ("lib.coh", "dim H\nfn twice(x: f32) -> i32 { x * 2 }\n"),
            ("lib.txt", "dim H\n"),
            ("folder.coh/x", ""),
        ],
    );
    fs::write(folder.path().join("bytes.coh"), b"dim H // \xff").expect("writable");
    let outcome = run(
        "batch-opt",
        &[folder.path().join("main.coh").into_os_string()],
        "",
    );
    assert_eq!(outcome.code, 2, "{}", outcome.describe());
    for (code, place) in [
        ("cannot import `none.coh`", "main.coh:2:8"),
        ("cannot import `/etc/passwd`", "main.coh:3:8"),
        ("cannot import `lib.txt`", "main.coh:4:8"),
        ("cannot import `folder.coh`", "main.coh:5:8"),
        ("cannot import `bytes.coh`", "main.coh:6:8"),
        ("is declared twice", "lib.coh:2:4"),
        ("expected `i32`, found `f32`", "lib.coh:2:27"),
    ] {
        let shown = &outcome.stderr;
        let at = shown
            .find(code)
            .unwrap_or_else(|| panic!("no {code}: {shown}"));
        let after: String = shown[at..].lines().take(2).collect();
        assert!(after.contains(place), "{code} is not at {place}: {after}");
    }
}

/// No output goes over a file of the program, nor over one that is a link to it.
#[test]
fn imported_files_are_not_overwritten() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let main = "import \"parts/lib.coh\"\nfn main(x: f32) -> f32 { twice(x) }\n";
    let lib = "import \"../deep.coh\"\nfn twice(x: f32) -> f32 { x * two() }\n";
    let deep = "fn two() -> f32 { 2.0 }\n";
    write(
        folder.path(),
        &[
            ("main.coh", main),
            ("parts/lib.coh", lib),
            ("deep.coh", deep),
        ],
    );
    let file = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(file("deep.coh"), file("link")).expect("links can be made");
    for output in [file("parts/lib.coh"), file("deep.coh"), file("link")] {
        let kept = fs::read(&output).expect("it is there");
        for option in ["--output", "--stats"] {
            let call = BatchRun::new(&file("main.coh")).arg(option).arg(&output);
            call.run_as_given("{\"x\":1}\n")
                .expect_code(2)
                .expect_message(&[option, "overwrite", "a file of the program"]);
        }
        let arguments = [file("main.coh").into(), "-o".into(), output.clone().into()];
        run("batch-opt", &arguments, "")
            .expect_code(2)
            .expect_message(&["-o", "overwrite", "a file of the program"]);
        assert_eq!(fs::read(&output).expect("it is still there"), kept);
    }
}
