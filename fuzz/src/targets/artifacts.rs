//! Compiled programs: their inputs, their weights and themselves.

use std::fs;
use std::io;
use std::rc::Rc;

use cohort_runtime::Artifact;

use super::{Corpora, LIMITS, strings};
use crate::case::{Case, Check, Tool};
use crate::child::How;
use crate::mutate::Form;

/// Examples of every kind: trees, sequences, tensors whose lengths differ, and paths that tensors decide.
const EXAMPLES: [&str; 6] = [
    "treegru",
    "childsum",
    "dagrnn",
    "masked_mha",
    "berxit",
    "act",
];

/// Instances of a run, beside the good ones: each has a record of its own, so each is an input.
const INSTANCES: usize = 30;

/// A program with what it runs on.
pub struct Compiled {
    pub name: &'static str,
    pub artifact: Rc<[u8]>,
    pub weights: Rc<[u8]>,
    pub lines: Vec<String>,
}

pub fn all<'p>(place: &'p Corpora) -> io::Result<&'p [Compiled]> {
    if place.compiled.get().is_none() {
        let compiled = compile(place)?;
        return Ok(place.compiled.get_or_init(|| compiled));
    }
    Ok(place.compiled.get().map_or(&[], Vec::as_slice))
}

fn compile(place: &Corpora) -> io::Result<Vec<Compiled>> {
    let mut programs = Vec::new();
    let of_examples = EXAMPLES.map(|name| (place.root.join("examples").join(name), name));
    let own = (place.root.join("fuzz/corpus"), "types");
    for (folder, name) in of_examples.into_iter().chain([own]) {
        let source = folder.join(format!("{name}.coh"));
        let weights = folder.join("weights.safetensors");
        let (source, path) = (source.to_string_lossy(), weights.to_string_lossy());
        let arguments = [
            &source,
            "--weights",
            &path,
            "--emit=artifact",
            "-o",
            "whole.cohort",
        ];
        if !place.tools.prepare(&arguments)? {
            let problem = format!(
                "{source} does not compile:\n{}",
                fs::read_to_string("stderr")?
            );
            return Err(io::Error::other(problem));
        }
        let input = fs::read_to_string(folder.join("input.jsonl"))?;
        // Short ones: there is more to change in a number than in a thousand.
        let mut lines: Vec<String> = input.lines().map(str::to_owned).collect();
        lines.sort_by_key(String::len);
        lines.truncate(8);
        programs.push(Compiled {
            name,
            artifact: fs::read("whole.cohort")?.into(),
            weights: fs::read(&weights)?.into(),
            lines,
        });
    }
    Ok(programs)
}

/// A case in which all that is not varied is good.
fn case(program: &Compiled, model: &str, subject: &str, bytes: Vec<u8>, form: Form) -> Case {
    let arguments = [
        &[
            model,
            "--weights",
            "weights.safetensors",
            "--input",
            "input.jsonl",
        ][..],
        &["--output", "output.jsonl"],
        &LIMITS,
    ];
    let input = program.lines.iter().take(3).map(|line| format!("{line}\n"));
    let files: [(&str, Rc<[u8]>); 3] = [
        ("whole.cohort", program.artifact.clone()),
        ("weights.safetensors", program.weights.clone()),
        ("input.jsonl", input.collect::<String>().into_bytes().into()),
    ];
    let files = files.map(|(name, bytes)| (name.to_owned(), bytes));
    Case {
        tool: Tool::Run,
        arguments: strings(&arguments.concat()),
        files: files
            .into_iter()
            .filter(|(name, _)| name != subject)
            .collect(),
        subject: subject.into(),
        bytes,
        form,
        check: Check::Nothing,
    }
}

pub fn instances(place: &Corpora) -> io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for program in all(place)? {
        let Some(good) = program.lines.first() else {
            continue;
        };
        // The same id at both ends, whatever the place of the line.
        let mut good: serde_json::Value = serde_json::from_str(good)?;
        good["id"] = "good".into();
        let middle = program.lines.iter().map(String::as_str);
        let middle = middle.cycle().take(INSTANCES);
        let good = good.to_string();
        let lines: Vec<&str> = [good.as_str()]
            .into_iter()
            .chain(middle)
            .chain([good.as_str()])
            .collect();
        let text = format!("{}\n", lines.join("\n"));
        let mut case = case(
            program,
            "whole.cohort",
            "input.jsonl",
            text.into_bytes(),
            Form::Instances,
        );
        let ending = place.tools.run(&case)?;
        let output = fs::read_to_string("output.jsonl")?;
        let Some(first) = output.lines().next().filter(|_| ending.how == How::Code(0)) else {
            return Err(io::Error::other(format!(
                "good instances fail: {}",
                ending.stderr
            )));
        };
        case.check = Check::Records {
            good: first.to_owned(),
        };
        cases.push(case);
    }
    Ok(cases)
}

pub fn weights(place: &Corpora) -> io::Result<Vec<Case>> {
    let of = |program: &Compiled| {
        let bytes = program.weights.to_vec();
        case(
            program,
            "whole.cohort",
            "weights.safetensors",
            bytes,
            Form::Weights,
        )
    };
    Ok(all(place)?.iter().map(of).collect())
}

/// Manifests of programs that would run: code takes no other than its own.
pub fn manifests(place: &Corpora) -> io::Result<Vec<Case>> {
    let of = |program: &Compiled| {
        let artifact = Artifact::from_bytes(&program.artifact).ok()?;
        let manifest = serde_json::to_vec(&artifact.manifest).ok()?;
        let form = Form::Manifest;
        Some(case(
            program,
            "model.cohort",
            "model.cohort",
            manifest,
            form,
        ))
    };
    Ok(all(place)?.iter().filter_map(of).collect())
}

/// Object files that are loaded and not run: code is code.
pub fn objects(place: &Corpora) -> io::Result<Vec<Case>> {
    let of = |program: &Compiled| {
        let object = only_loaded(program)?.objects.swap_remove(0);
        Some(loaded(program, object, Form::Object))
    };
    Ok(all(place)?.iter().filter_map(of).collect())
}

/// The artifact of a program none of whose code runs when it is loaded.
fn only_loaded(program: &Compiled) -> Option<Artifact> {
    let artifact = Artifact::from_bytes(&program.artifact).ok()?;
    artifact.manifest.computed.is_empty().then_some(artifact)
}

/// A case without instances.
fn loaded(program: &Compiled, bytes: Vec<u8>, form: Form) -> Case {
    let mut case = case(program, "model.cohort", "model.cohort", bytes, form);
    case.files.retain(|(name, _)| name != "input.jsonl");
    case.files.push(("input.jsonl".into(), b"\n"[..].into()));
    case
}

pub fn whole(place: &Corpora) -> io::Result<Vec<Case>> {
    let of = |program: &Compiled| {
        let bytes = program.artifact.to_vec();
        case(program, "model.cohort", "model.cohort", bytes, Form::Bytes)
    };
    Ok(all(place)?.iter().map(of).collect())
}
