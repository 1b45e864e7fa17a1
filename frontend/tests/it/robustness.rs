//! No input makes the frontend panic or overflow its stack.

use crate::examples::examples;
use crate::support::{self, Dims, Weights};

fn errors(text: &str) -> String {
    match support::compile("deep.coh", text, &Weights::new(), &Dims::new()) {
        Ok(_) => panic!("a program that nests so deeply is not accepted"),
        Err(errors) => errors,
    }
}

fn nested(before: &str, open: &str, middle: &str, close: &str, after: &str) -> String {
    let depth = 10_000;
    format!(
        "{before}{}{middle}{}{after}",
        open.repeat(depth),
        close.repeat(depth)
    )
}

#[test]
fn ten_thousand_brackets_are_an_error() {
    let text = nested("fn main(x: f32) -> f32 { ", "(", "x", ")", " }");
    assert!(errors(&text).contains("E0105"));
    let text = nested("fn main(x: f32) -> f32 { ", "f[", "x", "]", " }");
    assert!(errors(&text).contains("E0105"));
    let text = nested("fn main(x: f32) -> f32 ", "{ let y = ", "x", "; y }", "");
    assert!(errors(&text).contains("E0105"));
    let text = nested("fn main(x: ", "[", "f32", "]", ") -> f32 { 0.0 }");
    assert!(errors(&text).contains("E0105"));
}

#[test]
fn nesting_without_brackets_is_an_error_too() {
    for text in [
        nested("fn main(x: f32) -> f32 { ", "-", "x", "", " }"),
        nested("fn main(x: f32) -> f32 { ", "x + ", "x", "", " }"),
        nested(
            "fn main(x: f32) -> f32 { ",
            "if c { x } else ",
            "{ x }",
            "",
            " }",
        ),
        nested("fn main(x: f32) -> f32 { ", "let y = x; ", "x", "", " }"),
        nested("fn main(x: f32[", "1 + ", "1", "", "]) -> f32 { x[0] }"),
        nested("fn main(x: ", "List<", "f32", ">", ") -> f32 { 0.0 }"),
        nested("fn main(x: f32) -> f32 { x", "[0]", "", "", " }"),
    ] {
        assert!(errors(&text).contains("E0105"), "{}", errors(&text));
    }
}

#[test]
fn the_deepest_accepted_tree_compiles() {
    let sum = "x + ".repeat(450);
    let text = format!("fn main(x: f32) -> f32 {{ {sum} x }}");
    assert!(support::compile("deep.coh", &text, &Weights::new(), &Dims::new()).is_ok());
    let lets = "let x = x + 1; ".repeat(450);
    let text = format!("fn main(x: f32) -> f32 {{ {lets} x }}");
    assert!(support::compile("deep.coh", &text, &Weights::new(), &Dims::new()).is_ok());
}

#[test]
fn more_parts_than_a_compiler_can_hold_are_an_error() {
    let list = |part: &str, count: usize| vec![part; count].join(", ");
    let arms: Vec<String> = (0..1000).map(|number| format!("{number} => 1,")).collect();
    for text in [
        format!("fn main(x: f32[{}]) -> f32 {{ 0.0 }}", list("1", 100_000)),
        format!("fn main(x: f32) -> f32 {{ f({}) }}", list("x", 100_000)),
        format!(
            "fn main(x: i32) -> i32 {{ match x {{ {} _ => 0 }} }}",
            arms.join(" ")
        ),
    ] {
        let shown = errors(&text);
        assert!(
            shown.contains("E0105") && shown.contains("too many"),
            "{shown}"
        );
        assert!(shown.contains("are allowed"), "{shown}");
    }
}

#[test]
fn very_many_mistakes_are_shown_in_part() {
    let mistake = |at| format!("fn f{at}(x: f32) -> f32 {{ none{at} }}\n");
    let mistakes: String = (0..1000).map(mistake).collect();
    let shown = errors(&format!("{mistakes} fn main(x: f32) -> f32 {{ x }}"));
    assert_eq!(shown.matches("error[E0201]").count(), 30);
    assert!(shown.ends_with(" more\n"), "{shown}");
}

