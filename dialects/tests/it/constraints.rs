//! Every numbered constraint is declared, verified, and cited by a test; every operation has a
//! round trip.

use std::{collections::BTreeSet, fs, path::Path};

/// The text of every file of a folder.
fn texts_in(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    entries
        .map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a text file"))
        .collect()
}

/// The dialects, and at least how many constraints and operations each has.
const DIALECTS: [(&str, usize, usize); 2] = [("cfb", 40, 20), ("ragged", 60, 15)];

/// The constraints of a dialect that the files of a folder name: the dialect, the operation, `_c`
/// and a number.
fn constraints_in(dialect: &str, folder: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in texts_in(folder) {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let constraints = words.filter(|word| is_constraint(dialect, word));
        found.extend(constraints.map(str::to_owned));
    }
    found
}

fn is_constraint(dialect: &str, word: &str) -> bool {
    word.starts_with(&format!("{dialect}_"))
        && word
            .rsplit_once("_c")
            .is_some_and(|(_, number)| number.parse::<u32>().is_ok())
}

fn declared(dialect: &str) -> BTreeSet<String> {
    constraints_in(dialect, &format!("include/{dialect}"))
}

#[test]
fn every_constraint_is_verified_and_no_other() {
    for (dialect, least, _) in DIALECTS {
        let declared = declared(dialect);
        assert!(
            declared.len() > least,
            "only {} are declared",
            declared.len()
        );
        // Operations that share a verifier give it a constraint's number, and it puts the name together;
        // that it is this one, the test that cites it sees.
        let lib = texts_in("lib").concat();
        let is_shared = |name: &&String| {
            let number = name.rsplit_once('_').map_or("", |(_, number)| number);
            lib.contains(&format!("\"{number}\""))
        };
        let verified: BTreeSet<_> = declared
            .iter()
            .filter(is_shared)
            .cloned()
            .chain(constraints_in(dialect, "lib"))
            .collect();
        assert_eq!(declared, verified);
    }
}

#[test]
fn every_constraint_is_cited_by_a_test_and_no_other() {
    for (dialect, ..) in DIALECTS {
        assert_eq!(
            declared(dialect),
            constraints_in(dialect, &format!("../test/dialects/{dialect}/invalid"))
        );
    }
}

#[test]
fn every_operation_has_a_round_trip() {
    for (dialect, _, least) in DIALECTS {
        let trips = texts_in(&format!("../test/dialects/{dialect}/round-trip")).concat();
        let declarations = texts_in(&format!("include/{dialect}")).concat();
        // `def Ragged_DimOp : Ragged_Op<"dim", …`
        let definitions = declarations.split("\ndef ").skip(1);
        let operations: BTreeSet<_> = definitions
            .filter_map(|definition| definition.split_once("Op : "))
            .filter(|(name, _)| !name.contains(char::is_whitespace))
            .filter_map(|(_, class)| class.split_once("<\"")?.1.split('"').next())
            .collect();
        assert!(operations.len() > least, "only {operations:?} are declared");
        for operation in operations {
            assert!(
                [" ", "\n", "("]
                    .iter()
                    .any(|end| { trips.contains(&format!("{dialect}.{operation}{end}")) }),
                "{dialect}.{operation} has none"
            );
        }
    }
}
