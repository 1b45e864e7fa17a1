#!/usr/bin/env bash
# The grammars for editors know every word of the language, and their files are what editors read.
set -uo pipefail
cd "$(dirname "$0")/.."

python3 - <<'PYTHON'
import json, pathlib, re, sys, tomllib

folder = pathlib.Path("editors/vscode")
grammar = json.loads((folder / "syntaxes/cohort.tmLanguage.json").read_text())
package = json.loads((folder / "package.json").read_text())
json.loads((folder / "language-configuration.json").read_text())
lexer = pathlib.Path("frontend/src/syntax/lexer.rs").read_text()
words = re.findall(r'#\[token\("([a-z]+)"\)\]', lexer)

# What each rule calls a line's parts; the first rule that matches earliest counts, as in an editor.
def scopes(line):
    at, found = 0, {}
    while at < len(line):
        matches = [(m.start(), i, m, rule) for i, rule in enumerate(grammar["patterns"]) if (m := re.compile(rule["match"]).search(line, at))]
        if not matches:
            break
        _, _, match, rule = min(matches, key=lambda one: one[:2])
        for group, capture in rule.get("captures", {"0": rule}).items():
            found[match[int(group)]] = capture["name"]
        at = max(match.end(), at + 1)
    return found

failed = []
def check(line, word, expected):
    if expected not in (got := scopes(line).get(word, "nothing")):
        failed.append(f"{word!r} in {line!r} is {got}, not {expected}")

if len(words) < 14:
    failed.append("the words of the lexer are not found")
for word in words:
    check(f" {word} (", word, "constant.language" if word in ("true", "false") else "keyword")
check('param w: f32[D] from "a.b".T', "from", "keyword")
check("fn cell(t: Tree) -> f32[H] {", "cell", "entity.name.function")
check("fn cell(t: Tree) -> f32[H] {", "Tree", "entity.name.type")
check("fn cell(t: Tree) -> f32[H] {", "f32", "support.type")
check("  f32(k) + 1.0e-5", "1.0e-5", "constant.numeric")
check("  x // let y", "// let y", "comment")
check('import "a // b.coh"', '"a // b.coh"', "string")
for entry in package["contributes"]["grammars"] + [{"path": package["main"]}]:
    if not (folder / entry["path"]).exists():
        failed.append(f"there is no {entry['path']}")
tree = pathlib.Path("editors/tree-sitter-cohort")
rules, query, parser = ((tree / name).read_text() for name in ("grammar.js", "queries/highlights.scm", "src/parser.c"))
for word in words:
    if f"'{word}'" not in rules:
        failed.append(f"{word!r} is not in the grammar for tree-sitter")
    # What is made of the grammar has it too: who changes the one makes the other anew.
    if f'"{word}"' not in parser:
        failed.append(f"{word!r} is not in the parser for tree-sitter: run `tree-sitter generate`")
    if word not in ("true", "false", "phase") and f'"{word}"' not in query:
        failed.append(f"{word!r} has no highlight for tree-sitter")
helix = tomllib.loads(pathlib.Path("editors/helix/languages.toml").read_text())
if [helix[kind][0]["name"] for kind in ("language", "grammar")] != ["cohort", "cohort"]:
    failed.append("Helix has a language and its grammar")
if json.loads((tree / "tree-sitter.json").read_text())["grammars"][0]["name"] != "cohort":
    failed.append("the grammar for tree-sitter has another name")
print(*failed, sep="\n", end="\n" if failed else "")
print(f"{1 - bool(failed)} passed, {int(bool(failed))} failed")
sys.exit(bool(failed))
PYTHON
