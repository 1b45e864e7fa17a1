"""What analysis costs against what it buys, for each granularity, scheduler and sharing together.

Analysis is what a run does before kernels run, for every batch anew: recording calls, and finding
launches, their order and their rows. What it buys is fewer and larger launches, and less time in
kernels. Sharing is that equal calls on a parameter's row are computed once, which recording must look
for: `--no-sharing` leaves it out. What reuse of schedules gains is a study of its own, reuse.py.
"""

from common import (
    ROOT,
    Refused,
    make_data,
    markdown,
    number,
    plotter,
    ratio,
    run_program,
    values_of,
)
from control import SIZE, TARGETS, arguments_of
from make_models import MODELS

FIGURE = ROOT / "docs" / "figures" / "analysis.svg"
SHARING = {"sharing": (), "no sharing": ("--no-sharing",)}
# It is scheduled as one, so there is nothing to choose, and shares nothing.
WHOLE = "instance"
# What others are compared with.
BASE = ("block", "depth", "sharing")


def combinations(options):
    """All that is measured of a model, as (granularity, scheduler, sharing)."""
    schedulers = values_of(options, "scheduler")
    for unit in values_of(options, "granularity"):
        if unit == WHOLE:
            yield unit, "-", "no sharing"
            continue
        for scheduler in schedulers:
            for sharing in SHARING:
                yield unit, scheduler, sharing


def measure_one(options, data, name, combination):
    """The figures of a model in one way, all of the last pass of the turn where that was fastest."""
    unit, scheduler, sharing = combination
    arguments = [*arguments_of(name), "--granularity", unit]
    if unit != WHOLE:
        arguments += ["--scheduler", scheduler, *SHARING[sharing]]
    turns = [
        run_program(options, data, name, options.repetitions, *arguments)
        for _ in range(options.few_turns)
    ]
    stats = min(turns, key=lambda turn: turn["record_seconds"] + turn["execute_seconds"])
    analysis = stats["record_seconds"] + stats["schedule_seconds"]
    return {
        "granularity": unit,
        "scheduler": scheduler,
        "sharing": sharing,
        "used": stats["scheduler"]["used"],
        "compile": stats["compile_seconds"],
        "analysis": analysis,
        "record": stats["record_seconds"],
        "schedule": stats["schedule_seconds"],
        "kernels": sum(kernel["seconds"] for kernel in stats["kernels"]),
        "execute": stats["execute_seconds"],
        "total": stats["record_seconds"] + stats["execute_seconds"],
        "launches": stats["kernel_launches"],
        "rows": stats["rows"],
        "mean rows": stats["mean_rows_per_launch"],
        "instances": stats["instances"],
    }


def measure(options):
    """The figures of all models in all ways; what is refused is left out."""
    models = options.models or MODELS
    data = make_data(options, models, SIZE, options.instances // 2)
    figures = {"models": {}, "refused": {}}
    for name in models:
        rows = figures["models"].setdefault(name, [])
        for combination in combinations(options):
            try:
                rows.append(measure_one(options, data, name, combination))
            except Refused as error:
                figures["refused"][f"{name} {' '.join(combination)}"] = str(error)
    return figures


def base_of(rows):
    """The row that others of a model are compared with."""
    key = ("granularity", "scheduler", "sharing")
    return next((row for row in rows if tuple(row[k] for k in key) == BASE), rows[0])


def table(models):
    """A table of some models."""
    lines = []
    for name, rows in models.items():
        base = base_of(rows) if rows else None
        for row in rows:
            each = 1e6 / row["instances"]
            chosen = f" ({row['used']})" if row["scheduler"] == "auto" else ""
            lines.append(
                (
                    f"{name} {row['granularity']} {row['scheduler']}{chosen} {row['sharing']}",
                    number(row["compile"]),
                    number(row["record"] * each),
                    number(row["schedule"] * each),
                    number(row["launches"]),
                    number(row["mean rows"]),
                    number(row["kernels"] * each),
                    number(row["total"] * each),
                    ratio(row["total"] / base["total"]),
                )
            )
    heads = ("granularity, scheduler, sharing", "compile s", "record us", "schedule us", "launches")
    heads += ("rows a launch", "kernels us", "total us", f"to {' '.join(BASE)}")
    return markdown(heads, lines)


def report(figures):
    """The tables in Markdown."""
    models = figures["models"]
    kinds = {
        "Where tensors decide": {n: rows for n, rows in models.items() if n in TARGETS},
        "Where structure decides": {n: rows for n, rows in models.items() if n not in TARGETS},
    }
    text = (
        "Microseconds are those of one instance. Analysis is *record* and *schedule*; it buys *rows a\n"
        "launch* and less time in *kernels*. Of `auto`, what it chose is in brackets.\n\n"
        "![Analysis against rows a launch and against the time in kernels]"
        f"(figures/{FIGURE.name})\n"
    )
    for title, some in kinds.items():
        if some:
            text += f"\n### {title}\n\n{table(some)}"
    for what, error in figures["refused"].items():
        text += f"\n`{what}` is refused: {error}\n"
    return text


def plot(figures, path):
    """Draws analysis against rows a launch and time in kernels, as multiples of the base's."""
    pyplot = plotter("analysis")
    models = {name: rows for name, rows in figures["models"].items() if rows}
    figure, axes = pyplot.subplots(1, 2, figsize=(12, 5), layout="constrained")
    markers = {"operator": "o", "block": "s", "function": "D", WHOLE: "^"}
    for index, (name, rows) in enumerate(models.items()):
        base, color = base_of(rows), f"C{index % 10}"
        for row in rows:
            x = row["analysis"] / max(base["analysis"], 1e-9)
            filled = "none" if row["sharing"] == "no sharing" else color
            style = {"color": color, "markerfacecolor": filled, "linestyle": "none"}
            style["marker"] = markers.get(row["granularity"], "x")
            axes[0].plot(x, row["mean rows"] / base["mean rows"], **style)
            axes[1].plot(x, row["kernels"] / max(base["kernels"], 1e-9), **style)
        axes[0].plot([], [], "o", color=color, label=name)
    for axis, what in zip(axes, ("rows a launch", "time in kernels")):
        axis.set(xscale="log", yscale="log", xlabel=f"analysis, 1 = {' '.join(BASE)}")
        axis.set(ylabel=f"{what}, the same", title=f"Analysis and {what}")
    for value, marker in markers.items():
        axes[1].plot([], [], marker, color="grey", label=value)
    axes[1].plot([], [], "o", color="grey", markerfacecolor="none", label="no sharing")
    axes[0].legend(fontsize="small")
    axes[1].legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
