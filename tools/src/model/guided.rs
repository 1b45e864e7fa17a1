//! `--profile-guided`: what an earlier run of the program chose, this one does from its beginning.
//!
//! The file is what `--stats` wrote. A choice is worth something for the program that it was measured of, so
//! the kernels must have the same names, in the same order; weights and instances may be others.

use std::fmt::Write;
use std::path::Path;

use cohort_runtime::Policy;
use cohort_runtime::abi::manifest::Manifest;
use serde_json::Value;

use crate::exit::Stop;
use crate::text;

/// As many names are listed.
const MOST_LISTED: usize = 5;

/// The scheduler that the run used whose statistics are in the file.
pub fn scheduler(path: &Path, manifest: &Manifest) -> Result<Policy, Stop> {
    let bytes = text::read(path)?;
    let kernels = manifest.kernels.iter().map(|kernel| kernel.name.as_str());
    find(&bytes, &kernels.collect::<Vec<_>>())
        .map_err(|problem| Stop::usage(format!("{}: {problem}", path.display())))
}

fn find(bytes: &[u8], kernels: &[&str]) -> Result<Policy, String> {
    let stats: Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("expected statistics, as `--stats` writes them: {error}"))?;
    let Some(listed) = stats["kernels"].as_array() else {
        return Err(
            "expected statistics, as `--stats` writes them: there is no list `kernels`".into(),
        );
    };
    let found: Vec<&str> = (listed.iter())
        .map(|kernel| kernel["name"].as_str().unwrap_or("?"))
        .collect();
    if found != kernels {
        return Err(different(&found, kernels));
    }
    let Some(used) = stats["scheduler"]["used"].as_str() else {
        return Err(
            "the statistics name no scheduler: they are of a run without batches, or of an older \
             version"
                .into(),
        );
    };
    let known = [
        Policy::Depth,
        Policy::Agenda,
        Policy::Lookahead,
        Policy::Instances,
    ];
    known
        .into_iter()
        .find(|policy| policy.name() == used)
        .ok_or_else(|| {
            let names = known.map(|policy| format!("`{}`", policy.name()));
            format!(
                "expected a scheduler ({}), found `{used}`",
                names.join(", ")
            )
        })
}

/// What is wrong with statistics of these kernels.
fn different(found: &[&str], expected: &[&str]) -> String {
    let without = |some: &[&str], others: &[&str]| -> Vec<String> {
        let more = some.iter().filter(|name| !others.contains(name));
        more.map(|name| format!("`{name}`")).collect()
    };
    let (unknown, missing) = (without(found, expected), without(expected, found));
    let mut text = format!(
        "the statistics are of another program, or of another compilation of it: expected {} \
         kernels, found {}",
        expected.len(),
        found.len()
    );
    for (what, names) in [("unknown", unknown), ("missing", missing)] {
        if !names.is_empty() {
            let shown = &names[..names.len().min(MOST_LISTED)];
            let more = if names.len() > MOST_LISTED {
                ", …"
            } else {
                ""
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "; {what}: {}{more}", shown.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Policy, String> {
        find(text.as_bytes(), &["cell", "main"])
    }

    #[test]
    fn statistics_of_the_program_name_its_scheduler() {
        let text = r#"{"scheduler": {"used": "lookahead"}, "kernels": [{"name": "cell"}, {"name": "main"}]}"#;
        assert_eq!(of(text), Ok(Policy::Lookahead));
    }

    #[test]
    fn what_is_not_of_the_program_is_refused() {
        for (text, message) in [
            ("{", "expected statistics, as `--stats` writes them: EOF"),
            ("[1]", "there is no list `kernels`"),
            (
                r#"{"kernels": [{"name": "cell"}, {"name": "other"}]}"#,
                "expected 2 kernels, found 2; unknown: `other`; missing: `main`",
            ),
            (
                r#"{"kernels": [{"name": "cell"}, {}]}"#,
                "unknown: `?`; missing: `main`",
            ),
            (
                r#"{"kernels": [{"name": "main"}, {"name": "cell"}]}"#,
                "of another program",
            ),
            (
                r#"{"kernels": [{"name": "cell"}, {"name": "main"}]}"#,
                "name no scheduler",
            ),
            (
                r#"{"scheduler": {"used": "x"}, "kernels": [{"name": "cell"}, {"name": "main"}]}"#,
                "expected a scheduler (`depth`, `agenda`, `lookahead`, `instance`), found `x`",
            ),
        ] {
            let problem = of(text).unwrap_err();
            assert!(problem.contains(message), "{text}: {problem}");
        }
    }
}
