"""Tensors of differing lengths, against PyTorch padded, packed by hand, and nested.

An encoder layer and masked attention over sequences of real lengths, products whose lengths all
differ, and triangular products. Sides take turns over the same instances, on one thread and on two;
figures are medians over the turns. Nobody's files are read inside the time; a peer pads or packs the
instances' tensors inside it, as the program places its rows.
"""

import itertools
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from ablation import list_techniques
from common import LONGEST, ROOT, Refused, markdown, number, ratio, read_lines, share
from corpora import lengths_of
from ragged_torch import ATTENTION, CAUSAL, ENCODERS, linear_weights, padded_products, products

SIZE, INNER, HEADS = 512, 2048, 8
BATCHES = (32, 128)
THREADS = (1, 2)
TOLERANCE = 2e-3
RAGGED_PASSES = (
    "unroll-loops",
    "online-folds",
    "bound-masks",
    "divide-calls",
    "fuse-rows",
    "split-tails",
    "hoist-lengths",
    "ragged-storage",
    "remapping",
    "shared-prelude",
)
# What CoRa's ablation adds to ragged loops, one after another.
STEPS = (
    ("ragged storage", "ragged-storage"),
    ("hoisted lengths and first rows", "hoist-lengths"),
    ("split loops", "split-tails"),
    ("fused rows", "fuse-rows"),
    ("remapped work", "remapping"),
    ("shared prelude", "shared-prelude"),
)
# Longer than other programs take: their inputs are text of some hundred MB.
LONGEST_READ = 5 * LONGEST
TARGETS = {
    "encoder padded": 2.2,
    "encoder packed": 1.15,
    "vgemm loop": 1.0,
    "vgemm padded": 1.5,
    "trmm full at 4096": 1.7,
    "masked attention padded": 3.0,
}
SETS = ("mnli", "wiki512", "race")
# Of the encoder whose prelude is measured.
LAYERS = (1, 6)


# --- Inputs ---------------------------------------------------------------------------------------


class Pool:
    """Rows of random numbers with short text, of which matrices are made quickly."""

    ROWS = 251

    def __init__(self, width, rng):
        # One digit behind the point, so that the text is short and as exact as the number.
        tenths = rng.integers(-19, 20, (self.ROWS, width))
        self.values = (tenths / 10).astype(np.float32)
        self.texts = [[f"{value / 10:.1f}" for value in row] for row in tenths]
        self.cache = {}
        self.next = 0

    def matrix(self, rows, columns):
        """A matrix as a tensor and as JSON."""
        picks = [(self.next + row) % self.ROWS for row in range(rows)]
        self.next = (self.next + rows * 7 + 1) % self.ROWS
        text = ",".join(self.row_text(pick, columns) for pick in picks)
        return torch.from_numpy(self.values[picks, :columns].copy()), f"[{text}]"

    def row_text(self, row, columns):
        if (row, columns) not in self.cache:
            self.cache[row, columns] = f"[{','.join(self.texts[row][:columns])}]"
        return self.cache[row, columns]


def write_instances(path, pool, shapes):
    """Writes instances whose arguments have these shapes, by name; gives their tensors."""
    tensors = []
    with open(path, "w", encoding="utf-8") as lines:
        for instance, shape_of in enumerate(shapes, start=1):
            made = {name: pool.matrix(*shape) for name, shape in shape_of.items()}
            members = [f'"{name}": {text}' for name, (_, text) in made.items()]
            lines.write(f'{{"id": {instance}, {", ".join(members)}}}\n')
            tensors.append([tensor for tensor, _ in made.values()])
    return tensors


def make_weights(name, folder, rng, layers=1):
    """Writes random weights of a model; gives them by name. All layers have the same."""

    def matrix(rows, columns):
        return (rng.standard_normal((rows, columns)) / rows**0.5).astype(np.float32)

    def vector(size, around=0.0):
        return (around + 0.1 * rng.standard_normal(size)).astype(np.float32)

    if name == "encoder":
        weights = {
            "wqkv": matrix(SIZE, 3 * SIZE),
            "bqkv": vector(3 * SIZE),
            "wp": matrix(SIZE, SIZE),
            "bp": vector(SIZE),
            "g1": vector(SIZE, 1.0),
            "b1": vector(SIZE),
            "wu": matrix(SIZE, INNER),
            "bu": vector(INNER),
            "wd": matrix(INNER, SIZE),
            "bd": vector(SIZE),
            "g2": vector(SIZE, 1.0),
            "b2": vector(SIZE),
        }
        weights = {name: np.stack([weight] * layers) for name, weight in weights.items()}
    else:
        weights = {}
        for part in ("q", "k", "v", "p"):
            weights[f"w{part}"] = matrix(SIZE, SIZE)
            weights[f"b{part}"] = vector(SIZE)
    save_file(weights, folder / f"{name}.safetensors")
    return {name: torch.from_numpy(weight) for name, weight in weights.items()}


