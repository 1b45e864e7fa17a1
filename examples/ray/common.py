"""The model of both examples, which thinks longer about some inputs than about others."""

import json
import os
import pathlib
import tempfile

import cohort

EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "act"
WEIGHTS = str(EXAMPLE / "weights.safetensors")


def artifact() -> str:
    """Compiles the model where there is a compiler; other machines only load what it makes."""
    path = os.path.join(tempfile.mkdtemp(), "act.cohort")
    cohort.compile(EXAMPLE / "act.coh", WEIGHTS).save(path)
    return path


def instances() -> list[dict]:
    with open(EXAMPLE / "input.jsonl") as file:
        return [json.loads(line) for line in file]
