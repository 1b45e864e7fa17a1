//! Files of arrays as inputs: of NumPy, Arrow and Parquet.

use std::fs;
use std::io;
use std::rc::Rc;

use super::{Corpora, LIMITS, strings};
use crate::case::{Case, Check, Tool};
use crate::child::How;
use crate::mutate::Form;

/// Programs of `fuzz/corpus`, and the files that each one takes, with what they are.
const PROGRAMS: [(&str, &[(&str, Form)]); 3] = [
    (
        "files",
        &[
            ("files.npz", Form::Archive),
            ("packed.npz", Form::Archive),
            ("files.arrow", Form::Bytes),
            ("stream.arrow", Form::Bytes),
            ("files.parquet", Form::Bytes),
            ("plain.parquet", Form::Bytes),
        ],
    ),
    ("nested", &[("nested.arrow", Form::Bytes)]),
    ("array", &[("array.npy", Form::Array)]),
];

/// The files of arrays whose names end so.
pub fn of(place: &Corpora, extension: &str) -> io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    let corpus = place.root.join("fuzz/corpus");
    for (program, files) in PROGRAMS {
        let fitting: Vec<&(&str, Form)> = files
            .iter()
            .filter(|(name, _)| name.rsplit('.').next() == Some(extension))
            .collect();
        if fitting.is_empty() {
            continue;
        }
        let source = corpus.join(format!("{program}.coh"));
        let source = source.to_string_lossy();
        if !place
            .tools
            .prepare(&[&source, "--emit=artifact", "-o", "whole.cohort"])?
        {
            let problem = fs::read_to_string("stderr")?;
            return Err(io::Error::other(format!(
                "{source} does not compile:\n{problem}"
            )));
        }
        let artifact: Rc<[u8]> = fs::read("whole.cohort")?.into();
        for (name, form) in fitting {
            let subject = format!("input.{extension}");
            let arguments = [
                "whole.cohort",
                "--input",
                &subject,
                "--output",
                "output.jsonl",
            ];
            let case = Case {
                tool: Tool::Run,
                arguments: strings(&[&arguments[..], &LIMITS].concat()),
                files: vec![("whole.cohort".into(), artifact.clone())],
                subject: subject.clone(),
                bytes: fs::read(corpus.join(name))?,
                form: *form,
                check: Check::Nothing,
            };
            let ending = place.tools.run(&case)?;
            if ending.how != How::Code(0) {
                return Err(io::Error::other(format!(
                    "{name} is not good: {}",
                    ending.stderr
                )));
            }
            cases.push(case);
        }
    }
    Ok(cases)
}