def program_of(name, folder):
    """A copy of an example, or of a program of the benchmark, with as many heads as its peers."""
    own = ROOT / "bench" / "programs" / f"{name}.coh"
    example = ROOT / "examples" / name / f"{name}.coh"
    source = (own if own.exists() else example).read_text(encoding="utf-8")
    path = folder / f"{name}.coh"
    path.write_text(source.replace("let heads = 4", f"let heads = {HEADS}"), encoding="utf-8")
    return path


# --- Sides ----------------------------------------------------------------------------------------


def run_cohort(options, program, inputs, *arguments, threads, repetitions, output=os.devnull):
    """One turn of a program: its statistics."""
    weights = program.with_suffix(".safetensors")
    with tempfile.NamedTemporaryFile(suffix=".json") as stats:
        command = [options.batch_run, program, "--input", inputs, "--output", output, "--quiet"]
        if weights.exists():
            command += ["--weights", weights]
        command += ["--threads", threads, "--stats", stats.name, "--max-memory", 1 << 36]
        command += ["--benchmark-repetitions", repetitions, *arguments]
        command = [str(part) for part in command]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_READ)
        except subprocess.TimeoutExpired:
            raise Refused(f"longer than {LONGEST_READ} s") from None
        if done.returncode != 0:
            said = done.stderr.strip() or f"{command[0]} ended with {done.returncode}"
            raise Refused(said.splitlines()[0])
        return json.loads(Path(stats.name).read_text(encoding="utf-8"))


def least_seconds(stats):
    """The seconds of the fastest pass of a turn."""
    return min(r["record_seconds"] + r["execute_seconds"] for r in stats["repetitions"])


def time_peer(run, batches, repetitions):
    """The seconds of the fastest of some passes of a peer over all batches."""
    best = float("inf")
    with torch.inference_mode():
        for _ in range(repetitions):
            began = time.perf_counter()
            for batch in batches:
                run(batch)
            best = min(best, time.perf_counter() - began)
    return best


def take_turns(options, cohort, peers, batches, threads, repetitions):
    """Takes turns of the program, given as a function to run once, and of its peers."""
    torch.set_num_threads(threads)
    seconds = {column: [] for column in ("cohort", *peers)}
    refused, stats = {}, None
    for _ in range(options.few_turns):
        for column in seconds:
            if column in refused:
                continue
            try:
                if column == "cohort":
                    stats = cohort(threads)
                    seconds[column].append(least_seconds(stats))
                else:
                    seconds[column].append(time_peer(peers[column], batches, repetitions))
            except Refused as error:
                refused[column] = str(error)
            except (RuntimeError, NotImplementedError, ValueError) as error:
                refused[column] = str(error).splitlines()[0]
    torch.set_num_threads(1)
    return {
        "threads": threads,
        "seconds": {c: statistics.median(s) if s else None for c, s in seconds.items()},
        "refused": refused,
        "padding": padding_of(stats),
        "prelude": prelude_of(stats),
    }


def padding_of(stats):
    """What padding to the longest of each launch would have added, of what is ragged: as shares of
    the FLOPs and of the bytes of the padded whole."""
    if stats is None:
        return None
    works = [kernel["ragged"] for kernel in stats["kernels"] if "ragged" in kernel]
    sums = {key: sum(work[key] for work in works) for key in works[0]} if works else {}
    if not sums or not sums["dense_flops"] or not sums["dense_bytes"]:
        return None
    return {
        "flops": 1 - sums["flops"] / sums["dense_flops"],
        "bytes": 1 - sums["bytes"] / sums["dense_bytes"],
    }


def prelude_of(stats):
    """The share of the last pass's time that went into where rows are and how long calls are."""
    if stats is None:
        return None
    execute = stats["repetitions"][-1]["execute_seconds"]
    return stats["prelude_seconds"] / execute if execute else None


