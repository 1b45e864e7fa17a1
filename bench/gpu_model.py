#!/usr/bin/env python3
"""Predicts what batches take on an H200, of which none was at hand, and compares a card's first run with that.

    .venv/bin/python bench/gpu_model.py [--cases treelstm-256-64-f32 …]
    python3 bench/gpu_model.py --measured FILE --case treelstm-256-64-f32

The first counts launches on the simulator (`batch-run --device gpu-sim`), reads plans and machine code (gpu_plan.py),
predicts from these (gpu_predict.py, by the model of gpu_card.py), and writes bench/gpu_model.json and the tables of
docs/gpu-time.md. It needs the built tools and NVIDIA's assembler and disassembler (`make setup`), and no card. The
second needs Python only; FILE is what `batch-run --device cuda --stats` wrote, or bench/gpu.py as gpu.json, for the
same instances in batches of the same size.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import gpu
import gpu_card
import gpu_kit
import gpu_plan
from gpu_card import H200
from gpu_predict import predict, read_counts
from tables import markdown, number, ratio, replace_section, share

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "gpu-time.md"
FIGURES = ROOT / "bench" / "gpu_model.json"
SECTION = "gpu-time"
# The card's, with what it has and no later one.
ARCHITECTURE = "sm_90a"
# What bench/gpu_ceilings.py measures of the card.
CEILINGS = [("next_launch", "queued_launch_seconds"), ("f32", "multiply_add_flops"), ("memory_rate", "copy_bytes")]
# Assumptions that are shaken, each alone, to half a rate or twice a cost.
WORSE = {"l2_rate": 0.5, "l2_latency": 2, "shared_latency": 2, "once_cycles": 2, "grid_barrier": 2, "next_launch": 2}
WORSE |= {"cluster_barrier": 2, "copy_rate": 0.5, "mma_share": 0.5, "group_share": 0.5}
# Program dims that a size binds; those of embeddings are as make_models.py draws them.
DIMS = {
    "treelstm": lambda size: {"V": 6000, "D": size, "H": size, "C": 5},
    "treegru": lambda size: {"V": 6000, "D": size, "H": size, "C": 5},
    "nestedrnn": lambda size: {"V": 6000, "H": size, "C": 5},
    "act": lambda size: {"D": size, "H": size, "C": 5},
    "ponder": lambda size: {"H": size},
    "berxit": lambda size: {"D": size, "C": 5},
    "encoder": lambda size: {"L": 1, "D": size, "F": 4 * size},
}


@dataclass(frozen=True)
class Case:
    """A program of a size over instances in batches, as bench/gpu_kit.py makes them.

    Launches are counted at a smaller size where they follow from the instances alone.
    """

    model: str
    size: int
    batch: int
    precision: str
    instances: int
    counted: int
    inputs: str = ""  # The kernel that takes the instances' own rows, which are as wide as the size.
    decides: bool = False  # Whether instances wait for what the card computes.

    @property
    def name(self):
        return f"{self.model}-{self.size}-{self.batch}-{self.precision}"


# At 512 weights do not fit clusters, so launches follow from the instances.
CASES = [
    Case("treelstm", size, batch, "f32", gpu_kit.INSTANCES, counted)
    for size, counted in ((256, 256), (512, 16))
    for batch in (64, 512)
]
CASES.append(Case("treegru", 256, 64, "f32", gpu_kit.INSTANCES, 256))
CASES += [Case(model, 256, 64, "f32", 512, 256, decides=True) for model in ("act", "ponder", "berxit", "nestedrnn")]
CASES += [
    Case("encoder", 512, 512, precision, gpu_kit.ENCODER_INSTANCES, 64, "main_0")
    for precision in ("f32", "tf32", "bf16")
]


# --- What is known without a card ------------------------------------------------------------------


def run(*command):
    """What a command prints, on both of its outputs."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout + done.stderr


def program_of(case, folder):
    """The program of a case, with as many heads as the benchmark's."""
    source = (ROOT / "examples" / case.model / f"{case.model}.coh").read_text(encoding="utf-8")
    path = folder / f"{case.model}.coh"
    path.write_text(source.replace("let heads = 4", f"let heads = {gpu_kit.HEADS}"), encoding="utf-8")
    return path


