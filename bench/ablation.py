"""Each technique of the compiler and the runtime switched off, for each model.

The techniques are those that batch-run itself lists for `--without`. A pass without which a
model's kernels and control program are the same to the letter has nothing to do there and is
not timed. Times are those of the fastest pass.
"""

import re
import tempfile

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
# Not techniques but ways to do entirely without batching; shown as a scale for the others.
UNBATCHED = "--no-batch"


def list_techniques(tool):
    """What a tool says can be left out, and what it says is lost without each."""
    said = complaint([tool, ROOT / "examples/treefc/treefc.coh", "--without", "?"])
    return dict(re.findall(r"^\s*([a-z0-9-]+): without it, (.*)$", said, re.MULTILINE))


def compiled(options, data, name, *arguments):
    """The text of what a model is compiled to."""
    program = ROOT / "examples" / name / f"{name}.coh"
    command = [options.batch_opt, program, "--weights", data / f"{name}.safetensors"]
    with tempfile.NamedTemporaryFile(suffix=".mlir") as file:
        run([*command, "--emit=target", "-o", file.name, *arguments])
        return file.read()


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
            "rows": stats[-1]["rows"],
            "mean rows": stats[-1]["mean_rows_per_launch"],
            "seconds": least_seconds_of(stats),
        }
        for technique, stats in turns.items()
        if technique not in refused
    }
    return figures, refused


def measure(options):
    """The figures of all models by size, what each technique is for, and what does not run."""
    techniques = list_techniques(options.batch_run)
    techniques[WHOLE] = "batches that wait for their slowest instance, not instances in flight"
    figures = {"techniques": techniques, "sizes": {}, "refused": {}}
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
                        number(row["mean rows"]),
                        f"{row['seconds'] * 1e3:,.1f}",
                        ratio(row["seconds"] / model[""]["seconds"]),
                    )
                )
        heads = (f"D = H = {size}", "launches", "rows a launch", "ms", "time")
        text += "\n" + markdown(heads, rows)
    for name, error in figures["refused"].items():
        text += f"\n`{name}` is refused: {error}\n"
    return text
