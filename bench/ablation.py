"""Each technique of the compiler and the runtime switched off, for each model.

The techniques are those that batch-run itself lists for `--without`. A pass without which a
model's kernels and control program are the same to the letter has nothing to do there and is
not timed. Times are those of the fastest pass. What passes do to recursions and decisions is also
counted over the instances of all examples: launches, and barriers, that is flushes.
"""

import json
import os
import re
import tempfile
from pathlib import Path

from common import (
    ROOT,
    Refused,
    complaint,
    least_seconds_of,
    make_data,
    markdown,
    number,
    ratio,
    run,
    run_program,
)
from control import BATCH, arguments_of
from make_models import MODELS

# The second is small enough for what a launch and a recorded call cost to show.
SIZES = (256, 64)
# Whole batches instead of instances in flight.
WHOLE = "--batch"
# What the runtime does for tensors of differing lengths, which these models have none of: ragged.py.
RAGGED = ("remapping", "ragged-storage", "shared-prelude")
# A technique that must be asked for: a node computes this many levels of its children as well.
UNROLLED = ("--unroll", "1"), ("--unroll", "2")
# What is done to recursions and to what waits: worth it where a launch or a barrier is dear, so counted on the
# simulated GPU as well.
RECURSIONS = (
    "fork-join",
    "hoist-arguments",
    "hoist-lookups",
    "refactor-recursion",
    "share-leaf-products",
    "specialise-constructors",
    "specialise-functions",
    "unroll-counters",
)
# What is done to a GPU's launches alone, counted on the simulated one.
OF_LAUNCHES = ("fuse-launches", "persistence")
# Not techniques but ways to do entirely without batching; shown as a scale for the others.
UNBATCHED = "--no-batch"


def list_techniques(tool):
    """What a tool says can be left out, and what it says is lost without each."""
    said = complaint([tool, ROOT / "examples/treefc/treefc.coh", "--without", "?"])
    return dict(re.findall(r"^\s*([a-z0-9-]+): without it, (.*)$", said, re.MULTILINE))


def read_module(file):
    """The lines of a module that a tool wrote, but for that with its attributes: what was asked for."""
    # What is written is renamed to the file, so it is another one now.
    lines = Path(file.name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("module ")]


def compiled(options, data, name, *arguments):
    """The text of what a model is compiled to."""
    program = ROOT / "examples" / name / f"{name}.coh"
    command = [options.batch_opt, program, "--weights", data / f"{name}.safetensors"]
    with tempfile.NamedTemporaryFile(suffix=".mlir") as file:
        run([*command, "--emit=target", "-o", file.name, *arguments])
        return read_module(file)


def variants_of(options, data, name):
    """The arguments of batch-run with everything on, and without each technique that has
    something to do in a model.
    """
    whole, batch = compiled(options, data, name), arguments_of(name)
    variants = {"": batch}
    passes = list_techniques(options.batch_opt)
    for technique in list_techniques(options.batch_run):
        if technique in RAGGED:
            continue
        without = "--without", technique
        if technique not in passes or compiled(options, data, name, *without) != whole:
            variants[technique] = (*batch, *without)
    seen = [whole]
    for unrolled in UNROLLED:
        text = compiled(options, data, name, *unrolled)
        if text not in seen:
            seen.append(text)
            variants[" ".join(unrolled)] = (*batch, *unrolled)
    if WHOLE not in batch:
        variants[WHOLE] = (WHOLE, BATCH)
    variants[UNBATCHED] = (UNBATCHED,)
    return variants


def ablate(options, data, name):
    """The figures of one model with everything on, and with each technique off."""
    variants = variants_of(options, data, name)
    turns, refused = {technique: [] for technique in variants}, {}
    for _ in range(options.few_turns):
        for technique, arguments in variants.items():
            if technique in refused:
                continue
            try:
                stats = run_program(options, data, name, options.more_repetitions, *arguments)
                turns[technique].append(stats)
            except Refused as error:
                if not technique:
                    raise
                refused[technique] = str(error)
    figures = {
        technique: {
            "launches": stats[-1]["kernel_launches"],
            "barriers": stats[-1]["flushes"],
            "rows": stats[-1]["rows"],
            "mean rows": stats[-1]["mean_rows_per_launch"],
            "seconds": least_seconds_of(stats),
        }
        for technique, stats in turns.items()
        if technique not in refused
    }
    return figures, refused


