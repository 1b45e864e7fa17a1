//! The server as an editor sees it: a process that is spoken to over pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

struct Editor {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: i64,
}

impl Editor {
    fn start() -> Editor {
        let mut process = Command::new(env!("CARGO_BIN_EXE_cohort-lsp"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let to = process.stdin.take().expect("stdin is a pipe");
        let from = BufReader::new(process.stdout.take().expect("stdout is a pipe"));
        let mut editor = Editor {
            process,
            to,
            from,
            next: 0,
        };
        editor.request("initialize", json!({"capabilities": {}}));
        editor.tell("initialized", json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn take(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.from.read_line(&mut line).expect("the server writes");
            match line.trim().split_once(": ") {
                Some(("Content-Length", number)) => length = number.parse().expect("a number"),
                _ => break,
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).expect("the server writes");
        serde_json::from_slice(&body).expect("messages are JSON")
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.take();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Gives a text and takes what the server says of it.
    fn open(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({"uri": uri, "languageId": "cohort", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
        self.diagnostics(uri)
    }

    fn change(&mut self, uri: &str, text: &str) -> Vec<Value> {
        let document = json!({"uri": uri, "version": 2});
        let params = json!({"textDocument": document, "contentChanges": [{"text": text}]});
        self.tell("textDocument/didChange", params);
        self.diagnostics(uri)
    }

    fn diagnostics(&mut self, uri: &str) -> Vec<Value> {
        let message = self.take();
        assert_eq!(message["method"], "textDocument/publishDiagnostics");
        assert_eq!(message["params"]["uri"], uri);
        message["params"]["diagnostics"]
            .as_array()
            .expect("a list")
            .clone()
    }

    /// What a request says of the first place of `what` in the text, some bytes further.
    fn at(&mut self, method: &str, uri: &str, text: &str, what: &str, further: usize) -> Value {
        let place = text.find(what).expect("it is in the text") + further;
        let line = text[..place].matches('\n').count();
        let character = place - text[..place].rfind('\n').map_or(0, |end| end + 1);
        let position = json!({"line": line, "character": character});
        let params = json!({"textDocument": {"uri": uri}, "position": position});
        self.request(&format!("textDocument/{method}"), params)["result"].clone()
    }

    fn end(mut self) {
        self.request("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        assert!(self.process.wait().expect("the server ends").success());
    }
}

const TEXT: &str = "dim V, H
param emb: f32[V, H]
param w: f32[H, H]

type Tree = Leaf(i32) | Node(left: Tree, right: Tree)

fn state(t: Tree) -> f32[H] {
  match t {
    Leaf(word) => emb[word],
    Node(l, r) => { let sum = state(l) + state(r); tanh(sum @ w) }
  }
}

fn main(t: Tree, x: f32[n, H]) -> f32[n, H] { let s = state(t); x @ w + s }
";
const URI: &str = "file:///nowhere/model.coh";

#[test]
fn values_names_and_types_are_told_by_their_place() {
    let mut editor = Editor::start();
    assert_eq!(editor.open(URI, TEXT), [] as [Value; 0]);
    for (what, further, expected) in [
        ("sum @ w", 0, "sum: f32[H]"),
        ("sum @ w", 4, "f32[H]"),
        ("@ w)", 2, "param w: f32[H, H]"),
        ("x @ w", 0, "x: f32[n, H]"),
        ("x @ w", 2, "f32[n, H]"),
        ("Leaf(word)", 5, "word: i32"),
        ("state(l)", 1, "fn state(t: Tree) -> f32[H]"),
        ("Node(l", 1, "Node(left: Tree, right: Tree) of Tree"),
        (
            "t: Tree, x",
            4,
            "type Tree = Leaf(i32) | Node(left: Tree, right: Tree)",
        ),
        ("[V, H]", 1, "dim V"),
        ("tanh(", 1, "tanh"),
    ] {
        let hover = editor.at("hover", URI, TEXT, what, further);
        let value = hover["contents"]["value"].as_str().unwrap_or_default();
        assert!(value.contains(expected), "{what} + {further}: {hover}");
    }
    assert_eq!(editor.at("hover", URI, TEXT, "\n\nfn main", 0), Value::Null);
    editor.end();
}

#[test]
fn declarations_are_found() {
    let mut editor = Editor::start();
    editor.open(URI, TEXT);
    for (what, further, line, character) in [
        ("sum @ w", 0, 9, 24),
        ("@ w)", 2, 2, 6),
        ("emb[word]", 4, 8, 9),
        ("state(t);", 0, 6, 3),
        ("Node(l", 0, 4, 24),
        ("t: Tree, x", 3, 4, 5),
        ("[V, H]", 4, 0, 7),
    ] {
        let found = editor.at("definition", URI, TEXT, what, further);
        assert_eq!(found["uri"], URI, "{what}");
        let start = json!({"line": line, "character": character});
        assert_eq!(found["range"]["start"], start, "{what}");
    }
    // Nothing of the prelude is in a file.
    assert_eq!(editor.at("definition", URI, TEXT, "tanh", 0), Value::Null);
    editor.end();
}

#[test]
fn mistakes_come_and_go_as_the_text_changes() {
    let mut editor = Editor::start();
    assert!(editor.open(URI, TEXT).is_empty());
    let wrong = TEXT.replace("x @ w + s", "x @ emb + s");
    let found = editor.change(URI, &wrong);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["code"], "E0403");
    assert_eq!(found[0]["severity"], 1);
    assert_eq!(found[0]["range"]["start"]["line"], 13);
    // Meanwhile names are known from before.
    let hover = editor.at("hover", URI, &wrong, "emb + s", 0);
    assert!(
        hover["contents"]["value"]
            .as_str()
            .unwrap_or_default()
            .contains("param emb")
    );
    assert!(editor.change(URI, TEXT).is_empty());
    editor.end();
}

#[test]
fn names_are_completed_also_while_the_text_is_wrong() {
    let labels = |answer: &Value| -> Vec<String> {
        let items = answer.as_array().expect("a list");
        items
            .iter()
            .map(|item| item["label"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let mut editor = Editor::start();
    editor.open("file:///nowhere/new.coh", "fn mai");
    let names = editor.at("completion", "file:///nowhere/new.coh", "fn mai", "mai", 3);
    assert!(labels(&names).contains(&"softmax".to_owned()));
    editor.open(URI, TEXT);
    let broken = TEXT.replace("x @ w + s", "x @ w + st");
    assert!(!editor.change(URI, &broken).is_empty());
    let names = editor.at("completion", URI, &broken, "+ st", 4);
    for name in [
        "state", "Node", "emb", "H", "Tree", "match", "s", "softmax", "attend",
    ] {
        assert!(labels(&names).contains(&name.to_owned()), "{name}");
    }
    editor.end();
}

#[test]
fn imports_are_read_beside_the_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("layers.coh"), "fn twice(x: f32) -> f32 { 2.0 * x }")
        .expect("it is writable");
    let uri = format!("file://{}", path("main.coh").display());
    let text = "import \"layers.coh\"\nfn main(x: f32) -> f32 { twice(x) }";
    let mut editor = Editor::start();
    assert!(editor.open(&uri, text).is_empty());
    let found = editor.at("definition", &uri, text, "twice", 0);
    assert!(
        found["uri"]
            .as_str()
            .unwrap_or_default()
            .ends_with("/layers.coh"),
        "{found}"
    );
    assert_eq!(found["range"]["start"]["character"], 3);
    editor.end();
}

#[test]
fn what_is_not_asked_rightly_is_refused_and_the_server_goes_on() {
    let mut editor = Editor::start();
    let unknown = editor.request("textDocument/rename", json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    let wrong = editor.request("textDocument/hover", json!({"position": "here"}));
    assert_eq!(wrong["error"]["code"], -32602);
    editor.tell("textDocument/didOpen", json!({"textDocument": 3}));
    let nowhere =
        json!({"textDocument": {"uri": "file:///no.coh"}, "position": {"line": 9, "character": 9}});
    assert_eq!(
        editor.request("textDocument/hover", nowhere)["result"],
        Value::Null
    );
    editor.end();
}
