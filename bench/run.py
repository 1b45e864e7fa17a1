#!/usr/bin/env python3
"""Measures everything that docs/benchmarks.md reports, on one thread.

    .venv/bin/python bench/run.py [--parts treelstm control …] [--models act …] [--quick]

Renews the sections of docs/benchmarks.md that are measured in full, and their figures, and writes always
bench/results/<part>.json and a page of what was measured, bench/results/benchmarks.md. `--quick`
measures little, in some minutes, to see that everything runs. The comparison with every model's peers
can be put together from several runs: `--parts peers --models act --sizes 256`, and so on, each of which leaves a
file; `--readme` then writes what these say into README.md and the page.
"""

import argparse
import json
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import ablation
import analysis
import choice
import control
import costs
import growth
import libraries
import peers
import products
import ragged
import readme
import reuse
import threads
import training
import treelstm
from common import RESULTS, ROOT
from make_models import MODELS, MORE
from tables import describe_processor, replace_section

PAGE = ROOT / "docs" / "benchmarks.md"
PARTS = {
    "peers": ("Every model against its peers", peers),
    "treelstm": ("TreeLSTM", treelstm),
    "control": ("Control flow that depends on tensors", control),
    "ablation": ("Each technique switched off", ablation),
    "analysis": ("Granularities and schedulers: what analysis costs, and what it buys", analysis),
    "reuse": ("Schedules reused: what analysis costs, with and without", reuse),
    "choice": ("By default, and as one may ask for it", choice),
    "ragged": ("Tensors of differing lengths", ragged),
    "training": ("Training", training),
    "growth": ("How cost grows", growth),
    "products": ("Products alone", products),
    "threads": ("Two threads", threads),
    "costs": ("A recorded call and a suspension", costs),
}


def describe_machine():
    """The processor, its widest vectors and the peers' version, in a sentence."""
    torch = version("torch").split("+")[0]
    return f"Processor: {describe_processor()}, one thread where nothing else is said. PyTorch {torch}."


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--models", nargs="+", choices=MODELS + MORE, help="only these, where it applies")
    parser.add_argument("--sizes", nargs="+", type=int, help="of the comparisons with peers and of what is chosen, only these")
    parser.add_argument("--batches", nargs="+", type=int, default=list(peers.BATCHES), help="of that comparison")
    parser.add_argument("--resume", action="store_true", help="keep what earlier runs measured of peers and growth")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="leave it to a run with --resume")
    parser.add_argument("--readme", action="store_true", help="write what is there of peers into README.md, and end")
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
        options.turns, options.repetitions, options.instances, options.batches = 1, 1, 256, [8]
    return options


def main():
    options = parse_options()
    if options.readme:
        return readme.write()
    if not options.batch_run.exists():
        sys.exit(f"{options.batch_run} is missing: build it first (make build)")
    libraries.restart_with_wide_vectors()
    RESULTS.mkdir(parents=True, exist_ok=True)
    measured = (
        f"{describe_machine()} --turns {options.turns} --repetitions {options.repetitions}."
    )
    sections = {}
    with tempfile.TemporaryDirectory() as data:
        options.data = Path(data)
        for name in options.parts:
            title, part = PARTS[name]
            began = time.perf_counter()
            figures = part.measure(options)
            (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
            sections[name] = f"## {title}\n\n{measured}\n\n{part.report(figures)}\n"
            print(f"{sections[name]}({time.perf_counter() - began:.0f} s)\n", flush=True)
            if hasattr(part, "plot"):
                part.plot(figures, RESULTS / part.FIGURE.name)
    (RESULTS / PAGE.name).write_text("".join(sections.values()))
    if not (options.quick or options.models or options.sizes):
        renew_page(sections)


def renew_page(sections):
    """Writes the sections that were measured into the page, and their figures beside it."""
    text = PAGE.read_text(encoding="utf-8")
    for name, section in sections.items():
        text = replace_section(text, name, section)
        part = PARTS[name][1]
        if hasattr(part, "plot"):
            part.FIGURE.parent.mkdir(parents=True, exist_ok=True)
            part.FIGURE.write_bytes((RESULTS / part.FIGURE.name).read_bytes())
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