def run_example(options, name, repetitions, *arguments):
    """The statistics of an example over its own instances."""
    folder = ROOT / "examples" / name
    with tempfile.NamedTemporaryFile(suffix=".json") as stats:
        command = [options.batch_run, folder / f"{name}.coh", "--stats", stats.name, "--quiet"]
        command += ["--weights", folder / "weights.safetensors", "--output", os.devnull]
        command += ["--input", folder / "input.jsonl", "--threads", 1]
        run([*command, "--benchmark-repetitions", repetitions, *arguments])
        return json.loads(Path(stats.name).read_text(encoding="utf-8"))


def count_example(options, name, arguments):
    """Launches and barriers of an example on the processor and on the simulated GPU, and its seconds."""
    stats = run_example(options, name, options.more_repetitions, *arguments)
    counts = {
        "launches": stats["kernel_launches"],
        "barriers": stats["flushes"],
        "rows": stats["rows"],
        "seconds": least_seconds_of([stats]),
    }
    try:
        device = run_example(options, name, 1, "--device", "gpu-sim", *arguments)
    except Refused:
        return counts
    return counts | {"on the GPU": device["kernel_launches"], "device": device["device"]["launches"]}


def names_of_examples():
    """The examples that have their weights."""
    folders = sorted(path.parent for path in ROOT.glob("examples/*/weights.safetensors"))
    return [folder.name for folder in folders if (folder / "input.jsonl").exists()]


def launches_on_gpu(options):
    """Steps and launched functions of examples on the simulated GPU, with and without what is done to launches."""
    found = {}
    for name in names_of_examples():
        ways = [(), *(("--without", technique) for technique in OF_LAUNCHES)]
        try:
            counts = {}
            for way in ways:
                device = run_example(options, name, 1, "--device", "gpu-sim", *way)["device"]
                row = {"steps": device["steps"], "functions": device["launches"]}
                if row not in counts.values():
                    counts[" ".join(way)] = row
            if len(counts) > 1:
                found[name] = counts
        except Refused as error:
            found[name] = {"refused": str(error)}
    return found


def launch_table(found):
    """The table of what is done to launches."""
    rows = []
    for name, ways in found.items():
        for way, row in ways.items() if "refused" not in ways else ():
            example = f"{name} `{way}`" if way else name
            rows.append((example, number(row["steps"]), number(row["functions"])))
    return markdown(("example", "steps", "functions launched"), rows)


def recursions(options):
    """What passes do to recursions and to what waits, over all examples that have their weights."""
    found = {}
    for name in names_of_examples():

        def text(*arguments):
            folder = ROOT / "examples" / name
            command = [options.batch_opt, folder / f"{name}.coh", "--emit=batched"]
            command += ["--weights", folder / "weights.safetensors"]
            with tempfile.NamedTemporaryFile(suffix=".mlir") as file:
                run([*command, "-o", file.name, *arguments])
                return read_module(file)

        try:
            seen = [text()]
            ways = [("--without", technique) for technique in RECURSIONS] + [*UNROLLED]
            changed = []
            for way in ways:
                if (other := text(*way)) not in seen:
                    seen.append(other)
                    changed.append(way)
            if changed:
                ways = [(), *changed]
                found[name] = {" ".join(way): count_example(options, name, way) for way in ways}
        except Refused as error:
            found[name] = {"refused": str(error)}
    return found


def recursion_table(found):
    """The table of what passes do to recursions."""
    rows = []
    for name, ways in found.items():
        if "refused" in ways:
            continue
        for way, row in ways.items():
            rows.append(
                (
                    f"{name} `{way}`" if way else name,
                    number(row["launches"]),
                    number(row["barriers"]),
                    number(row["rows"]),
                    number(row["on the GPU"]) if "on the GPU" in row else "-",
                    number(row["device"]) if "device" in row else "-",
                    f"{row['seconds'] * 1e3:,.2f}",
                    ratio(row["seconds"] / ways[""]["seconds"]),
                )
            )
    heads = ("example", "launches", "barriers", "rows", "launches on the GPU", "functions launched")
    return markdown((*heads, "ms", "time"), rows)


