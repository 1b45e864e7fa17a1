"""What the benchmarks share: running a program, the machine's peak, medians and tables."""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# NumPy reads this as it is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# A program is compiled for each run, as its time is one of the figures.
os.environ["COHORT_CACHE"] = ""

import numpy  # noqa: E402
import torch  # noqa: E402

from tables import geometric_mean, markdown, number, ratio, read_lines, share  # noqa: E402, F401

torch.set_num_threads(1)

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


# A program that takes longer than this for its inputs is as good as refused.
LONGEST = 120


class Refused(Exception):
    """A command ended with an error, or did not end; the message is what it said."""


def run(command):
    """Runs a command on one thread and returns what it prints."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(
            command, env=ONE_THREAD, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"longer than {LONGEST} s") from None
    if done.returncode != 0:
        said = done.stderr.strip() or f"{command[0]} ended with {done.returncode}"
        raise Refused(said.splitlines()[0])
    return done.stdout


def complaint(command):
    """What a command that is wrong on purpose says about it."""
    return subprocess.run([str(part) for part in command], capture_output=True, text=True).stderr


def values_of(options, flag):
    """The values that an option of batch-run takes, which it lists when given none of them."""
    said = complaint([options.batch_run, "-", f"--{flag}", "?"])
    return re.search(r"\[possible values: ([^\]]+)\]", said)[1].split(", ")


def run_program(
    options, data, name, repetitions, *arguments, output=os.devnull, program=None, threads=1
):
    """One turn of the compiled program of a model on the data in a folder: its statistics."""
    program = program or ROOT / "examples" / name / f"{name}.coh"
    weights = data / f"{name}.safetensors"
    with tempfile.NamedTemporaryFile(suffix=".json") as stats:
        command = [options.batch_run, program, *(("--weights", weights) if weights.exists() else ())]
        command += ["--input", data / f"{name}.jsonl", "--output", output, "--quiet"]
        command += ["--threads", threads, "--stats", stats.name]
        command += ["--benchmark-repetitions", repetitions]
        run([*command, *arguments])
        return json.loads(Path(stats.name).read_text(encoding="utf-8"))


def seconds_of(turns):
    """The median seconds of a pass over all instances, recording and execution, over turns."""
    return statistics.median(
        repetition["record_seconds"] + repetition["execute_seconds"]
        for stats in turns
        for repetition in stats["repetitions"]
    )


def least_seconds_of(turns):
    """The seconds of the fastest pass over all instances, which other programs disturb least."""
    return min(
        repetition["record_seconds"] + repetition["execute_seconds"]
        for stats in turns
        for repetition in stats["repetitions"]
    )


def flops_of(stats):
    """Floating-point operations of the products in one pass, two a multiply-add.

    Equal calls are computed once, so this can be less than the model's own count.
    """
    return sum(kernel["flops"] for kernel in stats["kernels"])


def measure_peak(size=1536, repetitions=4):
    """The best GFLOP/s of a square float32 product on one thread, in PyTorch or in NumPy.

    Their libraries, MKL and OpenBLAS, do not favour the same processors.
    """
    a, b = numpy.ones((2, size, size), numpy.float32)
    tensors = torch.from_numpy(a), torch.from_numpy(b)
    best = float("inf")
    for product in [lambda: a @ b, lambda: torch.mm(*tensors)] * repetitions:
        began = time.perf_counter()
        product()
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best / 1e9


def make_data(options, models, size, instances):
    """The folder with weights and inputs of some models, D = H = size; made where it is missing."""
    folder = options.data / f"{size}-{instances}"
    missing = [name for name in models if not (folder / f"{name}.jsonl").exists()]
    if missing:
        command = [sys.executable, ROOT / "bench" / "make_models.py", folder, "--size", size]
        run([*command, "--instances", instances, "--models", *missing])
    return folder


def plotter(name):
    """Pyplot for a figure of that name, which comes out the same from the same figures."""
    # Needed for drawing alone.
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = name
    from matplotlib import pyplot

    return pyplot
