"""Programs that the tests compile, and how `batch-run` sees their instances."""

import json
import os
import pathlib
import subprocess

import pytest

import cohort

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH_RUN = pathlib.Path(os.environ.get("COHORT_BATCH_OPT", ROOT / "target/release/batch-opt")).with_name("batch-run")


@pytest.fixture
def program(tmp_path):
    """Compiles the text of a program."""

    def compile_(text, weights=None, **options):
        path = tmp_path / "program.coh"
        path.write_text(text)
        return cohort.compile(path, weights, **options)

    return compile_


@pytest.fixture(scope="session")
def treelstm():
    folder = ROOT / "examples/treelstm"
    return cohort.compile(folder / "treelstm.coh", folder / "weights.safetensors")


@pytest.fixture(scope="session")
def trees():
    """Instances in their JSON form, and the records of `batch-run`."""
    folder = ROOT / "examples/treelstm"
    lines = (folder / "input.jsonl").read_text().splitlines()
    command = [BATCH_RUN, folder / "treelstm.coh", "--weights", folder / "weights.safetensors", "--quiet"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    return [json.loads(line) for line in lines], [json.loads(line) for line in done.stdout.splitlines()]
