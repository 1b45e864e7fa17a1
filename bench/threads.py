"""Two threads against one, of every model that has data.

Runs with one and with two threads take turns over the same instances; what is compared is the fastest pass over
all of them, from the first instance read to the last result.
"""

from common import Refused, least_seconds_of, make_data, markdown, number, ratio, run_program
from control import TARGETS
from make_models import MODELS, MORE

SIZES, BATCH, THREADS = (64, 256), 64, (1, 2)
# Below this a batch is too short for threads to be worth asking for.
LONG = 0.01
# How a table calls the two ways to run.
WAYS = {"--batch": "batches", "--in-flight": "in flight"}


def way_of(name):
    """How the program runs: one that waits for tensors keeps its instances in flight."""
    return "--in-flight" if name in TARGETS else "--batch"


def measure_one(options, data, name):
    """The seconds of a pass by the number of threads."""
    found, way = {}, way_of(name)
    for _ in range(options.turns):
        for threads in THREADS:
            passes = options.repetitions
            stats = run_program(options, data, name, passes, way, BATCH, threads=threads)
            found[threads] = min(found.get(threads, float("inf")), least_seconds_of([stats]))
    return {"seconds": found, "batches": max(1, stats["instances"] / BATCH), "way": WAYS[way]}


def measure(options):
    """The figures of all models at all sizes."""
    models = options.models or MODELS + MORE
    figures = {"sizes": {}, "refused": {}}
    for size in options.sizes or SIZES:
        data = make_data(options, models, size, options.instances // 4)
        rows = figures["sizes"][size] = {}
        for name in models:
            try:
                rows[name] = measure_one(options, data, name)
            except Refused as error:
                figures["refused"][f"{name} at {size}"] = str(error)
    return figures


def report(figures):
    """The table in Markdown."""
    lines = []
    for size, rows in figures["sizes"].items():
        for name, row in rows.items():
            one, two = (row["seconds"][threads] for threads in THREADS)
            a_batch = one / row["batches"]
            star = " *" if a_batch >= LONG else ""
            lines.append(
                (
                    f"{name} at {size}, {row['way']}{star}",
                    number(1e3 * a_batch),
                    number(1e3 * two / row["batches"]),
                    ratio(one / two),
                )
            )
    text = (
        f"Milliseconds a batch of {BATCH} with one thread and with two, which take turns; *in flight* has as many instances at a\n"
        "time. A star marks what takes 10 ms a batch or more on one thread.\n\n"
    )
    text += markdown(("model", "one thread", "two", "faster"), lines)
    for what, error in figures["refused"].items():
        text += f"\n`{what}` is refused: {error}\n"
    return text