def count(options, case, folder, *without):
    """Launches of all instances of a case, on the simulator."""
    gpu_kit.make_inputs(folder, case.model, case.counted, case.instances)
    if not (folder / "input.jsonl").exists():
        gpu.write_sequences(folder)
    stats, profile = folder / "stats.json", folder / "profile.json"
    command = [options.batch_run, program_of(case, folder), "--weights", folder / "weights.safetensors"]
    command += ["--input", folder / "input.jsonl", "--output", os.devnull, "--quiet", "--device", "gpu-sim"]
    command += ["--batch", case.batch, "--stats", stats, "--profile", profile]
    run(*command, "--max-memory", 1 << 34, *without)
    found = read_counts(json.loads(stats.read_text()), json.loads(profile.read_text()))
    # Weights are sent once, when they are loaded.
    found.copied = max(0, found.copied - (folder / "weights.safetensors").stat().st_size)
    return found


def compile_case(options, case, folder):
    """The plans of a case's kernels, and the code of their functions."""
    program = program_of(case, folder)
    dims = [part for name, size in DIMS[case.model](case.size).items() for part in ("--dim", f"{name}={size}")]
    common = [options.batch_opt, program, *dims, f"--gpu-arch={ARCHITECTURE}", f"--precision={case.precision}"]
    loops = folder / "loops.mlir"
    run(*common, "--emit=loops", "-o", loops)
    level3, ptx, cubin = folder / "level3.mlir", folder / "code.ptx", folder / "code.cubin"
    run(options.batch_opt, loops, "--lower-kernels-to-gpu", "--persistence", "-o", level3)
    text = level3.read_text(encoding="utf-8")
    shared = gpu_plan.read_shared(text)
    # Functions that are run in flushes only are looked at by themselves as well.
    level3.write_text(re.sub(r"cfb\.only_in_flush(, )?", "", text), encoding="utf-8")
    run(options.batch_opt, level3, f"--gpu-arch={ARCHITECTURE}", "--emit=ptx", "-o", ptx)
    log = run(tool("ptxas"), f"-arch={ARCHITECTURE}", "-O3", "-v", ptx, "-o", cubin)
    kernels = gpu_plan.read_kernels(loops.read_text(encoding="utf-8"))
    launches = [launch for kernel in kernels.values() for launch in kernel.launches]
    return kernels, gpu_plan.read_codes(run(tool("nvdisasm"), "-c", cubin), log, launches, shared)


def predict_case(case, kernels, codes, counts, waiting):
    """The prediction of a case, and how many times as long it takes on the card with each assumption that is worse; where
    instances decide, what it is if they wait for each decision, too."""
    found = predict(H200, case, kernels, codes, counts)
    if waiting:
        found["waiting"] = predict(H200, case, kernels, codes, waiting)
    worse = found["worse"] = {}
    for fact, times in WORSE.items():
        card = SimpleNamespace(**vars(H200) | {fact: times * getattr(H200, fact)})
        seconds = predict(card, case, kernels, codes, counts)["stats"]["device"]["seconds"]
        worse[fact] = seconds / found["stats"]["device"]["seconds"]
    return found


def tool(name):
    """One of NVIDIA's tools."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:{ROOT / '.tools' / 'bin'}")
    return path or sys.exit(f"there is no {name}: `make setup` installs it")


# --- The page, and the comparison ----------------------------------------------------------------


def facts_table():
    """What the model takes a card to be."""
    lines = ["| | is | what it is | from |", "|---|---:|---|---|"]
    for name, (value, unit, what, source) in gpu_card.FACTS.items():
        lines.append(f"| `{name}` | {value:g} {unit} | {what} | {source} |".replace("  |", " |"))
    return "\n".join(lines) + "\n"


def case_of(name):
    """A case's parts: model, size, batch, precision."""
    return name.rsplit("-", 3)


