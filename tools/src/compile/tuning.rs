//! Tunings as files: `{"cell_1": {"rows": 48, "tile": 6}}`, the choices of each kernel by its name in statistics.

use std::collections::BTreeMap;
use std::path::Path;

use cohort_passes::kernel::tuning::{Choice, Tuning, unknown};

use crate::exit::Stop;

/// Reads a file.
pub fn read(path: &Path) -> Result<Tuning, Stop> {
    let text = crate::text::read(path)?;
    parse(&text).map_err(|problem| Stop::usage(format!("{}: {problem}", path.display())))
}

fn parse(text: &[u8]) -> Result<Tuning, String> {
    let named: BTreeMap<String, BTreeMap<String, i64>> =
        serde_json::from_slice(text).map_err(|error| {
            format!("expected the choices of each kernel, as in `{{\"cell_1\": {{\"rows\": 48}}}}`: {error}")
        })?;
    let mut tuning = Tuning::default();
    for (kernel, choices) in named {
        for (name, number) in choices {
            let choice = Choice::parse(&name).ok_or_else(|| unknown(&kernel, &name))?;
            choice
                .check(number)
                .map_err(|problem| format!("`{kernel}`: {problem}"))?;
            tuning.set(&kernel, choice, number);
        }
    }
    Ok(tuning)
}

/// The text of a file.
pub fn text(tuning: &Tuning) -> Result<String, Stop> {
    let named: BTreeMap<&str, BTreeMap<&str, i64>> = (tuning.0.iter())
        .map(|(kernel, choices)| {
            let choices = choices.iter();
            let choices = choices.map(|(choice, number)| (choice.name(), *number));
            (kernel.as_str(), choices.collect())
        })
        .collect();
    serde_json::to_string_pretty(&named)
        .map(|text| text + "\n")
        .map_err(|error| Stop::usage(format!("cannot write the tuning: {error}")))
}

/// What an artifact says of it, a line a kernel.
pub fn described(tuning: &Tuning) -> Vec<String> {
    let kernels = tuning.0.iter();
    kernels
        .map(|(kernel, choices)| {
            let choices = choices.iter();
            let choices = choices.map(|(choice, number)| format!(" {}={number}", choice.name()));
            format!("tuned {kernel}:{}", choices.collect::<String>())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut tuning = Tuning::default();
        tuning.set("cell_1", Choice::Rows, 48);
        tuning.set("cell_1", Choice::Tile, 6);
        tuning.set("main", Choice::SoftmaxRows, 24);
        let text = text(&tuning).expect("text");
        assert_eq!(parse(text.as_bytes()), Ok(tuning.clone()));
        assert_eq!(
            described(&tuning),
            [
                "tuned cell_1: rows=48 tile=6",
                "tuned main: softmax_rows=24"
            ]
        );
        assert_eq!(parse(b"{}"), Ok(Tuning::default()));
    }

    #[test]
    fn what_is_none_is_refused() {
        for (text, message) in [
            ("[]", "expected the choices of each kernel"),
            (r#"{"cell": 3}"#, "expected the choices of each kernel"),
            (r#"{"cell": {"rows": 1.5}}"#, "1.5"),
            (
                r#"{"cell": {"tile": 5}}"#,
                "`cell`: expected `tile` to be 1, 2, 4, 6, 8 or 12, but got 5",
            ),
            (
                r#"{"cell": {"row": 1}}"#,
                "no choice `row`, which `cell` is to have; there are fused_columns, fused_rows, tails, rows,",
            ),
        ] {
            let problem = parse(text.as_bytes()).expect_err(text);
            assert!(problem.contains(message), "{text}: {problem}");
        }
    }
}