def check(program, options, peer, inputs, tensors, *arguments):
    """Stops unless the program's outputs of a few instances are a peer's."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as few:
        with open(inputs, encoding="utf-8") as lines:
            few.writelines(itertools.islice(lines, len(tensors)))
        few.flush()
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as output:
            once = {"threads": 1, "repetitions": 1, "output": output.name}
            run_cohort(options, program, few.name, *arguments, **once)
            outputs = [line["output"] for line in read_lines(output.name)]
    with torch.inference_mode():
        expected = peer(tensors)
    for ours, theirs in zip(outputs, expected, strict=True):
        apart = (torch.tensor(ours) - theirs).abs().max().item()
        if not apart <= TOLERANCE * max(1.0, theirs.abs().max().item()):
            raise SystemExit(f"{program.name}: an output differs by {apart}")


# --- What is measured -----------------------------------------------------------------------------


def passes(options, flops):
    """How many passes a turn: fewer over what takes long, as a pass then says more."""
    return min(options.more_repetitions, max(2, round(2e11 / flops)))


def layer_flops(lengths):
    """About what an encoder layer computes of sequences."""
    weights = 2 * SIZE * (4 * SIZE + 2 * INNER)
    return sum(n * (weights + 4 * n * SIZE) for n in lengths)


def measure_sequences(options, folder, name, kinds, sets, batches):
    """A model over sequences: a row for each data set, batch size and number of threads."""
    rng = np.random.default_rng(7)
    weights = linear_weights(make_weights(name, folder, rng))
    program = program_of(name, folder)
    pool = Pool(SIZE, rng)
    rows, checked = [], False
    for data in sets:
        inputs = folder / f"{data}.jsonl"
        lengths = lengths_of(data, max(batches))
        instances = write_instances(inputs, pool, [{"x": (n, SIZE)} for n in lengths])
        instances = [x for (x,) in instances]
        peers = {column: kind(weights) for column, kind in kinds.items()}
        repetitions = passes(options, layer_flops(lengths))
        if not checked:
            checked = try_check(program, options, peers["packed"], inputs, instances[:3])
        for batch, threads in itertools.product(batches, THREADS):

            def cohort(threads, batch=batch, inputs=inputs, repetitions=repetitions):
                return run_cohort(
                    options,
                    program,
                    inputs,
                    "--batch",
                    batch,
                    threads=threads,
                    repetitions=repetitions,
                )

            parts = [instances[i : i + batch] for i in range(0, len(instances), batch)]
            runs = {column: peer.run for column, peer in peers.items()}
            row = take_turns(options, cohort, runs, parts, threads, repetitions)
            rows.append({"data": data, "batch": batch, "rows": sum(lengths), **row})
        inputs.unlink()
    return rows


def measure_attention(options, folder, sets):
    """Causal attention alone, of queries, keys and values that are the input."""
    program = program_of("attention", folder)
    pool = Pool(SIZE, np.random.default_rng(17))
    rows = []
    for data in sets:
        inputs = folder / f"{data}.jsonl"
        lengths = lengths_of(data, max(BATCHES))
        shapes = [{name: (n, SIZE) for name in "qkv"} for n in lengths]
        instances = write_instances(inputs, pool, shapes)
        peers = {column: kind() for column, kind in ATTENTION.items()}
        sized = ("--dim", f"D={SIZE}")
        try_check(program, options, peers["packed"], inputs, instances[:3], *sized)
        for batch, threads in itertools.product(BATCHES, THREADS):

            def cohort(threads, batch=batch, inputs=inputs):
                arguments = ("--batch", batch, *sized)
                return run_cohort(
                    options, program, inputs, *arguments, threads=threads, repetitions=3
                )

            parts = [instances[i : i + batch] for i in range(0, len(instances), batch)]
            runs = {column: peer.run for column, peer in peers.items()}
            row = take_turns(options, cohort, runs, parts, threads, 3)
            rows.append({"data": data, "batch": batch, "rows": sum(lengths), **row})
        inputs.unlink()
    return rows


def try_check(program, options, peer, inputs, instances, *arguments):
    """Whether outputs were compared; a program that is refused has none."""
    try:
        check(program, options, peer.run, inputs, instances, *arguments)
        return True
    except Refused:
        return False


def measure_products(options, folder):
    """Products whose three lengths are multiples of 128, in batches of 2 to 64."""
    rng = np.random.default_rng(11)
    program = program_of("vgemm", folder)
    pool = Pool(128 * 11, rng)
    sizes = (2, 8) if options.quick else (2, 4, 8, 16, 32, 64)
    shapes = []
    for m, k, n in 128 * rng.integers(4, 12, (max(sizes), 3)):
        shapes.append({"a": (int(m), int(k)), "b": (int(k), int(n))})
    rows = []
    for size in sizes:
        inputs = folder / f"products-{size}.jsonl"
        pairs = write_instances(inputs, pool, shapes[:size])
        flops = sum(2 * a.shape[0] * b.numel() for a, b in pairs)
        repetitions = passes(options, flops)

        def cohort(threads, inputs=inputs, size=size, repetitions=repetitions):
            return run_cohort(
                options,
                program,
                inputs,
                "--batch",
                size,
                threads=threads,
                repetitions=repetitions,
            )

        peers = {"loop": products, "padded": padded_products}
        for threads in THREADS:
            row = take_turns(options, cohort, peers, [pairs], threads, repetitions)
            rows.append({"data": "128 x 4..11", "batch": size, **row})
        inputs.unlink()
    return rows


def measure_triangles(options, folder):
    """A lower triangle times a square matrix, of the same size, one at a time."""
    rng = np.random.default_rng(13)
    program = program_of("trmm", folder)
    sizes = (512, 1024) if options.quick else (512, 1024, 2048, 4096)
    pool = Pool(max(sizes), rng)
    rows = []
    for size in sizes:
        inputs = folder / f"triangle-{size}.jsonl"
        shape = {"a": (size, size), "b": (size, size)}
        pairs = write_instances(inputs, pool, [shape])

        repetitions = passes(options, size**3)

        def cohort(threads, inputs=inputs, repetitions=repetitions):
            return run_cohort(options, program, inputs, threads=threads, repetitions=repetitions)

        peers = {"full": lambda pair: pair[0] @ pair[1]}
        for threads in THREADS:
            row = take_turns(options, cohort, peers, pairs, threads, repetitions)
            row["seconds"]["BLAS trmm"] = time_trmm(pairs[0], threads, repetitions)
            rows.append({"data": "triangle", "batch": size, **row})
        inputs.unlink()
    return rows


def time_trmm(pair, threads, repetitions):
    """The seconds of BLAS's triangular product, as SciPy has it; None without SciPy."""
    try:
        from scipy.linalg.blas import strmm
        from threadpoolctl import threadpool_limits
    except ImportError:
        return None
    # BLAS wants columns behind each other; making them so is not part of the product.
    a, b = (np.asfortranarray(tensor.numpy()) for tensor in pair)
    best = float("inf")
    with threadpool_limits(limits=threads):
        for _ in range(repetitions):
            began = time.perf_counter()
            strmm(1.0, a, b, lower=1)
            best = min(best, time.perf_counter() - began)
    return best


