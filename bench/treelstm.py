"""The compiled treelstm program against PyTorch, side by side in one run.

Everything runs on one thread over the trees of SST dev (make_sst.py). For each size and
batch, the program and its peers take turns, so that a machine that speeds up or slows
down does so for all of them; the table shows medians over the turns. The program's time is that
of recording and execution: `cold` when it begins with nothing kept of earlier batches, which is what
is compared, `warm` when it has seen all words. `level` is PyTorch batched by level by hand, `eager`
PyTorch one tree at a time; their trees are linearised inside the time, nobody's files are read inside
it.
"""

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from common import ROOT, flops_of, markdown, measure_peak, number, ratio, run, seconds_of, share

SIZES, BATCHES = (64, 256), (1, 8, 64)
COLUMNS = (
    "H,batch,cold/s,warm/s,level/s,eager/s,vs level,vs eager,GFLOP/s,of peak,rec ns/node,compile s"
)


def run_ours(options, weights, trees, batch, *arguments):
    """One turn of the compiled program: its statistics."""
    with tempfile.NamedTemporaryFile(suffix=".json") as stats:
        command = [options.batch_run, ROOT / "examples" / "treelstm" / "treelstm.coh"]
        command += ["--weights", weights, "--input", trees, "--output", os.devnull, "--quiet"]
        command += ["--batch", batch, "--threads", 1, "--stats", stats.name]
        run([*command, "--benchmark-repetitions", options.repetitions, *arguments])
        return json.loads(Path(stats.name).read_text(encoding="utf-8"))


def run_torch(mode, weights, trees, batch, repetitions):
    """One turn of a peer: its report."""
    command = [sys.executable, ROOT / "bench" / "treelstm_torch.py", "--mode", mode]
    command += ["--weights", weights, "--input", trees, "--batch", batch]
    return json.loads(run([*command, "--threads", 1, "--repeat", repetitions]))


def count_nodes(trees):
    """The numbers of trees, leaves and inner nodes in a JSON Lines file."""
    text = trees.read_text(encoding="utf-8")
    return len(text.splitlines()), text.count('"Leaf"'), text.count('"Node"')


def compare(options, folder, size, batch):
    """Takes turns for one size and batch and returns the figures."""
    weights, trees = folder / f"treelstm-{size}.safetensors", folder / "sst.jsonl"
    counts = count_nodes(trees)
    ours, warm, level, eager, peaks = [], [], [], [], []
    for _ in range(options.turns):
        ours.append(run_ours(options, weights, trees, batch))
        warm.append(run_ours(options, weights, trees, batch, "--benchmark-warm"))
        level += run_torch("level", weights, trees, batch, options.repetitions)["seconds"]
        if batch == 1:
            eager += run_torch("eager", weights, trees, batch, 1)["seconds"]
        peaks.append(measure_peak())

    seconds = seconds_of(ours)
    recording = statistics.median(
        repetition["record_seconds"] for stats in ours for repetition in stats["repetitions"]
    )
    level_seconds = statistics.median(level)
    eager_seconds = statistics.median(eager) if eager else None
    gflops = flops_of(ours[-1]) / seconds / 1e9
    return {
        "H": size,
        "batch": batch,
        "cold/s": counts[0] / seconds,
        "warm/s": counts[0] / seconds_of(warm),
        "level/s": counts[0] / level_seconds,
        "eager/s": eager_seconds and counts[0] / eager_seconds,
        "vs level": level_seconds / seconds,
        "vs eager": eager_seconds and eager_seconds / seconds,
        "GFLOP/s": gflops,
        "peak": max(peaks),
        "rec ns/node": recording / (counts[1] + counts[2]) * 1e9,
        "compile s": statistics.median(stats["compile_seconds"] for stats in ours),
    }


def measure(options):
    """The figures of every size and batch, and of the trees."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run([sys.executable, ROOT / "bench" / "make_sst.py", folder, "--sizes", *SIZES])
        counts = count_nodes(folder / "sst.jsonl")
        batches = BATCHES[-1:] if options.quick else BATCHES
        rows = [compare(options, folder, size, batch) for size in SIZES for batch in batches]
    return {"trees": counts, "rows": rows}


def report(figures):
    """The figures in Markdown."""
    trees, leaves, inner = figures["trees"]

    def cell(column, value):
        if column in ("H", "batch"):
            return value
        if column.startswith("vs"):
            return ratio(value)
        return share(value) if column == "of peak" else number(value)

    peak = max(row["peak"] for row in figures["rows"])
    columns = COLUMNS.split(",")
    rows = [row | {"of peak": row["GFLOP/s"] / peak} for row in figures["rows"]]
    rows = [[cell(column, row[column]) for column in columns] for row in rows]
    return (
        f"Trees a second over {trees:,} trees with {leaves:,} leaves and {inner:,} inner nodes:\n"
        "ours, *cold*, with nothing kept of earlier batches, which is what is compared, and *warm*, with\n"
        "all words seen before; *level*, PyTorch batched by level by hand; *eager*, PyTorch one tree at a\n"
        "time.\n"
        f"The peak is a large product in PyTorch or NumPy, {peak:.0f} GFLOP/s.\n\n"
        + markdown(columns, rows)
    )
