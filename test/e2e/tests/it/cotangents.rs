//! Compiled gradients of outputs that are weighed, and for inputs: against the oracle's, and the same bits
//! whatever the batch.

use std::fs;
use std::path::PathBuf;

use cohort_e2e::tools::{Outcome, run};
use cohort_e2e::{BatchRun, Model, Rng};
use cohort_frontend::program::{Constructor, Elem, Program, Type};
use cohort_oracle::Tensor;
use serde_json::{Map, Value as Json, json};
use tempfile::TempDir;

use crate::backward;
use crate::models::{model_case, to_text};

/// How far a number may be from the oracle's, as a part of the largest of its instance.
const TOLERANCE: f64 = 1e-4;

/// A program, its instances and their cotangents.
struct Case {
    folder: TempDir,
    model: Model,
    input: String,
}

impl Case {
    fn new(model: Model, instances: &[Json]) -> Case {
        Case {
            folder: tempfile::tempdir().expect("a temporary folder"),
            input: to_text(instances),
            model,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Weighs what each instance gives by random numbers; one part in eight not at all.
    fn weigh(&self, rng: &mut Rng) {
        let outcome = self.model.batch_run().arg("--oracle").run(&self.input);
        let result = &self.model.program.functions[self.model.program.entry.0].result;
        let lines = outcome.output.lines().map(|line| {
            let line: Json = serde_json::from_str(line).expect("a line of JSON");
            let cotangent = weights(&self.model.program, result, &line["output"], rng);
            json!({"id": line["id"], "cotangent": cotangent})
        });
        self.write_cotangents(&to_text(&lines.collect::<Vec<_>>()));
    }

    fn write_cotangents(&self, text: &str) {
        fs::write(self.path("cotangents"), text).expect("the folder is writable");
    }

    /// Writes the gradients of parameters to the file of that name, and those of inputs beside it.
    fn run(&self, name: &str, arguments: &[&str]) -> Outcome {
        self.run_of(&self.model.source, name, arguments)
    }

    fn run_of(&self, program: &std::path::Path, name: &str, arguments: &[&str]) -> Outcome {
        BatchRun::new(program)
            .weights(&self.model.weights_path)
            .arg("--gradients")
            .arg(self.path(name))
            .arg("--input-gradients")
            .arg(self.path(&format!("{name}.jsonl")))
            .arg("--cotangents")
            .arg(self.path("cotangents"))
            .args(arguments)
            .run(&self.input)
    }

    fn of_inputs(&self, name: &str) -> Vec<Json> {
        let text = fs::read_to_string(self.path(&format!("{name}.jsonl")));
        let text = text.expect("the gradients of inputs were written");
        let lines = text.lines().map(serde_json::from_str);
        lines.map(|line| line.expect("a line of JSON")).collect()
    }

    /// The oracle's gradients and those of the compiled program agree.
    #[track_caller]
    fn compare(&self) {
        self.compare_with(&[]);
    }

    #[track_caller]
    fn compare_with(&self, arguments: &[&str]) {
        let expected = self.run("expected", &["--oracle"]);
        assert!(expected.code < 2, "{}", expected.describe());
        let outcome = self.run("given", arguments).expect_code(expected.code);
        backward::compare(&self.path("expected"), &self.path("given"), &outcome);
        let (expected, given) = (self.of_inputs("expected"), self.of_inputs("given"));
        assert_eq!(expected.len(), given.len());
        for (expected, given) in expected.iter().zip(&given) {
            assert_eq!(expected["id"], given["id"]);
            if expected["error"].is_object() {
                assert_eq!(expected["error"]["kind"], given["error"]["kind"]);
                continue;
            }
            let allowed = TOLERANCE * largest(&expected["gradient"]).max(1e-6);
            if let Err(message) = close(&expected["gradient"], &given["gradient"], allowed) {
                panic!("{message}: {expected} by the oracle, {given} compiled");
            }
        }
    }
}

/// Random numbers in the form of an output.
fn weights(program: &Program, ty: &Type, value: &Json, rng: &mut Rng) -> Json {
    let all = |types: &mut dyn Iterator<Item = &Type>, values: &Json, rng: &mut Rng| {
        let values = values.as_array().expect("a list");
        let weights = types.zip(values);
        Json::Array(
            weights
                .map(|(ty, value)| weights_of(program, ty, value, rng))
                .collect(),
        )
    };
    match ty {
        _ if value.is_null() => Json::Null,
        Type::Tensor {
            elem: Elem::F32, ..
        }
        | Type::Scalar(Elem::F32) => numbers(value, rng),
        Type::Tensor { .. } | Type::Scalar(_) | Type::Str => Json::Null,
        Type::Tuple(types) => all(&mut types.iter(), value, rng),
        Type::Array(element) => all(&mut std::iter::repeat(&**element), value, rng),
        Type::Adt(_) if value.is_string() => value.clone(),
        Type::Adt(adt) => {
            let (name, fields) = value
                .as_object()
                .expect("a value")
                .iter()
                .next()
                .expect("one");
            let constructors = &program.adts[adt.0].constructors;
            let own = constructors.iter().find(|own| own.name == *name);
            let types = &own.expect("it is the type's").fields;
            let fields = match fields {
                Json::Object(named) => own_fields(own.expect("it is the type's"))
                    .map(|(name, ty)| {
                        let weights = weights_of(program, ty, &named[name], rng);
                        (name.clone(), weights)
                    })
                    .collect(),
                _ => all(&mut types.iter(), fields, rng),
            };
            Json::Object(Map::from_iter([(name.clone(), fields)]))
        }
    }
}

fn own_fields(constructor: &Constructor) -> impl Iterator<Item = (&String, &Type)> {
    constructor.names.iter().zip(&constructor.fields)
}

fn weights_of(program: &Program, ty: &Type, value: &Json, rng: &mut Rng) -> Json {
    match rng.one_in(8) {
        true => Json::Null,
        false => weights(program, ty, value, rng),
    }
}

fn numbers(value: &Json, rng: &mut Rng) -> Json {
    match value {
        Json::Array(values) => values.iter().map(|value| numbers(value, rng)).collect(),
        _ => json!((1000.0 * rng.signed_unit()).round() / 1000.0),
    }
}

fn largest(value: &Json) -> f64 {
    match value {
        Json::Array(values) => values.iter().map(largest).fold(0.0, f64::max),
        Json::Object(members) => members.values().map(largest).fold(0.0, f64::max),
        other => other.as_f64().unwrap_or(0.0).abs(),
    }
}

/// Whether two values have one form, and numbers that are near.
fn close(expected: &Json, given: &Json, allowed: f64) -> Result<(), String> {
    match (expected, given) {
        (Json::Array(left), Json::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right);
            pairs.try_for_each(|(left, right)| close(left, right, allowed))
        }
        (Json::Object(left), Json::Object(right)) if left.keys().eq(right.keys()) => {
            let mut pairs = left.values().zip(right.values());
            pairs.try_for_each(|(left, right)| close(left, right, allowed))
        }
        (Json::Number(left), Json::Number(right)) => {
            let difference = left.as_f64().unwrap_or(0.0) - right.as_f64().unwrap_or(f64::NAN);
            match difference.abs() <= allowed {
                true => Ok(()),
                false => Err(format!("{left} and {right}")),
            }
        }
        _ if expected == given => Ok(()),
        _ => Err(format!("{expected} and {given}")),
    }
}

/// Trees, lengths, decisions, loops.
#[test]
fn weighed_gradients_of_examples_are_the_oracles() {
    for (name, sizes) in [
        ("treelstm", [7, 5, 4, 3]),
        ("encoder", [7, 8, 28, 3]),
        ("encoder", [0, 28, 61, 0]),
        ("act", [7, 5, 4, 3]),
        ("stackrnn", [9, 3, 17, 1]),
        ("nestedrnn", [5, 1, 33, 3]),
        ("birnn", [4, 61, 3, 2]),
        ("exprtree", [7, 5, 4, 3]),
    ] {
        let case = model_case(name);
        let mut rng = Rng::new(201);
        let model = case.with_sizes(sizes, &mut rng);
        let instances = case.instances(&model, 7, &mut rng);
        let case = Case::new(model, &instances);
        case.weigh(&mut rng);
        case.compare();
    }
}

#[test]
fn gradients_of_inputs_do_not_depend_on_the_batch() {
    for name in ["encoder", "act", "birnn"] {
        let case = model_case(name);
        let mut rng = Rng::new(202);
        let model = case.with_sizes([9, 8, 17, 3], &mut rng);
        let instances = case.instances(&model, 14, &mut rng);
        let case = Case::new(model, &instances);
        case.weigh(&mut rng);
        let artifact = case.path("model.cohort");
        let compile = [
            case.model.source.clone().into_os_string(),
            "--gradients".into(),
            "--emit=artifact".into(),
            "--weights".into(),
            case.model.weights_path.clone().into_os_string(),
            "-o".into(),
            artifact.clone().into_os_string(),
        ];
        run("batch-opt", &compile, "").expect_code(0);
        case.run_of(&artifact, "first", &[]).expect_code(0);
        let read = |name: &str| fs::read(case.path(name)).expect("it was written");
        for arguments in [
            &["--batch", "1"][..],
            &["--batch", "5", "--threads", "2"],
            &["--in-flight", "3"],
            &["--scheduler", "agenda"],
            &["--scheduler", "lookahead"],
            &["--granularity", "instance"],
            &["--no-batch"],
        ] {
            let outcome = case.run_of(&artifact, "again", arguments).expect_code(0);
            for (first, again) in [("first", "again"), ("first.jsonl", "again.jsonl")] {
                let same = read(first) == read(again);
                assert!(same, "other bits in {again}: {}", outcome.describe());
            }
        }
    }
}

/// Scalars of the input are numbers of the host where no gradients are wanted.
const SCALARS: &str = "dim D
    param w: f32[D]
    type Expr = Const(f32) | Var(i32) | Add(left: Expr, right: Expr) | Mul(left: Expr, right: Expr)
    fn value(e: Expr, x: f32[D]) -> f32 {
      match e { Const(c) => c, Var(i) => x[i] * w[i],
        Add(l, r) => value(l, x) + value(r, x), Mul(l, r) => value(l, x) * value(r, x) }
    }
    fn scaled(e: Expr) -> Expr {
      match e { Const(c) => Const(c * 3.0), Var(i) => Var(i),
        Add(l, r) => Add(scaled(l), scaled(r)), Mul(l, r) => Mul(scaled(l), scaled(r)) }
    }
    fn main(e: Expr, x: f32[D], ks: [f32], p: (f32, i32)) -> (f32, Expr, [f32], f32, f32[D], (f32, i32)) {
      let (a, b) = p;
      let half = if a > 0.0 { a / 2.0 } else { a * a };
      (value(e, x), scaled(e), map(ks, |k| k * half), half, x, (2.0 * a, b))
    }
    fn loss(x: f32, k: i32) -> f32 { f32(k) * 2.0 + x }
    fn constant(k: i32) -> f32 { f32(k) * 2.0 }";

#[test]
fn gradients_reach_the_scalars_of_trees_arrays_and_tuples() {
    let mut rng = Rng::new(203);
    let model = Model::from_text(SCALARS, &[("D", 3)], &mut rng);
    let instance = |id: &str, p: f64| {
        json!({
            "id": id,
            "e": {"Add": [{"Mul": [{"Const": [2.5]}, {"Var": [1]}]},
                {"Mul": {"right": {"Const": [-1.5]}, "left": {"Add": [{"Const": [4.0]}, {"Var": [0]}]}}}]},
            "x": [1.0, -2.0, 3.0],
            "ks": [1.0, 2.0, 0.5],
            "p": [p, 7],
        })
    };
    let instances = [instance("a", 3.0), instance("b", -0.5), instance("c", 0.25)];
    let case = Case::new(model, &instances);
    case.weigh(&mut rng);
    case.compare();
    // Fields of cotangents may have names, in any order.
    let by_name = |left: &str, right: &str| {
        format!(
            r#"{{"id":"a","cotangent":[1,{{"Add":{{"right":{right},"left":{left}}}}},null,0.5,[1,2,3],[2,null]]}}"#
        )
    };
    let weighed = r#"{"Mul":[{"Const":[2]},{"Var":[null]}]}"#;
    let lines = |first: String| format!("{first}\n{{\"id\":\"b\",\"cotangent\":null}}\n");
    case.write_cotangents(&lines(by_name(weighed, "null")));
    case.run("given", &[]).expect_code(1);
    let gradient = &case.of_inputs("given");
    let tree = &gradient[0]["gradient"]["e"]["Add"];
    let of_left = &tree["left"]["Mul"]["left"]["Const"][0];
    let of_right = &tree["right"]["Mul"]["right"]["Const"][0];
    assert!(of_left.is_number() && of_right.is_number(), "{gradient:?}");
    assert_eq!(gradient[1]["gradient"]["p"], json!([0.0, null]));
    assert_eq!(gradient[2]["error"]["kind"], "bad_input");
    let with_null = case.path("given.jsonl");
    let first = fs::read(&with_null).expect("it was written");
    let unnamed = by_name(weighed, "null").replace("{\"right\":null,\"left\":", "[");
    let unnamed = unnamed.replace("]}}},null,0.5", "]},null]},null,0.5");
    case.write_cotangents(&lines(unnamed));
    case.run("given", &[]).expect_code(1);
    assert_eq!(first, fs::read(&with_null).expect("it was written"));
}

/// A loss that nothing computes with tensors is one as well.
#[test]
fn a_loss_of_the_host_is_a_loss() {
    let model = Model::from_text(SCALARS, &[("D", 2)], &mut Rng::new(204));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let differentiate = |entry: &str, input: &str| {
        let run = model.batch_run().args(&["--entry", entry, "--gradients"]);
        run.arg(path("g"))
            .arg("--input-gradients")
            .arg(path("inputs"))
            .run(input)
            .expect_code(0);
        fs::read_to_string(path("inputs")).expect("it was written")
    };
    assert_eq!(
        differentiate("loss", "{\"x\":3,\"k\":2}\n"),
        "{\"id\": 1, \"gradient\": {\"x\": 1.0, \"k\": null}}\n"
    );
    assert_eq!(
        differentiate("constant", "{\"k\":2}\n"),
        "{\"id\": 1, \"gradient\": {\"k\": null}}\n"
    );
}

/// What is wrong with a cotangent is its instance's error, and the others have their gradients.
#[test]
fn a_cotangent_of_another_form_is_the_instances_error() {
    let text = "dim D
        param w: f32[D, D]
        fn main(x: f32[n, D]) -> (f32[n, D], i32, str) { (x @ w, len(x), \"text\") }";
    let mut rng = Rng::new(205);
    let model = Model::from_text(text, &[("D", 2)], &mut rng);
    let instance = |id: &str, rows: usize| json!({"id": id, "x": vec![[1.0, 2.0]; rows]});
    let good = instance("good", 2);
    let case = Case::new(model, std::slice::from_ref(&good));
    let of_good = r#"{"id":"good","cotangent":[[[1,2],[3,4]],null,null]}"#;
    case.write_cotangents(of_good);
    case.run("alone", &[]).expect_code(0);
    let bad = [
        ("1", "a list with a part"),
        ("[[[1,2],[3,4]],null]", "as long as"),
        ("[[[1,2],[3,4]],null,null,null]", "a list with a part"),
        ("[[[1,2]],null,null]", "lengths [2, 2]"),
        ("[[[1,2],[3]],null,null]", "lengths [2, 2]"),
        ("[[[1,2],[3,\"NaN\"]],null,null]", "lengths [2, 2]"),
        ("[[[1,2],[3,1e300]],null,null]", "lengths [2, 2]"),
        ("[[[1,2],[3,4]],1,null]", "`null` for what is of i32"),
        ("[[[1,2],[3,4]],null,1]", "`null` for a text"),
    ];
    let mut instances = vec![good];
    let mut cotangents = vec![of_good.to_owned()];
    for (number, (cotangent, _)) in bad.iter().enumerate() {
        instances.push(instance(&format!("bad{number}"), 2));
        cotangents.push(format!(
            "{{\"cotangent\":{cotangent},\"id\":\"bad{number}\"}}"
        ));
    }
    instances.push(instance("missing", 1));
    instances.push(json!({"id": "wrong", "x": [[1.0]]}));
    let case = Case {
        input: to_text(&instances),
        ..case
    };
    case.write_cotangents(&cotangents.join("\n"));
    let outcome = case.run("among", &[]).expect_code(1);
    let bits = |name: &str| fs::read(case.path(name)).expect("it was written");
    assert!(bits("alone") == bits("among"), "{}", outcome.describe());
    let records = outcome.output.lines();
    let records: Vec<Json> = records
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    let of_inputs = case.of_inputs("among");
    assert!(of_inputs[0]["gradient"].is_object());
    for (number, (cotangent, message)) in bad.iter().enumerate() {
        let error = &records[1 + number]["error"];
        let text = error["message"].as_str().unwrap_or_default();
        assert_eq!(error["kind"], "bad_input", "of {cotangent}: {error}");
        assert!(text.contains(message), "of {cotangent}: {text}");
        assert_eq!(of_inputs[1 + number]["error"], *error);
    }
    let missing = records[1 + bad.len()]["error"]["message"].to_string();
    assert!(missing.contains("no cotangent was given for the instance"));
    assert_eq!(records[2 + bad.len()]["error"]["kind"], "bad_input");

    for (line, message) in [
        (
            "{\"id\":\"good\"}",
            "line 1 of the cotangents: no member `cotangent`",
        ),
        ("nothing", "no object"),
        ("{\"cotangent\":[1,}", "malformed"),
        (
            "{\"id\":[],\"cotangent\":1}",
            "neither a string nor a number",
        ),
        ("{\"cotangents\":1}", "`id` and `cotangent`"),
        (
            "{\"id\":\"a\",\"cotangent\":1}\n{\"id\":\"\\u0061\",\"cotangent\":1}",
            "line 2 of the cotangents: the second",
        ),
    ] {
        case.write_cotangents(line);
        case.run("g", &[]).expect_code(2).expect_message(&[message]);
    }
}

#[test]
fn an_output_that_is_not_finite_has_no_gradient_where_it_counts() {
    let text = "dim D\n param w: f32[D]\n fn main(x: f32[D]) -> f32[D] { log(x) * w }";
    let mut rng = Rng::new(206);
    let model = Model::from_text(text, &[("D", 2)], &mut rng);
    let weights = [("w".to_owned(), Tensor::f32(&[2], vec![0.5, 0.25]))];
    cohort_e2e::weights::write_weights(&model.weights_path, &weights.into());
    let instances = [
        json!({"id": "counts", "x": [1.0, 0.0]}),
        json!({"id": "not", "x": [1.0, 0.0]}),
    ];
    let case = Case::new(model, &instances);
    case.write_cotangents(
        "{\"id\":\"counts\",\"cotangent\":[1,1]}\n{\"id\":\"not\",\"cotangent\":[1,0]}\n",
    );
    let outcome = case.run("g", &[]).expect_code(1);
    let lines: Vec<&str> = outcome.output.lines().collect();
    assert!(
        lines[0].contains("weighed by its cotangents, is -inf"),
        "{lines:?}"
    );
    assert!(lines[1].contains("\"output\""), "{lines:?}");
}

/// A run that is measured has the gradients of its last repetition.
#[test]
fn repetitions_do_not_add_up() {
    let case = model_case("treelstm");
    let mut rng = Rng::new(207);
    let model = case.with_sizes([7, 5, 4, 3], &mut rng);
    let instances = case.instances(&model, 5, &mut rng);
    let case = Case::new(model, &instances);
    case.weigh(&mut rng);
    let run = |name: &str, arguments: &[&str]| {
        let run = case
            .model
            .batch_run()
            .arg("--gradients")
            .arg(case.path(name));
        let run = run.arg("--cotangents").arg(case.path("cotangents"));
        run.args(arguments).run(&case.input).expect_code(0);
        fs::read(case.path(name)).expect("it was written")
    };
    assert!(run("once", &[]) == run("often", &["--benchmark-repetitions", "3"]));
    case.run("g", &["--benchmark-repetitions", "2"])
        .expect_code(2)
        .expect_message(&["`--input-gradients` is for one run"]);
}

#[test]
fn the_verification_compares_gradients() {
    for (name, count) in [("treelstm", "6"), ("act", "6")] {
        let case = model_case(name);
        let mut rng = Rng::new(208);
        let model = case.with_sizes([7, 5, 4, 3], &mut rng);
        let instances = case.instances(&model, 8, &mut rng);
        let case = Case::new(model, &instances);
        case.weigh(&mut rng);
        let run = case
            .model
            .batch_run()
            .arg("--gradients")
            .arg(case.path("g"));
        let run = run.arg("--cotangents").arg(case.path("cotangents"));
        let run = run
            .args(&["--verify-batch-invariance", count])
            .run(&case.input);
        let report = run.expect_code(0).output;
        assert!(report.contains("gradients          6 times"), "{report}");
    }
}

/// What is kept of an instance for its backward is memory of the instance.
#[test]
fn a_tape_counts_for_the_memory_of_its_instance() {
    let text = "dim D\n param w: f32[D]
        fn go(x: f32[D], k: i32) -> f32[D] { if k == 0 { x } else { go(tanh(x * w), k - 1) } }
        fn main(x: f32[D], k: i32) -> f32 { sum(go(x, k)) }";
    let model = Model::from_text(text, &[("D", 3)], &mut Rng::new(210));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let input = "{\"x\":[1,2,3],\"k\":3000}\n{\"x\":[1,2,3],\"k\":30}\n";
    let run = |memory: &str| model.batch_run().args(&["--max-memory", memory]);
    run("140000").run(input).expect_code(0);
    let differentiated = |memory: &str| run(memory).arg("--gradients").arg(folder.path().join("g"));
    let lines = differentiated("140000").run(input).expect_code(1).lines();
    assert!(
        lines[0].contains("memory_limit") && lines[1].contains("output"),
        "{lines:?}"
    );
    differentiated("1000000").run(input).expect_code(0);
}

/// The kernels of backward are those of a GPU too.
#[test]
fn gradients_on_the_simulator_are_the_oracles() {
    for (name, sizes) in [
        ("treelstm", [7, 5, 4, 3]),
        ("encoder", [7, 8, 12, 3]),
        ("act", [7, 5, 4, 3]),
    ] {
        let case = model_case(name);
        let mut rng = Rng::new(209);
        let model = case.with_sizes(sizes, &mut rng);
        let instances = case.instances(&model, 5, &mut rng);
        let case = Case::new(model, &instances);
        case.weigh(&mut rng);
        case.compare_with(&["--device", "gpu-sim"]);
        let read = |name: &str| fs::read(case.path(name)).expect("it was written");
        case.run("one", &["--device", "gpu-sim", "--batch", "1"])
            .expect_code(0);
        assert!(
            read("given") == read("one") && read("given.jsonl") == read("one.jsonl"),
            "{name}"
        );
    }
}
