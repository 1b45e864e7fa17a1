#!/usr/bin/env python3
"""Measures everything that docs/benchmarks.md reports, on one thread.

    .venv/bin/python bench/run.py [--parts treelstm control …] [--models act …] [--quick]

Writes docs/benchmarks.md and docs/figures/ if all parts are measured in full, and always
bench/results/<part>.json and a page of what was measured, bench/results/benchmarks.md.
`--quick` measures little, in about two minutes, to see that everything runs.
"""

import argparse
import json
import platform
import re
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import ablation
import analysis
import control
import costs
import ragged
import training
import treelstm
from common import RESULTS, ROOT
from make_models import MODELS

PAGE = ROOT / "docs" / "benchmarks.md"
PARTS = {
    "treelstm": ("TreeLSTM", treelstm),
    "control": ("Control flow that depends on tensors", control),
    "ablation": ("Each technique switched off", ablation),
    "analysis": ("Granularities and schedulers: what analysis costs, and what it buys", analysis),
    "ragged": ("Tensors of differing lengths", ragged),
    "training": ("Training", training),
    "costs": ("A recorded call and a suspension", costs),
}


def describe_machine():
    """The processor, its widest vectors and the peers' version, in a sentence."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    name = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    vectors = "AVX-512" if "avx512f" in info else "AVX2" if "avx2" in info else "no AVX2"
    cpu = name[1] if name else platform.machine()
    return f"Processor: {cpu} with {vectors}, one thread where nothing else is said. PyTorch {version('torch').split('+')[0]}."


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--models", nargs="+", choices=MODELS, help="only these, where it applies")
    parser.add_argument("--turns", type=int, default=3, help="of each side")
    parser.add_argument("--repetitions", type=int, default=3, help="passes over the inputs a turn")
    parser.add_argument("--instances", type=int, default=1024, help="of each model")
    parser.add_argument("--quick", action="store_true", help="one turn over a few instances")
    parser.add_argument("--batch-run", type=Path, default=ROOT / "target/release/batch-run")
    options = parser.parse_args()
    options.batch_opt = options.batch_run.with_name("batch-opt")
    options.examples = options.batch_run.parent / "examples"
    # Where the fastest pass counts, one more pass tells more than compiling once more.
    options.few_turns, options.more_repetitions = min(2, options.turns), 2 * options.repetitions
    if options.quick:
        options.few_turns, options.more_repetitions = 1, 2
        options.turns, options.repetitions, options.instances = 1, 1, 256
    return options


def main():
    options = parse_options()
    if not options.batch_run.exists():
        sys.exit(f"{options.batch_run} is missing: build it first (make build)")
    RESULTS.mkdir(parents=True, exist_ok=True)
    page = [
        f"# Benchmarks\n\nWritten by `make bench`. {describe_machine()}\n"
        "Everything is f32. Sides of a comparison take turns in one run, and figures are medians over the\n"
        f"turns (this run: --turns {options.turns} --repetitions {options.repetitions}): on a noisy machine only the ratios carry over.\n"
    ]
    figures = None
    with tempfile.TemporaryDirectory() as data:
        options.data = Path(data)
        for name in options.parts:
            title, part = PARTS[name]
            began = time.perf_counter()
            figures = part.measure(options)
            (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
            text = f"## {title}\n\n{part.report(figures)}"
            print(f"{text}\n({time.perf_counter() - began:.0f} s)\n", flush=True)
            page.append(text)
            if hasattr(part, "plot"):
                part.plot(figures, RESULTS / part.FIGURE.name)
    text = "\n".join(page)
    (RESULTS / PAGE.name).write_text(text)
    if options.parts == list(PARTS) and not options.quick and not options.models:
        PAGE.write_text(text)
        for _, part in PARTS.values():
            if hasattr(part, "plot"):
                part.FIGURE.parent.mkdir(parents=True, exist_ok=True)
                part.FIGURE.write_bytes((RESULTS / part.FIGURE.name).read_bytes())


if __name__ == "__main__":
    main()
