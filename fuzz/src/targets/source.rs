//! Programs, from the examples, the language's page and the tests.

use std::fs;
use std::io;

use super::{Corpora, LIMITS, files, strings};
use crate::case::{Case, Check, Tool};
use crate::mutate::Form;

/// What the checker and the lowering make of a program.
pub fn checked(place: &Corpora) -> io::Result<Vec<Case>> {
    Ok(texts(place)?
        .into_iter()
        .map(|text| {
            let mut arguments = strings(&["program.coh", "--emit=program"]);
            arguments.extend(dims(&text));
            case(Tool::Opt, arguments, text)
        })
        .collect())
}

/// What the whole compiler makes of it.
pub fn compiled(place: &Corpora) -> io::Result<Vec<Case>> {
    let mut cases: Vec<Case> = texts(place)?
        .into_iter()
        .map(|text| {
            let mut arguments = strings(&["program.coh", "--emit=artifact", "-o", "out"]);
            arguments.extend(dims(&text));
            case(Tool::Opt, arguments, text)
        })
        .collect();
    for source in files(&place.root.join("examples"), "coh")? {
        let folder = source.with_file_name("");
        let weights = folder.join("weights.safetensors");
        if !weights.is_file() {
            // It comes without, to be trained.
            continue;
        }
        let weights = fs::read(weights)?;
        let input = fs::read_to_string(folder.join("input.jsonl"))?;
        let few: Vec<&str> = input.lines().take(4).collect();
        if weights.len() > 100_000 {
            continue;
        }
        let arguments = [
            &[
                "program.coh",
                "--weights",
                "weights.safetensors",
                "--input",
                "input.jsonl",
            ][..],
            &["--output", "output.jsonl", "--allow-unused-weights"],
            &LIMITS,
        ];
        let mut case = case(
            Tool::Run,
            strings(&arguments.concat()),
            fs::read_to_string(&source)?,
        );
        case.files = vec![
            ("weights.safetensors".into(), weights.into()),
            ("input.jsonl".into(), few.join("\n").into_bytes().into()),
        ];
        cases.push(case);
    }
    Ok(cases)
}

fn case(tool: Tool, arguments: Vec<String>, text: String) -> Case {
    Case {
        tool,
        arguments,
        files: Vec::new(),
        subject: "program.coh".into(),
        bytes: text.into_bytes(),
        form: Form::Text,
        check: Check::Nothing,
    }
}

/// All programs of the repository.
fn texts(place: &Corpora) -> io::Result<Vec<String>> {
    let mut texts = Vec::new();
    for folder in ["examples", "test", "fuzz/corpus"] {
        for path in files(&place.root.join(folder), "coh")? {
            texts.push(fs::read_to_string(path)?);
        }
    }
    let page = fs::read_to_string(place.root.join("docs/language.md"))?;
    let blocks = page.split("```coh\n").skip(1);
    texts.extend(blocks.filter_map(|block| Some(block.split_once("```")?.0.to_owned())));
    Ok(texts)
}

/// A size for each dim that a program declares.
fn dims(text: &str) -> Vec<String> {
    let declared = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("dim "))
        .flat_map(|line| line.split("//").next().unwrap_or_default().split(','))
        .map(|name| name.split_whitespace().next().unwrap_or_default());
    declared
        .filter(|name| !name.is_empty())
        .map(|name| format!("--dim={name}=4"))
        .collect()
}
