"""What analysis costs against what it buys at each granularity, with and without reuse of schedules.

Where no tensor decides, what is recorded of an instance is kept by its structure and written again for the next
instance of the same structure (`--without schedule-reuse` leaves it out). Some instances come so often here that
all structures are kept before the passes that count.
"""

import tempfile
from pathlib import Path

from common import (
    ROOT,
    Refused,
    make_data,
    markdown,
    number,
    plotter,
    ratio,
    run_program,
    share,
    values_of,
)
from control import TARGETS, arguments_of
from make_models import MODELS

FIGURE = ROOT / "docs" / "figures" / "reuse.svg"
# A structure is kept when it has come 64 times: after one pass all of these are.
STRUCTURES, COMINGS = 8, 64
# A pass is short, and the fastest of this many is hardly disturbed by other programs.
PASSES = 24
# What recording costs shows where rows are short.
SIZE = 64
REUSE = {"with": (), "without": ("--without", "schedule-reuse")}
# It is scheduled as one, so there is nothing to choose.
WHOLE = "instance"
# What others are compared with.
BASE = ("block", "depth")
# What is chosen of the schedulers is another part.
CHOSEN = "auto"


def ways_of(options):
    """Each granularity by depth, and that of the base by each scheduler."""
    for unit in values_of(options, "granularity"):
        yield unit, "-" if unit == WHOLE else BASE[1]
        if unit == BASE[0]:
            others = set(values_of(options, "scheduler")) - {CHOSEN, BASE[1]}
            yield from ((unit, scheduler) for scheduler in sorted(others))


def repeat_instances(data, name, folder):
    """Puts into a folder a model's weights and some of its instances, each many times."""
    weights = data / f"{name}.safetensors"
    (folder / weights.name).symlink_to(weights)
    lines = (data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join(lines[:STRUCTURES]) * COMINGS
    (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def measure_one(options, data, name, unit, scheduler):
    """The figures of a model in one way, with and without reuse in turns: the least of all passes that count."""
    found = {"granularity": unit, "scheduler": scheduler}
    arguments = [*arguments_of(name), "--granularity", unit, "--benchmark-warm"]
    if unit != WHOLE:
        arguments += ["--scheduler", scheduler]
    for _ in range(options.few_turns):
        for reuse, without in REUSE.items():
            stats = run_program(options, data, name, 1 + PASSES, *arguments, *without)
            # The first pass meets each structure as often as it takes to keep it.
            passes = stats["repetitions"][1:]
            before = found.get(reuse, {"record": float("inf"), "total": float("inf")})
            found[reuse] = {
                "record": min(before["record"], *(one["record_seconds"] for one in passes)),
                "total": min(before["total"], *(total_of(one) for one in passes)),
                "hit rate": stats["schedule_reuse"]["hit_rate"],
                "rows": stats["mean_rows_per_launch"],
            }
    return found


def total_of(repetition):
    return repetition["record_seconds"] + repetition["execute_seconds"]


def measure(options):
    """The figures of all models where structure decides, in all ways; what is refused is left out."""
    models = [name for name in options.models or MODELS if name not in TARGETS]
    data = make_data(options, models, SIZE, STRUCTURES)
    figures = {"models": {}, "refused": {}}
    for name in models:
        rows = figures["models"].setdefault(name, [])
        with tempfile.TemporaryDirectory(dir=options.data) as folder:
            folder = Path(folder)
            repeat_instances(data, name, folder)
            for unit, scheduler in ways_of(options):
                try:
                    rows.append(measure_one(options, folder, name, unit, scheduler))
                except Refused as error:
                    figures["refused"][f"{name} {unit} {scheduler}"] = str(error)
    return figures


def micros(row, reuse, what):
    """Microseconds of an instance."""
    return 1e6 * row[reuse][what] / (STRUCTURES * COMINGS)


def report(figures):
    """The table in Markdown, and the plot."""
    text = (
        f"{STRUCTURES} instances, each {COMINGS} times, at D = H = {SIZE} in batches of 64: a first pass keeps their structures, and\n"
        f"of {PASSES} following ones the least counts, of recording and in total (`--benchmark-warm`). *Hit rate* is the share of instances whose\n"
        "calls were taken from what was kept. Microseconds are those of one instance, in turns with\n"
        "`--without schedule-reuse`; results of equal calls are kept on both sides. The last column compares with\n"
        f"*{' '.join(BASE)}*, schedules reused.\n\n"
        f"![Recording against rows a launch, with and without reuse](figures/{FIGURE.name})\n\n"
    )
    lines = []
    for name, rows in figures["models"].items():
        base = next((row for row in rows if (row["granularity"], row["scheduler"]) == BASE), None)
        for row in rows:
            total = row["with"]["total"]
            lines.append(
                (
                    f"{name} {row['granularity']} {row['scheduler']}",
                    share(row["with"]["hit rate"]),
                    number(row["with"]["rows"]),
                    number(micros(row, "without", "record")),
                    number(micros(row, "with", "record")),
                    number(micros(row, "without", "total")),
                    number(micros(row, "with", "total")),
                    ratio(total / row["without"]["total"]),
                    ratio(base and total / base["with"]["total"]),
                )
            )
    heads = ("granularity, scheduler", "hit rate", "rows a launch", "record us, without", "record us")
    heads += ("total us, without", "total us", "to without", f"to {' '.join(BASE)}")
    text += markdown(heads, lines)
    for what, error in figures["refused"].items():
        text += f"\n`{what}` is refused: {error}\n"
    return text


def plot(figures, path):
    """Draws what recording costs against rows a launch: a line a way, from without reuse to with it."""
    pyplot = plotter("reuse")
    figure, axis = pyplot.subplots(figsize=(7, 5), layout="constrained")
    markers = {"operator": "o", "block": "s", "function": "D", WHOLE: "^"}
    for index, (name, rows) in enumerate(figures["models"].items()):
        color = f"C{index}"
        for row in rows:
            x = [micros(row, reuse, "record") for reuse in ("without", "with")]
            y = [row[reuse]["rows"] for reuse in ("without", "with")]
            marker = markers.get(row["granularity"], "x")
            axis.plot(x, y, "-", color=color, linewidth=0.7)
            axis.plot(x[:1], y[:1], marker, color=color, markerfacecolor="none")
            axis.plot(x[1:], y[1:], marker, color=color)
        axis.plot([], [], "o", color=color, label=name)
    for unit, marker in markers.items():
        axis.plot([], [], marker, color="grey", label=unit)
    axis.plot([], [], "o", color="grey", markerfacecolor="none", label="without reuse")
    axis.set(xscale="log", yscale="log", xlabel="recording, us an instance", ylabel="rows a launch")
    axis.legend(fontsize="small", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