def measure(options):
    """The figures of all models by size, what each technique is for, and what does not run."""
    techniques = list_techniques(options.batch_run)
    techniques[WHOLE] = "batches that wait for their slowest instance, not instances in flight"
    figures = {"techniques": techniques, "sizes": {}, "refused": {}}
    figures["recursions"] = recursions(options)
    figures["launches on the GPU"] = launches_on_gpu(options)
    models = options.models or MODELS
    for size in SIZES:
        data = make_data(options, models, size, options.instances // 2)
        rows = figures["sizes"][size] = {}
        for name in models:
            try:
                rows[name], refused = ablate(options, data, name)
            except Refused as error:
                refused = {"": str(error)}
            for technique, error in refused.items():
                figures["refused"].setdefault(f"{name} {technique}".strip(), error)
    return figures


def gains(figures, technique):
    """By what factor each model and size takes longer without a technique, the most first."""
    slower = {
        (name, size): model[technique]["seconds"] / model[""]["seconds"]
        for size, models in figures["sizes"].items()
        for name, model in models.items()
        if technique in model
    }
    return sorted(slower.items(), key=lambda pair: -pair[1])


# Less than this is what two runs of the same differ by.
NOISE = 1.02


def summarise(figures):
    """What each technique gains and where, as Markdown."""
    rows = []
    for technique, lost in figures["techniques"].items():
        slower = gains(figures, technique)
        gained = [f"{name} at {size}: {ratio(s)}" for (name, size), s in slower if s >= NOISE]
        lost_by = [f"{name} at {size}: {ratio(s)}" for (name, size), s in slower if s <= 1 / NOISE]
        if not slower:
            gained = ["none: nothing to do in these models"]
        rows.append(
            (
                f"`{technique}`",
                gained[0] if gained else "none in time",
                ", ".join(gained[1:4]) + (" …" if len(gained) > 4 else "") or "-",
                ", ".join(reversed(lost_by)) or "-",
                lost.rstrip("."),
            )
        )
    heads = ("technique", "gains most in", "then in", "costs in", "without it")
    return markdown(heads, rows)


def report(figures):
    """The tables in Markdown: what each technique gains, then all figures by model."""
    text = (
        "How many times longer a model takes at a size, D = H, without a technique: the fastest\n"
        "pass with it off over the fastest with everything on.\n\n" + summarise(figures)
    )
    text += "\nA star marks where a technique gains most; mvrnn has a quarter of the size.\n"
    for size, models in figures["sizes"].items():
        rows = []
        for name, model in models.items():
            for technique, row in model.items():
                slower = gains(figures, technique)
                most = slower[0] if technique in figures["techniques"] else None
                star = " *" if most and most[0] == (name, size) and most[1] >= NOISE else ""
                how = "with" if technique.startswith("-") else "without"
                rows.append(
                    (
                        f"{name} {how} `{technique}`{star}" if technique else name,
                        number(row["launches"]),
                        number(row["barriers"]),
                        number(row["mean rows"]),
                        f"{row['seconds'] * 1e3:,.1f}",
                        ratio(row["seconds"] / model[""]["seconds"]),
                    )
                )
        heads = (f"D = H = {size}", "launches", "barriers", "rows a launch", "ms", "time")
        text += "\n" + markdown(heads, rows)
    if figures.get("recursions"):
        text += (
            "\nWhat is done to recursions and to what waits, over the instances of each example; as\n"
            "it is, then with each way that changes what is compiled. A *barrier* is a flush, which all\n"
            "that was recorded before it waits for.\n\n" + recursion_table(figures["recursions"])
        )
    if figures.get("launches on the GPU"):
        text += (
            "\nWhat is done to a GPU's launches, counted on the simulated one over the instances of each\n"
            "example. Launches of one *step* need nothing of each other; each step waits for the one before.\n\n"
            + launch_table(figures["launches on the GPU"])
        )
    for name, error in figures["refused"].items():
        text += f"\n`{name}` is refused: {error}\n"
    return text
