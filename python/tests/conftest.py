"""Programs that the tests compile, and how `batch-run` sees their instances."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

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


@pytest.fixture
def interrupt():
    """Runs a script, interrupts it a second after it has written `begun`, and gives what it wrote then."""

    def interrupt_(script):
        # What runs the tests in the background may ignore interrupts, and those whom it starts would, too.
        script = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{script}"
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "begun\n"
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            output = process.communicate(timeout=30)[0]
        finally:
            process.kill()
        assert process.returncode == 0
        return output

    return interrupt_


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