def predictions_table(cases):
    """A row for each case, in microseconds a batch."""
    lines = []
    for name, case in cases.items():
        us = 1e6 / case["batches"]
        stats, seconds = case["stats"], case["stats"]["device"]["seconds"]
        kernels = sum(kernel["seconds"] for kernel in stats["kernels"])
        flops = sum(kernel["flops"] for kernel in stats["kernels"])
        device = stats["device"]
        lines.append(
            [f"`{name}`", number(device["launches"] / case["batches"], 1), number(device["steps"] / case["batches"], 1)]
            + [number(us * seconds), number(us * case["bound_seconds"]), ratio(seconds / case["bound_seconds"])]
            + [number(us * case["plain_seconds"]), share(flops / kernels / getattr(H200, case_of(name)[3]))]
            + [number(us * stats["host_seconds"])]
        )
    heads = ["case", "launches", "steps", "on the card", "bound", "over it", "launch by launch", "of peak", "host"]
    return markdown(heads, lines)


def reasons_table(cases):
    """What takes the time on the card, in microseconds a batch."""
    totals = Counter()
    for case in cases.values():
        totals.update({reason: seconds / case["batches"] for reason, seconds in case["reasons"].items()})
    reasons = [reason for reason, _ in totals.most_common()]
    lines = [
        [f"`{name}`", *(number(1e6 * case["reasons"].get(reason, 0) / case["batches"], 1) for reason in reasons)]
        for name, case in cases.items()
    ]
    return markdown(["case", *reasons], lines)


def whole(case):
    """Seconds of a case where host and card wait for each other."""
    return case["stats"]["device"]["seconds"] + case["stats"]["host_seconds"] + case["fetch_seconds"]


def deciding_table(cases):
    """Where instances decide: what a batch takes if they wait for each decision, and if they guess."""
    lines = []
    for name, case in cases.items():
        for what, of in (("waits", case.get("waiting")), ("guesses", case if "waiting" in case else None)):
            if of:
                us = 1e6 / case["batches"]
                stats = of["stats"]
                rows = sum(kernel["rows"] for kernel in stats["kernels"])
                lines.append(
                    [f"`{name}`", what, number(stats["flushes"] / case["batches"], 1)]
                    + [number(stats["device"]["steps"] / case["batches"], 1), number(rows / case["batches"])]
                    + [number(us * stats["device"]["seconds"]), number(us * stats["host_seconds"])]
                    + [number(us * of["fetch_seconds"]), number(us * whole(of)), ratio(whole(case["waiting"]) / whole(of))]
                )
    heads = ["case", "an instance", "flushes", "steps", "rows", "on the card", "host", "fetching", "together", "as fast"]
    return markdown(heads, lines)


def worse_table(cases):
    """How many times as long a batch takes on the card where one of the assumptions is half as good."""
    lines = [[f"`{name}`", *map(ratio, case["worse"].values())] for name, case in cases.items()]
    return markdown(["case", *(f"`{fact}`" for fact in WORSE)], lines)


def kernels_table(cases):
    """Each kernel's seconds of `--device-times`, in microseconds a batch."""
    lines = []
    for name, case in cases.items():
        for kernel in case["stats"]["kernels"]:
            per_launch = kernel["rows"] / kernel["launches"]
            us = 1e6 * kernel["seconds"]
            rate = kernel["flops"] / kernel["seconds"] / 1e12
            lines.append(
                [f"`{name}`", f"`{kernel['name']}`", number(kernel["launches"] / case["batches"], 1)]
                + [number(per_launch, 1), number(us / case["batches"], 1)]
                + [number(us / kernel["launches"], 1), number(rate, 1)]
            )
    heads = ["case", "kernel", "launches", "rows of one", "µs a batch", "µs a launch", "TFLOP/s"]
    return markdown(heads, lines)


def section(cases):
    """The part of the page that is written."""
    return (
        f"### The card\n\n{facts_table()}\n### Batches\n\n{predictions_table(cases)}\n"
        f"### Where tensors decide\n\n{deciding_table(cases)}\n"
        f"### What takes the time\n\n{reasons_table(cases)}\n### Where one assumption is half as good\n\n"
        f"{worse_table(cases)}\n### Kernels\n\n{kernels_table(cases)}"
    )