def measure_ablation(options, folder):
    """The encoder layer with techniques switched off, on one thread, over one data set."""
    rng = np.random.default_rng(7)
    make_weights("encoder", folder, rng)
    program = program_of("encoder", folder)
    pool, batch = Pool(SIZE, rng), min(BATCHES)
    lengths = lengths_of("mnli", batch)
    ragged, dense = folder / "ragged.jsonl", folder / "dense.jsonl"
    write_instances(ragged, pool, [{"x": (n, SIZE)} for n in lengths])
    write_instances(dense, pool, [{"x": (max(lengths), SIZE)} for _ in lengths])
    known = switches(options)
    columns = {"all techniques": (ragged, ())}
    columns["dense: all as long as the longest"] = (dense, ())
    for name in known:
        columns[f"without {name}"] = (ragged, ("--without", name))
    columns["without gather fusion"] = (ragged, ("--without", "gather-fusion"))
    steps = measured_steps(known, dense, ragged)
    seconds = {(column, 1): [] for column in columns}
    seconds |= {(column, threads): [] for column in steps for threads in THREADS}
    refused = {}
    for _ in range(options.few_turns):
        for column, threads in seconds:
            inputs, arguments = (columns | steps)[column]
            if column in refused:
                continue
            try:
                arguments = ("--batch", batch, *arguments)
                repetitions = options.more_repetitions
                stats = run_cohort(
                    options, program, inputs, *arguments, threads=threads, repetitions=repetitions
                )
                seconds[column, threads].append(least_seconds(stats))
            except Refused as error:
                refused[column] = str(error)
    medians = {c: statistics.median(s) if s else None for c, s in seconds.items()}
    return {
        "seconds": {column: medians[column, 1] for column in columns},
        "steps": {c: {str(t): medians[c, t] for t in THREADS} for c in steps},
        "refused": refused,
    }