#[test]
fn types_cannot_grow_exponentially() {
    let lets: String = (0..60)
        .map(|i| format!("let a{} = (a{i}, a{i}); ", i + 1))
        .collect();
    let text = format!("fn main(a0: f32) -> f32 {{ {lets} a0 }}");
    assert!(errors(&text).contains("E0306"));
    let dup = "fn dup<T>(x: T) -> (T, T) { (x, x) }";
    let calls: String = (0..60)
        .map(|i| format!("let a{} = dup(a{i}); ", i + 1))
        .collect();
    let text = format!("{dup} fn main(a0: f32) -> f32 {{ {calls} a0 }}");
    assert!(errors(&text).contains("E0306"));
}

#[test]
fn matches_cannot_grow_exponentially() {
    // Row i looks at column i only, so every combination of columns is a way of its own.
    let columns = 24;
    let names: Vec<String> = (0..columns).map(|i| format!("x{i}")).collect();
    let params: Vec<String> = names.iter().map(|name| format!("{name}: T")).collect();
    let rows: String = (0..columns / 2)
        .map(|row| {
            let cells: Vec<&str> = (0..columns)
                .map(|column| {
                    if column == row || column == columns - 1 - row {
                        "A"
                    } else {
                        "_"
                    }
                })
                .collect();
            format!("({}) => {row},", cells.join(", "))
        })
        .collect();
    let text = format!(
        "type T = A | B fn main({}) -> i32 {{ match ({}) {{ {rows} _ => 99 }} }}",
        params.join(", "),
        names.join(", ")
    );
    let result = support::compile("wide.coh", &text, &Weights::new(), &Dims::new());
    if let Err(errors) = result {
        assert!(
            errors.contains("E0504") || errors.contains("E0707"),
            "{errors}"
        );
    }
}

#[test]
fn dims_cannot_overflow() {
    for shape in [
        "99999999999*99999999999*99999999999*99999999999*99999999999",
        "1/0",
        "H/(H+1)",
        "H-H",
        "(H+A)*(H+B)*(H+A)*(H+B)*(H+A)*(H+B)*(H+A)*(H+B)*(H+A)*(H+B)*(H+A)*(H+B)",
    ] {
        let text = format!("dim H, A, B fn main(x: f32[{shape}]) -> f32 {{ sum(x) }}");
        let dims = support::dims("H=2147483647 A=2147483647 B=2147483647");
        let result = support::compile("dims.coh", &text, &Weights::new(), &dims);
        assert!(result.is_err(), "{shape}");
    }
}

/// A small generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit.max(1)
    }
}

const WORDS: &[&str] = &[
    "fn",
    "let",
    "match",
    "if",
    "else",
    "while",
    "for",
    "in",
    "with",
    "dim",
    "param",
    "type",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    "=",
    "->",
    "=>",
    "|",
    "..",
    "+",
    "-",
    "*",
    "/",
    "%",
    "@",
    "!",
    "==",
    "<",
    ">",
    "&&",
    "||",
    "_",
    "0",
    "1",
    "2.5",
    "99999999999",
    "true",
    "x",
    "h",
    "H",
    "D",
    "f32",
    "i32",
    "Tree",
    "Leaf",
    "Node",
    "cell",
    "main",
    "sum",
    "map",
    "split",
    "concat",
    "stack",
    "zeros",
    "reshape",
    "range",
    "fold",
    "select",
    "é",
    "\u{1F600}",
    "\"",
    "axis = 0",
    "|x| x",
    "[]",
    "f32[n, H]",
    "n",
];

/// Cuts, doubles, swaps and replaces pieces of a program.
fn mutate(text: &str, numbers: &mut Numbers) -> String {
    let mut pieces: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
        } else {
            pieces.push(std::mem::take(&mut word));
            pieces.push(c.to_string());
        }
    }
    for _ in 0..=numbers.below(4) {
        let place = numbers.below(pieces.len());
        let other = numbers.below(pieces.len());
        match numbers.below(5) {
            0 => pieces[place] = WORDS[numbers.below(WORDS.len())].to_owned(),
            1 => pieces[place].clear(),
            2 => pieces.swap(place, other),
            3 => {
                let end = (place + numbers.below(20)).min(pieces.len());
                let copy: Vec<String> = pieces[place..end].to_vec();
                pieces.splice(other..other, copy);
            }
            _ => pieces.insert(place, format!(" {} ", WORDS[numbers.below(WORDS.len())])),
        }
    }
    pieces.concat()
}

