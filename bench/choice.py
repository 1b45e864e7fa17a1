"""Whether what is chosen by default is as good as what one may ask for: no batching at all, and each scheduler.

How many instances a batch has is chosen as well where nobody says it. Ways take turns, each turn in the other order, and
in each turn the default is one of them. What counts is the fastest pass of all turns, which other programs disturb least.
"""

import json

from common import RESULTS, ROOT, least_seconds_of, make_data, markdown, number, run, run_program, values_of
from make_models import MODELS, MORE

# Sizes where a launch costs much beside its rows, and little.
SIZES = (64, 256)
# None is what is chosen.
BATCHES = (1, 8, 64, None)
# By how many times the default may be slower than another way.
MOST_SLOWER = {"--no-batch": 1.02, "--scheduler": 1.03}
# Seconds of passes a turn, and how many passes these may be.
ENOUGH, PASSES = 0.15, (3, 40)
UNBATCHED = ("--no-batch",)


def ways_of(options):
    """What one may ask for in place of the default."""
    schedulers = [name for name in values_of(options, "scheduler") if name != "auto"]
    return [UNBATCHED, *(("--scheduler", name) for name in schedulers)]


def compile_once(options, data, name):
    """The program as an artifact, so that no turn compiles."""
    weights = data / f"{name}.safetensors"
    weights = ("--weights", weights) if weights.exists() else ()
    program = ROOT / "examples" / name / f"{name}.coh"
    flags = ("--emit=artifact", "--target-cpu=native", "-o", data / f"{name}.cohort")
    run([options.batch_opt, program, *weights, *flags])
    return data / f"{name}.cohort"


def compare(options, data, name, program):
    """Of each batch the least seconds of a pass, and how many times as long that is as in each other way."""
    ways = ways_of(options)
    batched = [(batch, way) for batch in BATCHES for way in ((), *ways) if way != UNBATCHED]
    keys = [*batched, (None, UNBATCHED)]

    def turn(key, repetitions):
        batch, way = key
        arguments = [*(() if batch is None else ("--batch", batch)), *way]
        return run_program(options, data, name, repetitions, *arguments, program=program)

    turns, used, repetitions = {key: [] for key in keys}, {}, {}
    for batch in BATCHES:
        seconds = least_seconds_of([turn((batch, ()), 1)])
        repetitions[batch] = min(max(int(ENOUGH / seconds), PASSES[0]), PASSES[1])
    for number_of_turn in range(max(options.turns, 3)):
        for key in keys if number_of_turn % 2 == 0 else reversed(keys):
            stats = turn(key, repetitions[key[0]])
            turns[key].append(stats)
            if stats.get("scheduler"):
                used[key] = stats["scheduler"]["used"]
    least = {key: least_seconds_of(stats) for key, stats in turns.items()}
    rows = []
    for batch in BATCHES:
        default = least[batch, ()]
        of_way = {way: least[None if way == UNBATCHED else batch, way] for way in ways}
        ratios = {" ".join(way): default / seconds for way, seconds in of_way.items()}
        rows.append({"batch": batch, "seconds": default, "used": used.get((batch, ())), "ratios": ratios})
    return rows


def measure(options):
    """The figures of all models at both sizes; with --resume, what is there is not measured again."""
    kept = RESULTS / "choice.json"
    figures = json.loads(kept.read_text()) if options.resume and kept.exists() else {}
    for size in options.sizes or SIZES:
        models = options.models or MODELS + MORE
        data = make_data(options, models, size, options.instances // 8)
        for name in models:
            title = f"{name} {size}"
            if title not in figures:
                figures[title] = compare(options, data, name, compile_once(options, data, name))
                kept.write_text(json.dumps(figures, indent=1) + "\n")
    return figures


def missed(way, value):
    """Whether that way is faster than the default by more than it may be."""
    return value > MOST_SLOWER[way.split()[0]]


def report(figures):
    """The table in Markdown; what is faster by more than it may be has a star."""
    lines = []
    for name, rows in figures.items():
        for row in rows:
            batch = "as chosen" if row["batch"] is None else str(row["batch"])
            cells = [f"{value:.2f}x" + (" *" if missed(way, value) else "") for way, value in row["ratios"].items()]
            lines.append((f"{name}, {batch}", number(row["seconds"] * 1e3), row["used"] or "-", *cells))
    ways = next(iter(figures.values()))[0]["ratios"]
    text = (
        "How many times as long the default takes as another way: of all instances, one thread, the fastest pass of turns in\n"
        "which all ways take part. *Chosen* is the scheduler at the end of a run. Where the number of instances in a batch is\n"
        "given, that is obeyed; *as chosen* is without. A star marks what is faster by more than 2 % (`--no-batch`) or 3 %.\n\n"
    )
    heads = ("model and size, batch", "ms", "chosen", *(f"`{way}`" for way in ways))
    return text + markdown(heads, lines)