def measured_steps(known, dense, ragged):
    """From dense loops to all techniques: the input and what is left out, a step."""
    steps = [(what, name) for what, name in STEPS if name in known]
    off = [name for _, name in steps]

    def without(names):
        return ("--without", ",".join(names)) if names else ()

    columns = {"dense": (dense, without(off)), "ragged loops": (ragged, without(off))}
    for at, (what, _) in enumerate(steps, start=1):
        columns[f"and {what}"] = (ragged, without(off[at:]))
    return columns


def measure_prelude(options, folder):
    """The prelude of one layer, and of several that share it or do not."""
    rng = np.random.default_rng(7)
    program, inputs = program_of("encoder", folder), folder / "prelude.jsonl"
    lengths = lengths_of("mnli", min(BATCHES))
    write_instances(inputs, Pool(SIZE, rng), [{"x": (n, SIZE)} for n in lengths])
    known = [("shared", ())]
    if "shared-prelude" in switches(options):
        known.append(("a launch", ("--without", "shared-prelude")))
    figures = []
    for layers in LAYERS:
        make_weights("encoder", folder, np.random.default_rng(7), layers)
        for tables, arguments in known:
            try:
                turns = [
                    run_cohort(options, program, inputs, *arguments, threads=1, repetitions=2)
                    for _ in range(options.few_turns)
                ]
            except Refused:
                continue
            figures.append(
                {
                    "layers": layers,
                    "tables": tables,
                    "seconds": statistics.median(stats["prelude_seconds"] for stats in turns),
                    "share": statistics.median(prelude_of(stats) for stats in turns),
                    "counts": turns[-1].get("prelude_tables"),
                }
            )
    return figures


def switches(options):
    """The passes that make kernels over ragged tensors faster, and that can be left out."""
    return [name for name in list_techniques(options.batch_run) if name in RAGGED_PASSES]


def measure(options):
    """The figures of all parts."""
    sets = SETS[:1] if options.quick else SETS
    batches = BATCHES[:1] if options.quick else BATCHES
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        folder = type(options.data)(folder)
        masked = ("mnli",) if options.quick else ("race",)
        return {
            "encoder": measure_sequences(options, folder, "encoder", ENCODERS, sets, batches),
            "masked attention": measure_sequences(
                options, folder, "masked_mha", CAUSAL, masked, batches
            ),
            "attention": measure_attention(options, folder, masked),
            "vgemm": measure_products(options, folder),
            "trmm": measure_triangles(options, folder),
            "ablation": measure_ablation(options, folder),
            "prelude": measure_prelude(options, folder),
        }


# --- The report -----------------------------------------------------------------------------------


def ratio_to(row, column):
    """How many times as long a peer takes; None if one of the two has no figure."""
    ours, theirs = row["seconds"]["cohort"], row["seconds"].get(column)
    return theirs / ours if ours and theirs else None


def mean_ratio(rows, column):
    """The geometric mean of the ratios to a peer."""
    ratios = [ratio_to(row, column) for row in rows]
    ratios = [value for value in ratios if value]
    return statistics.geometric_mean(ratios) if ratios else None


def table(rows, what):
    """The rows of a part as Markdown."""
    peers = [column for column in rows[0]["seconds"] if column != "cohort"]
    heads = ["lengths", what, "threads", "cohort, ms"]
    heads += [text for peer in peers for text in (f"{peer}, ms", "ratio")]
    heads += ["padding spared, FLOPs", "bytes", "prelude"]
    cells = []
    for row in rows:
        ours = row["seconds"]["cohort"]
        line = [row["data"], row["batch"], row["threads"], number(ours and ours * 1e3)]
        for peer in peers:
            seconds = row["seconds"][peer]
            line += [number(seconds and seconds * 1e3), ratio(ratio_to(row, peer))]
        padding = row["padding"] or {}
        prelude = row["prelude"]
        line += [share(padding.get("flops")), share(padding.get("bytes"))]
        line.append("-" if prelude is None else f"{prelude:.2%}")
        cells.append(line)
    return markdown(heads, cells)


