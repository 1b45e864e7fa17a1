//! The loop over epochs: order, failures, the best epoch, the end.

use cohort_train::state::State;
use cohort_train::trainer::Dev;
use cohort_train::{Ending, Error, Instance, Interrupt, Settings, Trainer};

use crate::model::{Model, Seen, instances, parameters, settings};

/// Trains from the beginning, or goes on.
pub fn train(
    settings: &Settings,
    data: &[Instance],
    dev: Option<&[Instance]>,
    model: &mut Model,
    state: &mut State,
) -> (Result<Ending, Error>, Seen) {
    let mut seen = Seen::default();
    let mut evaluate = Model::default();
    let interrupt = model
        .interrupt
        .as_ref()
        .map_or_else(Interrupt::default, |(_, own)| own.clone());
    let mut trainer = Trainer {
        settings,
        instances: data,
        step: model,
        dev: dev.map(|instances| Dev {
            instances,
            evaluate: &mut evaluate,
        }),
        interrupt,
        watcher: &mut seen,
    };
    let ending = trainer.run(state);
    (ending, seen)
}

pub fn begin(settings: &Settings) -> State {
    State::new(parameters(), &settings.groups)
}

#[test]
fn each_epoch_sees_every_instance_once_in_an_order_and_a_draw_of_its_own() {
    let settings = settings();
    let (mut model, mut state) = (Model::default(), begin(&settings));
    let data = instances(30);
    let (ending, seen) = train(&settings, &data, None, &mut model, &mut state);
    assert_eq!(ending.unwrap(), Ending::Done);
    assert_eq!(model.steps, 4 * 5);
    let epochs: Vec<Vec<String>> = model.seen.chunks(30).map(<[String]>::to_vec).collect();
    assert_eq!(epochs.len(), 4);
    for (index, epoch) in epochs.iter().enumerate() {
        assert!(!epochs[..index].contains(epoch));
        let mut ids: Vec<usize> = epoch.iter().map(|id| id.parse().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..30).collect::<Vec<_>>());
    }
    let draws: Vec<u64> = model.draws.chunks(5).map(|draws| draws[0]).collect();
    assert_eq!(
        draws,
        [5 * 65536 + 1, 5 * 65536 + 2, 5 * 65536 + 3, 5 * 65536 + 4]
    );
    let losses: Vec<f64> = state
        .progress
        .history
        .iter()
        .map(|record| record.train.loss.0)
        .collect();
    assert!(losses[3] < 0.5 * losses[0], "{losses:?}");
    assert_eq!(seen.lines.len(), 4 * 5 + 4);
    assert_eq!(seen.warnings, Vec::<String>::new());
}

#[test]
fn what_fails_is_left_out_of_sum_and_mean_and_is_named() {
    let settings = Settings {
        batch: 100,
        ..settings()
    };
    let data = instances(30);
    let with = |line: &str, id: &str| {
        let mut data = data.clone();
        data.insert(
            11,
            Instance {
                id: id.into(),
                line: line.into(),
            },
        );
        data
    };
    // All are one mini-batch, whose order is that of the sum: bits agree where the order of the others does.
    let mut alone = begin(&settings);
    let one = Settings {
        epochs: 1,
        ..settings.clone()
    };
    train(&one, &data, None, &mut Model::default(), &mut alone)
        .0
        .unwrap();
    for (line, kind) in [
        ("{}", "bad_input"),
        ("{\"row\":1,\"x\":[1,2]}", "loss_not_finite"),
    ] {
        let mut state = begin(&settings);
        let bad = with(line, "\"bad\"");
        let (_, seen) = train(&one, &bad, None, &mut Model::default(), &mut state);
        assert_eq!(seen.failed, [("\"bad\"".to_owned(), kind.to_owned())]);
        let (record, expected) = (
            &state.progress.history[0].train,
            &alone.progress.history[0].train,
        );
        assert_eq!((record.instances, record.failed), (31, 1));
        assert!((record.loss.0 - expected.loss.0).abs() < 1e-9);
        for (found, expected) in state.parameters.list.iter().zip(&alone.parameters.list) {
            let (found, expected) = (found.floats().unwrap(), expected.floats().unwrap());
            assert!(
                found
                    .iter()
                    .zip(expected)
                    .all(|(a, b)| (a - b).abs() < 1e-6)
            );
        }

        let stopping = Settings {
            stop_on_failure: true,
            ..one.clone()
        };
        let mut state = begin(&settings);
        let (ending, _) = train(&stopping, &bad, None, &mut Model::default(), &mut state);
        assert_eq!(
            ending.unwrap_err().to_string(),
            "the instance \"bad\" failed"
        );
    }
}

#[test]
fn an_epoch_without_any_loss_ends_training() {
    let settings = settings();
    let bad = Instance {
        id: "1".into(),
        line: "{}".into(),
    };
    let mut state = begin(&settings);
    let (ending, _) = train(&settings, &[bad], None, &mut Model::default(), &mut state);
    let message = ending.unwrap_err().to_string();
    assert_eq!(message, "epoch 1: no instance has a loss, 1 of 1 failed");
    assert_eq!(state.parameters, parameters());
}

#[test]
fn the_best_epoch_is_kept_and_patience_ends() {
    let data = instances(30);
    let mut rising = settings();
    // So fast that it gets worse.
    rising.groups.iter_mut().for_each(|group| group.rate = 4.0);
    let rising = Settings {
        clip: None,
        patience: Some(2),
        epochs: 50,
        ..rising
    };
    let mut state = begin(&rising);
    let (ending, seen) = train(
        &rising,
        &data,
        Some(&data),
        &mut Model::default(),
        &mut state,
    );
    assert_eq!(ending.unwrap(), Ending::StoppedEarly);
    let best = state.progress.best.unwrap();
    assert_eq!(state.progress.epoch, best.epoch + 2);
    let at_best = &seen.saved[best.epoch as usize - 1].parameters;
    assert_eq!(state.result(), at_best);
    assert_ne!(state.result(), &state.parameters);
    let scores = state
        .progress
        .history
        .iter()
        .map(|record| record.dev.as_ref().unwrap().loss.0);
    assert_eq!(scores.fold(f64::INFINITY, f64::min), best.score.0);
}

#[test]
fn a_metric_that_is_not_there_is_told() {
    let mut settings = Settings {
        best: "accuracy".parse().unwrap(),
        ..settings()
    };
    let data = instances(5);
    let run = |settings: &Settings| {
        let mut state = begin(settings);
        train(
            settings,
            &data,
            Some(&data),
            &mut Model::default(),
            &mut state,
        )
        .0
    };
    let message = run(&settings).unwrap_err().to_string();
    assert_eq!(
        message,
        "`--best accuracy`: there is no such metric; there are loss, metric1"
    );
    settings.metrics = vec!["accuracy".into()];
    run(&settings).unwrap();
}
