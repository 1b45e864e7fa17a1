"""The tutorial is true: its programs compile, and its Python runs from top to bottom."""

import re

from conftest import ROOT


def test_the_tutorial_runs_from_top_to_bottom(tmp_path, monkeypatch):
    page = (ROOT / "docs/tutorial.md").read_text()
    monkeypatch.chdir(tmp_path)
    names = iter(re.findall(r"[Ss]ave it as `(\w+\.coh)`", page))
    ran = 0
    scope = {}
    for language, text in re.findall(r"```(coh|python)\n(.*?)```", page, re.DOTALL):
        if language == "coh":
            (tmp_path / next(names)).write_text(text)
        else:
            exec(compile(text, f"tutorial.md, block {ran}", "exec"), scope)
            ran += 1
    assert ran >= 8 and next(names, None) is None