def refusals(rows):
    """What was refused, once each, as a paragraph."""
    said = {(side, why) for row in rows for side, why in row["refused"].items()}
    return "".join(f"- {side}: {why}\n" for side, why in sorted(said))


def goal(name, value):
    """A figure against what it should be."""
    return f"- {name}: {ratio(value)} (wanted {TARGETS[name]}x)\n"


def report(figures):
    """The part of the page."""
    encoder, masked = figures["encoder"], figures["masked attention"]
    attention = figures["attention"]
    vgemm, trmm = figures["vgemm"], figures["trmm"]
    single = [row for row in trmm if row["batch"] == 4096]
    text = (
        f"One encoder layer ({SIZE} wide, {HEADS} heads, {INNER} inside), causal attention alone and "
        "between its projections, and products, where every instance has its own lengths. `padded` is "
        "PyTorch with masks, `packed` is PyTorch with rows packed by hand and attention a sequence at a "
        "time, `nested` its nested tensors. Ratios above 1 favour Cohort. *Padding spared* is the share "
        "of a padded launch's FLOPs and bytes that is padding; Cohort computes none of it. *Prelude* is "
        "the share of the time that goes into where rows are and how long calls are.\n\n"
    )
    goals = [
        goal("encoder padded", mean_ratio(encoder, "padded")),
        goal("encoder packed", mean_ratio(encoder, "packed")),
        goal("masked attention padded", mean_ratio(attention, "padded")),
        f"- the same between projections: {ratio(mean_ratio(masked, 'padded'))}\n",
        goal("vgemm loop", mean_ratio(vgemm, "loop")),
        goal("vgemm padded", mean_ratio(vgemm, "padded")),
        goal("trmm full at 4096", mean_ratio(single, "full")),
    ]
    text += "Geometric means over all rows:\n\n" + "".join(goals) + "\n"
    parts = [
        ("Encoder layer", encoder, "batch"),
        ("Masked attention", attention, "batch"),
        ("Masked attention between projections", masked, "batch"),
        ("Products of differing lengths", vgemm, "batch"),
        ("Triangular products", trmm, "size"),
    ]
    for title, rows, what in parts:
        text += f"### {title}\n\n{table(rows, what)}\n{refusals(rows)}\n"
    return text + ablation_table(figures["ablation"]) + prelude_table(figures["prelude"])


def prelude_table(figures):
    """The prelude of one layer and of several, as Markdown."""
    if not figures:
        return ""
    cells = []
    for row in figures:
        counts = row["counts"] or {"made": None, "shared": None}
        microseconds = row["seconds"] * 1e6
        each = [number(microseconds), number(microseconds / row["layers"])]
        cells.append([row["layers"], row["tables"], *each, f"{row['share']:.3%}", *counts.values()])
    text = "\n### Prelude, by number of layers\n\nmnli, one batch of 32, one thread. *Shared* tables "
    text += "are made once a batch for all launches of equal lengths; or each launch has its own.\n\n"
    heads = ["layers", "tables", "microseconds", "a layer", "share of the time", "made", "shared"]
    return text + markdown(heads, cells)


def ablation_table(ablation):
    """The encoder layer with techniques switched off, as Markdown."""
    whole = ablation["seconds"]["all techniques"]
    cells = []
    for column, seconds in ablation["seconds"].items():
        times = seconds / whole if seconds and whole else None
        cells.append([column, number(seconds and seconds * 1e3), ratio(times)])
    text = "### Techniques of ragged tensors switched off\n\n"
    text += "One encoder layer, mnli, one thread: how many times as long it takes.\n\n"
    text += markdown(["switched off", "ms", "times as long"], cells)
    text += "\nThe same layer from dense loops over padded storage on, technique by technique:\n\n"
    heads = ["with", *(f"ms, {threads} thread{'s'[: threads - 1]}" for threads in THREADS)]
    rows = [
        [column, *(number(seconds and seconds * 1e3) for seconds in times.values())]
        for column, times in ablation["steps"].items()
    ]
    text += markdown(heads, rows)
    said = sorted(set(ablation["refused"].items()))
    return text + "".join(f"\n- {column}: {why}" for column, why in said)