def runs_of(figures, name):
    """The runs of a case, as `--stats` tells of them: one that wrote it, or two of what bench/gpu.py wrote."""
    if "ceilings" not in figures:
        return [figures]
    model, size, batch, _ = case_of(name)
    for row in figures["rows"]:
        if (row["model"], str(row["size"]), str(row["batch"])) == (model, size, batch) and "ours" in row:
            run = row["ours"] | {"kernel_launches": row["ours"]["calls"]}
            return [run, run | {"device": run["timed_device"]}]
    raise ValueError(f"there is no {name} in it")


def compared(case, stats):
    """What is compared of a run, predicted and measured: kernels where they were timed, else the whole."""
    predicted, device = case["stats"], stats["device"]
    for what in ("instances", "kernel_launches"):
        if stats[what] != predicted[what]:
            raise ValueError(f"another run: {stats[what]} {what}, where {predicted[what]} were counted")
    if device.get("list_seconds") is not None:
        measured = {kernel["name"]: kernel["seconds"] for kernel in stats["kernels"]}
        kernels = [(kernel["name"], kernel["seconds"]) for kernel in predicted["kernels"]]
        return [(f"`{name}`, ms", 1e3 * seconds, 1e3 * measured[name]) for name, seconds in kernels]
    host = stats["record_seconds"] + stats["schedule_seconds"]
    return [
        ("`device.seconds`, ms", 1e3 * predicted["device"]["seconds"], 1e3 * device["seconds"]),
        ("`device.launches`", predicted["device"]["launches"], device["launches"]),
        ("`device.steps`", predicted["device"]["steps"], device["steps"]),
        ("`record_seconds` and `schedule_seconds`, ms", 1e3 * predicted["host_seconds"], 1e3 * host),
    ]


def comparison(case, name, figures):
    """A table of what was predicted and measured, and how many times as large that is."""
    rows = [row for run in runs_of(figures, name) for row in compared(case, run)]
    ceilings = figures.get("ceilings", {})
    for fact, found in CEILINGS if ceilings else ():
        value, unit, *_ = gpu_card.FACTS[fact]
        rows.append((f"`{fact}`, {unit}", value, ceilings[found]))
    lines = [[what, f"{was:.4g}", f"{took:.4g}", ratio(took / was) if was else "-"] for what, was, took in rows]
    return markdown(["", "predicted", "measured", "times"], lines)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [case.name for case in CASES]
    parser.add_argument("--cases", nargs="+", choices=names, default=names, help="only these, and no page")
    parser.add_argument("--measured", type=Path, help="what `--stats` or bench/gpu.py wrote on a card")
    parser.add_argument("--case", choices=names, help="what ran there")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--batch-opt", type=Path, default=target / "batch-opt")
    parser.add_argument("--batch-run", type=Path, default=target / "batch-run")
    options = parser.parse_args()
    if options.measured and not options.case:
        parser.error("--measured needs --case")
    return options


def main():
    options = parse_options()
    if options.measured:
        case = json.loads(FIGURES.read_text(encoding="utf-8"))[options.case]
        figures = json.loads(options.measured.read_text(encoding="utf-8"))
        try:
            return print(comparison(case, options.case, figures), end="")
        except ValueError as why:
            sys.exit(f"{options.measured}: {why}")
    counts, waiting, cases = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if case.name not in options.cases:
                continue
            run_of = (case.model, case.counted, case.batch)
            if run_of not in counts:
                data = Path(folder) / "-".join(map(str, run_of))
                data.mkdir()
                counts[run_of] = count(options, case, data)
                if case.decides:
                    waiting[run_of] = count(options, case, data, "--without", "speculation")
            found = (*compile_case(options, case, Path(folder)), counts[run_of], waiting.get(run_of))
            cases[case.name] = predict_case(case, *found)
    if len(cases) < len(CASES):
        return print(section(cases), end="")
    FIGURES.write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_section(text, SECTION, section(cases)), encoding="utf-8")


if __name__ == "__main__":
    main()