#[test]
fn mutated_examples_never_panic() {
    let mut numbers = Numbers(7);
    let mut accepted = 0;
    let features = include_str!("corpus/features.coh").to_owned();
    let dims = support::dims("V=5 H=4");
    let compiled = support::compile("features.coh", &features, &Weights::new(), &dims);
    compiled.unwrap_or_else(|errors| panic!("{errors}"));
    let mut corpus = examples();
    corpus.extend(std::iter::repeat_n(("features".to_owned(), features), 8));
    for (name, text) in corpus {
        for round in 0..100 {
            let mutated = mutate(&text, &mut numbers);
            let dims = support::dims("V=5 D=8 H=4 C=3 L=2 F=6");
            let declared = text
                .lines()
                .find(|line| line.starts_with("dim "))
                .unwrap_or_default();
            let dims = dims
                .into_iter()
                .filter(|(dim, _)| declared.contains(dim.as_str()));
            let dims = dims.collect();
            let result = std::panic::catch_unwind(|| {
                support::compile("mutated.coh", &mutated, &Weights::new(), &dims)
            });
            match result {
                Ok(Ok(_)) => accepted += 1,
                Ok(Err(errors)) => assert!(
                    !errors.contains("mistake of the compiler"),
                    "{name}, round {round}:\n{errors}\n{mutated}"
                ),
                Err(_) => panic!("{name}, round {round} panics:\n{mutated}"),
            }
        }
    }
    assert!(
        accepted > 0,
        "no mutation was harmless, so nothing past the parser was tested"
    );
}

#[test]
fn bytes_of_any_kind_never_panic() {
    let mut numbers = Numbers(11);
    for _ in 0..500 {
        let text: String = (0..numbers.below(200))
            .map(|_| match numbers.below(3) {
                0 => WORDS[numbers.below(WORDS.len())].to_owned() + " ",
                1 => char::from(u8::try_from(numbers.below(128)).unwrap_or(0)).to_string(),
                _ => char::from_u32(u32::try_from(numbers.below(0x11_0000)).unwrap_or(0))
                    .unwrap_or('?')
                    .to_string(),
            })
            .collect();
        let _ = support::compile("noise.coh", &text, &Weights::new(), &Dims::new());
    }
}

#[test]
fn chains_and_circles_of_aliases_are_resolved_in_any_order() {
    let chain: String = (0..20_000)
        .map(|k| format!("type A{} = A{k}\n", k + 1))
        .collect();
    let text = format!("{chain} type A0 = i32 fn main(x: A20000) -> i32 {{ x }}");
    support::compile("chain.coh", &text, &Default::default(), &Default::default())
        .expect("an alias of an alias is a type");
    let circle = format!("{chain} type A0 = A20000 fn main(x: A7) -> i32 {{ x }}");
    let errors = support::compile(
        "circle.coh",
        &circle,
        &Default::default(),
        &Default::default(),
    )
    .expect_err("the aliases stand for themselves");
    assert!(errors.contains("E0602"), "{errors}");
}

#[test]
fn alternatives_and_guards_cannot_grow_exponentially() {
    let columns = 20;
    let pattern = vec!["A | B"; columns].join(", ");
    let types = vec!["T"; columns].join(", ");
    let text = format!(
        "type T = A | B | C(i32)
        fn f(t: ({types}), k: i32) -> i32 {{
          match t {{ ({pattern}) if k > 0 => 1, ({pattern}) if k < 0 => 2, _ => 3 }}
        }}
        fn main(t: ({types}), k: i32) -> i32 {{ f(t, k) }}"
    );
    // Compiled or refused: what counts is that it ends soon.
    let started = std::time::Instant::now();
    let _ = support::compile("wide.coh", &text, &Default::default(), &Default::default());
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    let wide = (0..101)
        .map(|k| k.to_string())
        .collect::<Vec<_>>()
        .join(" | ");
    let text = format!("fn main(k: i32) -> i32 {{ match k {{ {wide} => 1, _ => 2 }} }}");
    let errors = support::compile("wide.coh", &text, &Default::default(), &Default::default())
        .expect_err("there are too many alternatives");
    assert!(errors.contains("E0105"), "{errors}");
}
