//! The language's page is true: its programs check, and its list of diagnostics is complete. So are the
//! programs of the page on training.

use std::path::{Path, PathBuf};

use cohort_frontend::{Sources, check_with_entry};

use crate::support;

fn page(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs");
    std::fs::read_to_string(path.join(name)).expect("the page is there")
}

#[test]
fn the_programs_of_the_pages_check() {
    for (name, least, entry) in [
        ("language.md", 4, "main"),
        ("training.md", 1, "loss"),
        ("tutorial.md", 2, "main"),
        ("coming-from.md", 1, "main"),
    ] {
        let page = page(name);
        let mut count = 0;
        for block in page.split("```coh\n").skip(1) {
            let text = block.split("```").next().unwrap_or_default();
            let mut sources = Sources::new();
            let file = sources.add(name, text);
            if let Err(errors) = check_with_entry(&sources, file, entry) {
                panic!("{}", support::shown(&errors, &sources));
            }
            count += 1;
        }
        assert!(count >= least, "{name} has lost its programs");
    }
}

#[test]
fn every_diagnostic_is_on_the_page() {
    let page = page("language.md");
    for code in codes(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")) {
        assert!(page.contains(&code), "{code} is not in docs/language.md");
    }
}

/// The codes that a folder's sources name.
fn codes(folder: &Path) -> Vec<String> {
    let mut codes = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("an entry is readable").path();
        if path.is_dir() {
            codes.extend(self::codes(&path));
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("sources are text");
        let quoted = text
            .split('"')
            .filter(|word| word.len() == 5 && word.starts_with("E0"));
        codes.extend(quoted.map(str::to_owned));
    }
    codes
}
