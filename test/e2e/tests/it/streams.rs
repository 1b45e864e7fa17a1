//! Inputs of every length, through files and pipes.

use cohort_e2e::Rng;
use serde_json::{Value as Json, json};

use crate::models::{MODELS, model_case, to_text};

#[test]
fn an_empty_input_gives_an_empty_output() {
    let model = model_case("treelstm").shipped();
    for input in ["", "\n", "\n  \n\n"] {
        let outcome = model.batch_run().run(input).expect_code(0);
        assert_eq!(outcome.output, "", "from {input:?}");
    }
}

#[test]
fn one_instance_gives_what_it_gives_among_others() {
    for case in MODELS {
        let mut rng = Rng::new(21);
        let model = case.shipped();
        let instances = case.instances(&model, 6, &mut rng);
        let compiled = model.compile(&[]);
        let all = compiled
            .batch_run()
            .run(&to_text(&instances))
            .expect_code(0)
            .lines();
        for (instance, expected) in instances.iter().zip(&all) {
            let alone = compiled
                .batch_run()
                .run(&to_text(std::slice::from_ref(instance)));
            let lines = alone.expect_code(0).lines();
            assert!(
                lines == std::slice::from_ref(expected),
                "{}: {instance}",
                case.name
            );
        }
    }
}

#[test]
fn a_thousand_instances_come_in_the_order_of_the_input() {
    let case = model_case("treegru");
    let mut rng = Rng::new(22);
    let model = case.shipped();
    let instances = case.instances(&model, 1000, &mut rng);
    let input = to_text(&instances);
    let outcome = model.batch_run().run(&input).expect_code(0);
    let ids: Vec<Json> = outcome
        .records()
        .into_iter()
        .map(|record| record.id)
        .collect();
    let expected: Vec<Json> = instances
        .iter()
        .map(|instance| instance["id"].clone())
        .collect();
    assert_eq!(ids, expected);
    let by_seventeen = model
        .batch_run()
        .args(&["--batch", "17"])
        .run(&input)
        .expect_code(0);
    assert!(
        outcome.output == by_seventeen.output,
        "batches of 17 give other bits"
    );
}

#[test]
fn pipes_give_what_files_give() {
    let case = model_case("treefc");
    let model = case.shipped();
    let input = to_text(&case.instances(&model, 50, &mut Rng::new(23)));
    let through_files = model.batch_run().run(&input).expect_code(0);
    let through_pipes = model.batch_run().run_piped(&input).expect_code(0);
    assert_eq!(through_pipes.lines(), through_files.lines());
}

#[test]
fn a_last_line_without_an_end_counts() {
    let model = model_case("treelstm").shipped();
    let outcome = model
        .batch_run()
        .run(r#"{"id":"a","t":{"Leaf":[0]}}"#)
        .expect_code(0);
    assert_eq!(outcome.records().len(), 1);
}

#[test]
fn a_missing_id_is_the_number_of_the_line() {
    let model = model_case("treelstm").shipped();
    let input =
        "{\"t\":{\"Leaf\":[0]}}\n\n{\"id\":\"x\",\"t\":{\"Leaf\":[0]}}\n{\"t\":{\"Leaf\":[1]}}\n";
    let outcome = model.batch_run().run(input).expect_code(0);
    let ids: Vec<Json> = outcome
        .records()
        .into_iter()
        .map(|record| record.id)
        .collect();
    assert_eq!(ids, [json!(1), json!("x"), json!(4)], "{}", outcome.output);
}

#[test]
fn ids_come_back_as_they_were() {
    let model = model_case("treelstm").shipped();
    let ids = [
        json!("ünï\"\\\n"),
        json!(17),
        json!(-1),
        json!(""),
        json!("same"),
        json!("same"),
    ];
    let instances: Vec<Json> = ids
        .iter()
        .map(|id| json!({"id": id, "t": {"Leaf": [0]}}))
        .collect();
    let outcome = model.batch_run().run(&to_text(&instances)).expect_code(0);
    let found: Vec<Json> = outcome
        .records()
        .into_iter()
        .map(|record| record.id)
        .collect();
    assert_eq!(found, ids);
}
