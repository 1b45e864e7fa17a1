//! The grammar takes every program there is, and tells an editor what its words are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tree_sitter::{Node, Parser, Query, QueryCursor, StreamingIterator, Tree};

fn parse(text: &str) -> Tree {
    let mut parser = Parser::new();
    let language = tree_sitter_cohort::LANGUAGE.into();
    parser
        .set_language(&language)
        .expect("a grammar of a known form");
    parser.parse(text, None).expect("a parser with a language")
}

/// The first node that is wrong or missing.
fn wrong(node: Node<'_>) -> Option<String> {
    if node.is_error() || node.is_missing() {
        let place = node.start_position();
        return Some(format!("{}:{}: {node}", place.row + 1, place.column + 1));
    }
    let mut cursor = node.walk();
    node.children(&mut cursor).find_map(wrong)
}

#[test]
fn every_program_is_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for pattern in [
        "examples/*/*.coh",
        "bench/programs/*.coh",
        "docs/*.coh",
        "frontend/prelude/*.coh",
        "frontend/tests/it/corpus/*.coh",
    ] {
        let pattern = root.join(pattern);
        let paths = glob::glob(&pattern.to_string_lossy()).expect("a pattern");
        let paths: Vec<PathBuf> = paths.map(|path| path.expect("a path")).collect();
        assert!(!paths.is_empty(), "{}", pattern.display());
        for path in paths {
            let text = fs::read_to_string(&path).expect("a text");
            if let Some(problem) = wrong(parse(&text).root_node()) {
                panic!("{}:{problem}", path.display());
            }
            count += 1;
        }
    }
    assert!(count > 20, "{count} programs");
}

#[test]
fn a_mistake_is_an_error_and_leaves_the_items_behind_it_whole() {
    let tree = parse("fn f(x: f32[) -> i32 { x }\nfn g(y: i32) -> i32 { y }\n");
    assert!(wrong(tree.root_node()).is_some());
    let root = tree.root_node();
    let last = root.child(root.child_count() as u32 - 1).expect("an item");
    assert_eq!((last.kind(), wrong(last)), ("function", None), "{root}");
}

/// What each word of a text is shown as; where several patterns match, the last of them counts.
fn shown(text: &str) -> BTreeMap<String, String> {
    let query = Query::new(
        &tree_sitter_cohort::LANGUAGE.into(),
        tree_sitter_cohort::HIGHLIGHTS,
    );
    let query = query.expect("the query fits the grammar");
    let tree = parse(text);
    assert_eq!(wrong(tree.root_node()), None, "{text}");
    let mut cursor = QueryCursor::new();
    let mut last: BTreeMap<(usize, usize), (usize, u32)> = BTreeMap::new();
    let mut matches = cursor.matches(&query, tree.root_node(), text.as_bytes());
    while let Some(found) = matches.next() {
        for capture in found.captures {
            let range = capture.node.byte_range();
            let best = last.entry((range.start, range.end)).or_default();
            *best = (*best).max((found.pattern_index, capture.index));
        }
    }
    let name = |index: u32| query.capture_names()[index as usize].to_owned();
    let word = |(start, end): (usize, usize)| text[start..end].to_owned();
    (last
        .into_iter()
        .map(|(range, (_, index))| (word(range), name(index))))
    .collect()
}

#[test]
fn words_are_what_they_mean() {
    let shown = shown(
        "dim H // sizes
        param w: f32[H, 4] from \"a.b\".T
        type Tree = Leaf(i32) | Node(left: Tree, right: Tree)
        fn state(t: Tree) -> f32[H] {
          match t {
            Leaf(k) if k > 0 => gather(w, [k])[0, 1..],
            Node(left = l) => state(l) * 1.5e-3,
            _ => for x in xs with (h = true) { h }
          }
        }",
    );
    for (word, expected) in [
        ("dim", "keyword"),
        ("from", "keyword"),
        ("match", "keyword.control.conditional"),
        ("with", "keyword.control.repeat"),
        ("// sizes", "comment"),
        ("H", "constant"),
        ("f32", "type.builtin"),
        ("i32", "type.builtin"),
        ("Tree", "type"),
        ("Leaf", "constructor"),
        ("state", "function"),
        ("gather", "function"),
        ("left", "variable.other.member"),
        ("1.5e-3", "constant.numeric.float"),
        ("true", "constant.builtin.boolean"),
        ("\"a.b\"", "string"),
        ("=>", "operator"),
    ] {
        assert_eq!(
            shown.get(word).map(String::as_str),
            Some(expected),
            "{word}"
        );
    }
}
