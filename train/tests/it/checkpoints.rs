//! Checkpoints: going on to the same bits, and files that are refused.

use std::fs;
use std::path::Path;

use cohort_train::checkpoint::{Identity, load, save};
use cohort_train::{Ending, Interrupt, State};

use crate::loops::{begin, train};
use crate::model::{Model, instances, settings};

fn identity() -> Identity {
    let pairs = [("--rate", "0.1"), ("the program", "abc")];
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

fn bytes(state: &State, path: &Path) -> Vec<u8> {
    save(path, state, &settings().groups, &identity()).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn an_interruption_anywhere_changes_no_bit() {
    let settings = settings();
    let data = instances(30);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let mut whole = begin(&settings);
    let (_, all) = train(
        &settings,
        &data,
        Some(&data),
        &mut Model::default(),
        &mut whole,
    );
    let expected = bytes(&whole, &path);

    for steps in 0..20 {
        let mut model = Model {
            interrupt: Some((steps, Interrupt::default())),
            ..Model::default()
        };
        let mut state = begin(&settings);
        let (ending, before) = train(&settings, &data, Some(&data), &mut model, &mut state);
        assert_eq!(ending.unwrap(), Ending::Interrupted(15));
        assert_eq!(state.progress.step, steps);
        assert_eq!(before.saved.last(), Some(&state));
        save(&path, &state, &settings.groups, &identity()).unwrap();
        let read = load(&path, &settings.groups, &identity(), &begin(&settings)).unwrap();
        assert_eq!(read, state);

        let mut state = read;
        let mut model = Model::default();
        let (ending, after) = train(&settings, &data, Some(&data), &mut model, &mut state);
        assert_eq!(ending.unwrap(), Ending::Done);
        assert_eq!(
            bytes(&state, &path),
            expected,
            "interrupted behind {steps} steps"
        );
        let lines: Vec<_> = before.lines.into_iter().chain(after.lines).collect();
        assert_eq!(lines, all.lines);
    }
}

#[test]
fn a_checkpoint_of_another_training_is_refused_with_all_that_differs() {
    let settings = settings();
    let state = begin(&settings);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    save(&path, &state, &settings.groups, &identity()).unwrap();
    let refused = |identity: &Identity, now: &State| {
        load(&path, &settings.groups, identity, now)
            .unwrap_err()
            .to_string()
    };
    let mut other = identity();
    other.insert("--rate".into(), "0.2".into());
    other.remove("the program");
    let message = refused(&other, &state);
    assert!(
        message.contains("--rate: expected 0.2, found 0.1"),
        "{message}"
    );
    assert!(
        message.contains("the program: expected not given, found abc"),
        "{message}"
    );
    let mut other = state.clone();
    other.parameters.list[0].shape = vec![2, 5];
    other.parameters.list[1].name = "bias".into();
    let message = refused(&identity(), &other);
    assert!(
        message.contains("parameter `table`: expected f32[2, 5], found f32[5, 2]"),
        "{message}"
    );
    assert!(
        message.contains("parameter `bias`: expected f32[1], found none"),
        "{message}"
    );
}

#[test]
fn damage_anywhere_is_seen() {
    let settings = settings();
    let state = begin(&settings);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let whole = bytes(&state, &path);
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        load(&path, &settings.groups, &identity(), &state)
            .unwrap_err()
            .to_string()
    };
    for length in [0, 7, 100, whole.len() / 2, whole.len() - 1] {
        let message = refused(&whole[..length]);
        assert!(message.contains("cannot resume from"), "{message}");
    }
    for place in (8..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        refused(&bytes);
    }
    let weights = state.parameters.to_safetensors().unwrap();
    assert!(refused(&weights).contains("it is not a checkpoint"));
    fs::write(&path, &whole).unwrap();
    assert_eq!(
        load(&path, &settings.groups, &identity(), &state).unwrap(),
        state
    );
    let missing = folder.path().join("missing");
    let error = load(&missing, &settings.groups, &identity(), &state).unwrap_err();
    assert!(error.to_string().contains("cannot read"), "{error}");
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_one_before() {
    let settings = settings();
    let state = begin(&settings);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint");
    let whole = bytes(&state, &path);
    // A folder in its place cannot be replaced, nor can a file in none.
    let error = save(
        &folder.path().join("none/checkpoint"),
        &state,
        &settings.groups,
        &identity(),
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("the one that was there before stays")
    );
    assert!(save(folder.path(), &state, &settings.groups, &identity()).is_err());
    assert_eq!(fs::read(&path).unwrap(), whole);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing else is left"
    );
}
