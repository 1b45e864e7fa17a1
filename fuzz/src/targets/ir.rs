//! IR: the passes' tests, each under the passes that its `RUN` line names, and programs of every level
//! on their way down.

use std::fs;
use std::io;

use super::{Corpora, files, strings};
use crate::case::{Case, Check, Tool};
use crate::mutate::Form;

pub fn passes(place: &Corpora) -> io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for folder in ["test/passes", "test/dialects", "test/tools"] {
        for path in files(&place.root.join(folder), "mlir")? {
            let text = fs::read_to_string(path)?;
            let Some(options) = text.lines().find_map(options) else {
                continue;
            };
            let mut arguments = strings(&["module.mlir", "-o", "out"]);
            arguments.extend(options);
            let cut = |part: &str| case(arguments.clone(), without_comments(part));
            cases.extend(text.split("// -----").map(cut));
        }
    }
    for level in ["program", "blocks", "batched", "loops", "target"] {
        for source in ["treegru", "encoder", "act"] {
            let source = place.root.join(format!("examples/{source}/{source}.coh"));
            let weights = source.with_file_name("weights.safetensors");
            let (source, weights) = (source.to_string_lossy(), weights.to_string_lossy());
            let emit = format!("--emit={level}");
            let arguments = [&source, "--weights", &weights, &emit, "-o", "stage.mlir"];
            if place.tools.prepare(&arguments)? {
                let arguments = strings(&["module.mlir", "--emit=llvm", "-o", "out"]);
                cases.push(case(arguments, fs::read_to_string("stage.mlir")?));
            }
        }
    }
    Ok(cases)
}

fn case(arguments: Vec<String>, text: String) -> Case {
    Case {
        tool: Tool::Opt,
        arguments,
        files: Vec::new(),
        subject: "module.mlir".into(),
        bytes: text.into_bytes(),
        form: Form::Text,
        check: Check::Nothing,
    }
}

/// The options of a `RUN` line that is one plain call.
fn options(line: &str) -> Option<Vec<String>> {
    let call = line.trim().strip_prefix("// RUN: %batch-opt %s")?;
    let call = call.split(['|', '>']).next()?;
    let words = call.split_whitespace();
    let kept =
        words.filter(|word| !matches!(*word, "--verify-diagnostics" | "--split-input-file" | "2"));
    let kept: Vec<&str> = kept.collect();
    let is_plain = kept
        .iter()
        .all(|word| word.starts_with("--") && !word.contains('%'));
    is_plain.then(|| strings(&kept))
}

/// What the test expects would only be in the way.
fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_lines_give_options() {
        let line = "// RUN: %batch-opt %s --a --split-input-file --b=c | %FileCheck %s";
        assert_eq!(options(line), Some(strings(&["--a", "--b=c"])));
        assert_eq!(
            options("// RUN: %batch-opt %s --dim H=7 --emit=program"),
            None
        );
        assert_eq!(options("// RUN: %not %batch-opt %s"), None);
    }
}
