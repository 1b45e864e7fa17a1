"""One product alone, `x @ w`, against the libraries that do nothing else.

PyTorch computes with MKL, NumPy with OpenBLAS, both with the widest vectors there are (libraries.py); both get the same
rows and the same matrix on one thread. The program's time is that of its kernel, whose matrix was packed when the weights were loaded, which the libraries do
anew at each call. All outputs are compared first.
"""

import json
import tempfile
import time
from pathlib import Path

import numpy
import torch
from safetensors.numpy import save_file

from common import Refused, geometric_mean, markdown, measure_peak, number, ratio, read_lines, run, share

# Powers of two, wide and narrow, and sizes that no tile divides.
SIZES = [(size, size) for size in (128, 256, 512, 1024, 2048)]
SIZES += [(128, 2048), (2048, 128), (256, 1024), (1024, 256)]
SIZES += [(300, 300), (150, 150), (257, 257), (300, 150), (150, 257)]
ROWS = (48, 96, 512)
PROGRAM = """dim K
dim N
param w: f32[K, N]
fn main(x: f32[K]) -> f32[N] {
  x @ w
}
"""
# How far a sum of K terms in another order may be off, relative to the sum of their sizes.
TOLERANCE = 1e-5
# What a library is timed for at least, so that the clock tells.
LEAST_SECONDS = 0.03
# Launches of a pass, and passes, of which the fastest counts.
LAUNCHES, TURNS = 2, 3


def write_instances(path, x):
    """Writes one instance a row."""
    with open(path, "w", encoding="utf-8") as lines:
        for row in x.tolist():
            lines.write(json.dumps({"x": row}) + "\n")


def run_ours(options, folder, rows, output):
    """The seconds of a launch of `rows` rows, on average over the last pass."""
    stats = folder / "stats.json"
    command = [options.batch_run, folder / "product.coh", "--weights", folder / "w.safetensors"]
    command += ["--input", folder / "x.jsonl", "--output", output, "--quiet", "--threads", 1]
    command += ["--batch", rows, "--max-memory", 1 << 34, "--stats", stats]
    run([*command, "--benchmark-repetitions", 3])
    read = json.loads(stats.read_text(encoding="utf-8"))
    kernels = [kernel for kernel in read["kernels"] if kernel["flops"]]
    launches = sum(kernel["launches"] for kernel in kernels)
    return sum(kernel["seconds"] for kernel in kernels) / launches


def time_library(product):
    """The seconds of the fastest of many calls."""
    product()
    best, spent = float("inf"), 0.0
    while spent < LEAST_SECONDS:
        began = time.perf_counter()
        product()
        taken = time.perf_counter() - began
        best, spent = min(best, taken), spent + taken
    return best


def check(ours, theirs, x, w):
    """Refuses outputs that differ by more than another order of the sums."""
    apart = numpy.abs(ours - theirs).max() / (numpy.abs(x) @ numpy.abs(w)).max()
    if not apart <= TOLERANCE:
        raise Refused(f"outputs differ by {apart:.1e} of their terms")


def measure_one(options, folder, k, n, rows, draw):
    """The seconds of a product in the program and in each library."""
    x = numpy.round(draw.standard_normal((rows * LAUNCHES, k)), 2).astype(numpy.float32)
    w = draw.standard_normal((k, n)).astype(numpy.float32)
    save_file({"w": w}, folder / "w.safetensors")
    write_instances(folder / "x.jsonl", x)
    found = {"k": k, "n": n, "rows": rows}
    output = folder / "y.jsonl"
    found["ours"] = min(run_ours(options, folder, rows, output) for _ in range(TURNS))
    ours = numpy.array([line["output"] for line in read_lines(output)], numpy.float32)
    part = x[:rows].copy()
    tensors = torch.from_numpy(part), torch.from_numpy(w)
    check(ours[:rows], part @ w, part, w)
    check(ours[:rows], torch.mm(*tensors).numpy(), part, w)
    found["mkl"] = time_library(lambda: torch.mm(*tensors))
    found["openblas"] = time_library(lambda: part @ w)
    return found


def measure(options):
    """The figures of all sizes and rows, and the best rate of a library."""
    draw = numpy.random.default_rng(1)
    figures = {"rows": [], "refused": {}, "peak": measure_peak()}
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        folder = Path(folder)
        (folder / "product.coh").write_text(PROGRAM, encoding="utf-8")
        for k, n in SIZES[-2:] if options.quick else SIZES:
            for rows in ROWS:
                try:
                    figures["rows"].append(measure_one(options, folder, k, n, rows, draw))
                except Refused as error:
                    figures["refused"][f"{rows} x {k} x {n}"] = str(error)
    reached = [gigaflops(row, side) for row in figures["rows"] for side in ("mkl", "openblas")]
    figures["peak"] = max(figures["peak"], *reached)
    return figures


def gigaflops(row, side):
    return 2e-9 * row["rows"] * row["k"] * row["n"] / row[side]


def against(row):
    """Our rate to the better library's."""
    return min(row["mkl"], row["openblas"]) / row["ours"]


def report(figures):
    """The table in Markdown, after what it says in all."""
    peak, rows = figures["peak"], figures["rows"]
    text = (
        "`x @ w` and nothing else, in GFLOP/s: Cohort's kernel, whose matrix is packed beforehand, PyTorch's `torch.mm` (MKL) and\n"
        "NumPy (OpenBLAS), which begin with the matrix as it is; the libraries' figures are of their fastest call, Cohort's of the\n"
        f"fastest of {TURNS} passes of {LAUNCHES} launches. The peak is the best that a library reaches here, {number(peak)} GFLOP/s.\n\n"
    )
    for many in ROWS:
        ratios = [against(row) for row in rows if row["rows"] == many]
        if ratios:
            below = sum(value < 0.95 for value in ratios)
            text += (
                f"* {many} rows: {ratio(geometric_mean(ratios))} the better library in the geometric mean, at least "
                f"{ratio(min(ratios))}; {below} of {len(ratios)} below 0.95x\n"
            )
    lines = [
        (
            f"{row['k']} x {row['n']}, {row['rows']} rows",
            *(number(gigaflops(row, side)) for side in ("ours", "mkl", "openblas")),
            ratio(against(row)),
            share(gigaflops(row, "ours") / peak),
        )
        for row in rows
    ]
    heads = ("K x N", "Cohort", "MKL", "OpenBLAS", "to the better", "of peak")
    text += "\n" + markdown(heads, lines)
    for what, error in figures["refused"].items():
        text += f"\n`{what}` is refused: {error}\n"
    return text
