//! What a line must look like, and what is said when it does not.

use cohort_runtime::abi::manifest::*;
use cohort_runtime::{Config, Limits, Session};

use crate::program::{echo_session, run, tree_session, try_run};

/// `main(a: (i32, f32), b: [f32[2, 3]], c: f32[n, 2], d: bool[2])`.
fn echo(config: Config) -> Session {
    let pool = |elem, shape: &[u64]| RowPool {
        elem,
        shape: shape.to_vec(),
    };
    echo_session(
        vec![
            Type::Tuple(vec![Type::Scalar(Elem::I32), Type::Scalar(Elem::F32)]),
            Type::Array(Box::new(Type::Tensor { pool: 0 })),
            Type::Stacked { pool: 1 },
            Type::Tensor { pool: 2 },
        ],
        vec![],
        vec![
            pool(Elem::F32, &[2, 3]),
            pool(Elem::F32, &[2]),
            pool(Elem::Bool, &[2]),
        ],
        config,
    )
}

fn message_of(session: &mut Session, line: &str) -> String {
    let (output, stats) = run(session, line);
    assert_eq!(
        (stats.instances, stats.failed),
        (1, 1),
        "{line}: {output:?}"
    );
    let record: serde_json::Value = serde_json::from_str(&output[0]).unwrap();
    assert_eq!(record["error"]["kind"], "bad_input", "{output:?}");
    record["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_wrong_with_a_tree() {
    let cases = [
        (
            r#"{"t": {"Node": [{"Leaf": [1]}, {"Leaf": ["x"]}]}}"#,
            r#"argument t: at .Node[1].Leaf[0]: expected an i32, found "x""#,
        ),
        (
            r#"{"t": {"Leaf": [1.5]}}"#,
            "argument t: at .Leaf[0]: expected an i32, found 1.5",
        ),
        (
            r#"{"t": {"Leaf": [2147483648]}}"#,
            "argument t: at .Leaf[0]: expected an i32, found 2147483648",
        ),
        (
            r#"{"t": {"Leaf": []}}"#,
            "argument t: at .Leaf[0]: expected an i32, found the end of the list",
        ),
        (
            r#"{"t": {"Leaf": [1, 2]}}"#,
            "argument t: at .Leaf[1]: expected the end of the list after 1, found 2",
        ),
        (
            r#"{"t": {"Leaf": 1}}"#,
            "argument t: expected a list of the fields of Leaf, found 1",
        ),
        (
            r#"{"t": {"Node": ["Empty"]}}"#,
            "argument t: at .Node[1]: expected a Tree (Leaf, Node, Empty), found the end of the list",
        ),
        (
            r#"{"t": {"Bush": [1]}}"#,
            r#"argument t: expected a Tree (Leaf, Node, Empty), found "Bush""#,
        ),
        (
            r#"{"t": "Leaf"}"#,
            r#"argument t: expected {"Leaf": […]}, found "Leaf""#,
        ),
        (
            r#"{"t": {"Empty": []}}"#,
            r#"argument t: expected "Empty", a constructor without fields, found an object {"Empty": …}"#,
        ),
        (
            r#"{"t": null}"#,
            "argument t: expected a Tree (Leaf, Node, Empty), found null",
        ),
        (
            r#"{"t": {"Leaf": [1], "Leaf": [2]}}"#,
            "malformed JSON at column 19: expected `}`, as a value has one constructor, found `,`",
        ),
        (
            r#"{"u": 1}"#,
            r#"unknown key "u": expected the arguments of the program (t) or "id""#,
        ),
        (
            r#"{"id": 1}"#,
            "argument t: expected a Tree (Leaf, Node, Empty), found no such key",
        ),
        (r#"{"t": "Empty", "t": "Empty"}"#, r#"two keys "t""#),
        (r#"{"id": 1, "id": 2, "t": "Empty"}"#, r#"two keys "id""#),
        (
            r#"{"id": null, "t": "Empty"}"#,
            "id: expected a string or a number, found null",
        ),
        ("[1]", "expected an object with an instance, found a list"),
        (
            r#"{"t": "Empty"} x"#,
            "malformed JSON at column 16: expected the end of the line, found x",
        ),
        (
            r#"{"t": "Empty""#,
            "malformed JSON at column 14: expected `,` or `}`, found the end of the line",
        ),
        (
            r#"{"t": {"Leaf": [1 2]}}"#,
            "malformed JSON at column 19: expected `,` or `]`, found 2",
        ),
        (
            r#"{"id": "ä", t: 1}"#,
            "malformed JSON at column 13: expected a key, found t",
        ),
        (
            r#"{"t": {"Leaf": [01]}}"#,
            "malformed JSON at column 18: expected a number without leading zeros, found 1",
        ),
        (
            r#"{"t": {"Leaf": [1]}"#,
            "malformed JSON at column 20: expected `,` or `}`, found the end of the line",
        ),
        (
            "{\"t\": \"Emp",
            "malformed JSON at column 11: expected the end of the string, found the end of the line",
        ),
    ];
    let mut session = tree_session(Config::default());
    for (line, message) in cases {
        assert_eq!(message_of(&mut session, line), message, "{line}");
    }
}

#[test]
fn what_is_wrong_with_tensors() {
    let whole = |a: &str, b: &str, c: &str, d: &str| {
        format!("{{\"a\": {a}, \"b\": {b}, \"c\": {c}, \"d\": {d}}}")
    };
    let d = "[true, false]";
    let cases = [
        (
            whole("[1]", "[]", "[]", d),
            "argument a: at [1]: expected an f32, found the end of the list",
        ),
        (
            whole("[1, 2, 3]", "[]", "[]", d),
            "argument a: at [2]: expected the end of the list after 2, found 3",
        ),
        (
            whole("[1, NaN]", "[]", "[]", d),
            "argument a: at [1]: expected an f32, found NaN",
        ),
        (
            whole("[1, -Infinity]", "[]", "[]", d),
            "malformed JSON at column 12: expected a number, found Infinity",
        ),
        (
            whole("[1, 1e39]", "[]", "[]", d),
            "argument a: at [1]: expected an f32, found 1e39",
        ),
        (
            whole("[1, \"nan\"]", "[]", "[]", d),
            "argument a: at [1]: expected an f32, found \"nan\"",
        ),
        (
            whole("[1, 2]", "[[[1, 2, 3]]]", "[]", d),
            "argument b: at [0][1]: expected a list of 3 (f32[3]), found the end of the list",
        ),
        (
            whole("[1, 2]", "[[[1, 2, 3], [1, 2]]]", "[]", d),
            "argument b: at [0][1][2]: expected an f32, found the end of the list",
        ),
        (
            whole("[1, 2]", "[[[1, 2, 3], [1, 2, 3, 4]]]", "[]", d),
            "argument b: at [0][1][3]: expected the end of the list after 3, found 4",
        ),
        (
            whole("[1, 2]", "[[1, 2, 3]]", "[]", d),
            "argument b: at [0][0]: expected a list of 3 (f32[3]), found 1",
        ),
        (
            whole("[1, 2]", "[7]", "[]", d),
            "argument b: at [0]: expected a list of 2 (f32[2, 3]), found 7",
        ),
        (
            whole("[1, 2]", "[]", "3", d),
            "argument c: expected a list of f32[2], found 3",
        ),
        (
            whole("[1, 2]", "[]", "[[1, 2], [3, 4, 5]]", d),
            "argument c: at [1][2]: expected the end of the list after 2, found 5",
        ),
        (
            whole("[1, 2]", "[]", "[]", "[0, 1]"),
            "argument d: at [0]: expected a bool, found 0",
        ),
    ];
    let mut session = echo(Config::default());
    for (line, message) in cases {
        assert_eq!(message_of(&mut session, &line), message, "{line}");
    }
}

#[test]
fn values_of_all_types_arrive() {
    let mut session = echo(Config::default());
    let one = r#"{"id": 1e2, "a": [-5, 0.1], "b": [[[1, 2, 3], [4, 5, 6.5]]], "c": [[1, 2], [3, -0.0]], "d": [true, false]}"#;
    let two = r#"{"d":[false,true],"c":[],"b":[],"a":[7,1E-3],"id":"\u00e4\"b"}"#;
    let (output, _) = run(&mut session, &format!("{one}\n{two}\n"));
    assert_eq!(
        output,
        [
            r#"{"id": 1e2, "output": [[-5, 0.1], [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]], [[1.0, 2.0], [3.0, -0.0]], [true, false]]}"#,
            r#"{"id": "\u00e4\"b", "output": [[7, 0.001], [], [], [false, true]]}"#,
        ]
    );
}

#[test]
fn numbers_that_are_not_finite_come_back_as_they_went() {
    let mut session = echo(Config::default());
    let row = r#"["NaN", "Infinity"], ["-Infinity", 1.0]"#;
    let line = format!(r#"{{"id": 1, "a": [0, "NaN"], "b": [], "c": [{row}], "d": [true, true]}}"#);
    let (output, _) = run(&mut session, &line);
    assert_eq!(
        output,
        [format!(
            r#"{{"id": 1, "output": [[0, "NaN"], [], [{row}], [true, true]]}}"#
        )]
    );
}

#[test]
fn an_i32_is_written_without_point_exponent_or_negative_zero() {
    let mut session = tree_session(Config::default());
    for number in ["1.0", "1e0", "-0", "\"1\"", "\"NaN\"", "2147483648"] {
        let line = format!("{{\"t\": {{\"Leaf\": [{number}]}}}}");
        let message = message_of(&mut session, &line);
        let expected = format!("argument t: at .Leaf[0]: expected an i32, found {number}");
        assert_eq!(message, expected);
    }
}

#[test]
fn ids_survive_errors_and_are_line_numbers_where_missing() {
    let input =
        "\n{\"t\": 5, \"id\": \"late\"}\n{\"t\": 5}\n{\"id\": 7, \"t\": \n\n{\"t\": \"Empty\"}\n";
    let (output, _) = run(&mut tree_session(Config::default()), input);
    let ids: Vec<&str> = output
        .iter()
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "{\"id\": \"late\"",
            "{\"id\": 3",
            "{\"id\": 7",
            "{\"id\": 6"
        ]
    );
}

#[test]
fn lines_that_are_no_text_or_too_long() {
    let mut session = tree_session(Config {
        max_line_bytes: 30,
        ..Config::default()
    });
    let input = b"\xef\xbb\xbf{\"t\": \"Empty\"}\n{\"t\": \"\xff\"}\n{\"t\": \"Empty\"                            }\n";
    let (output, stats) = try_run(&mut session, input).unwrap();
    assert_eq!(stats.failed, 2);
    assert!(output[0].contains("\"output\""));
    assert!(
        output[1].contains("invalid UTF-8 at column 8"),
        "{}",
        output[1]
    );
    assert!(
        output[2].contains("line 3 is longer than 30 bytes"),
        "{}",
        output[2]
    );
}

#[test]
fn deep_nesting_of_what_is_not_a_tree() {
    let mut session = echo(Config::default());
    let line = format!("{{\"b\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(
        message_of(&mut session, &line),
        "argument b: at [0][0][0]: expected an f32, found a list"
    );
}

#[test]
fn the_path_of_a_deep_value_is_shortened() {
    let mut session = tree_session(Config::default());
    let line = format!(
        "{{\"t\": {}true{}}}",
        "{\"Node\": [\"Empty\", ".repeat(100_000),
        "]}".repeat(100_000)
    );
    let message = message_of(&mut session, &line);
    assert!(
        message.contains(".Node[1]…(99984 more)….Node[1]"),
        "{message}"
    );
    assert!(message.ends_with("expected a Tree (Leaf, Node, Empty), found true"));
    assert!(message.len() < 400);
}

#[test]
fn the_input_counts_as_memory() {
    let mut session = echo(Config {
        limits: Limits {
            max_memory: 10_000,
            ..Limits::default()
        },
        ..Config::default()
    });
    let row = "[[1, 2, 3], [4, 5, 6]]";
    let line = |rows: usize| {
        format!(
            "{{\"a\": [1, 2], \"b\": [{}], \"c\": [], \"d\": [true, true]}}\n",
            vec![row; rows].join(", ")
        )
    };
    let (output, _) = run(&mut session, &(line(1000) + &line(10)));
    assert!(output[0].contains("\"memory_limit\""), "{}", output[0]);
    assert!(output[1].contains("\"output\""));
}

/// Random damage: never more than an error record, and nothing that is not JSON is accepted.
#[test]
fn damaged_lines_do_no_harm() {
    let good = r#"{"id": "s\u00e41", "a": [-5, 0.1e1], "b": [[[1, 2, 3], [4, 5, 6.5]]], "c": [[1, 2]], "d": [true, false]}"#;
    let alphabet = b"[]{}:,\"\\ 0123456789.eE+-truefalsn\xc3\xa4\x01ab";
    let mut session = echo(Config::default());
    let mut state = 1_u64;
    let mut next = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for _ in 0..20_000 {
        let mut line = good.as_bytes().to_vec();
        for _ in 0..1 + next(3) {
            let at = next(line.len());
            match next(3) {
                0 => line[at] = alphabet[next(alphabet.len())],
                1 => line.insert(at, alphabet[next(alphabet.len())]),
                _ => {
                    line.remove(at);
                }
            }
        }
        lines.push(line);
    }
    let (output, stats) = try_run(&mut session, &lines.join(&b'\n')).unwrap();
    assert_eq!(stats.instances, 20_000);
    assert!(
        stats.failed > 10_000 && stats.failed < 19_000,
        "{}",
        stats.failed
    );
    for (line, record) in lines.iter().zip(&output) {
        let is_json = serde_json::from_slice::<serde_json::Value>(line).is_ok();
        let line = String::from_utf8_lossy(line);
        assert!(
            is_json || record.contains("\"error\": {\"kind\": \"bad_input\""),
            "{line}: {record}"
        );
        let is_record = serde_json::from_str::<serde_json::Value>(record).is_ok();
        assert!(is_record, "{line}: {record}");
    }
}
