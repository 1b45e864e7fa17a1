"""Two threads against one, of every model that has data: in batches, and of one instance alone.

Runs with one and with two threads take turns over the same instances; what is compared is the fastest pass over
all of them, from the first instance read to the last result; and for one instance, the largest of all, the median of
the turn that was disturbed least.
"""

from common import Refused, least_seconds_of, make_data, markdown, number, ratio, run_program, seconds_of
from control import TARGETS
from make_models import MODELS, MORE

SIZES, BATCH, THREADS = (64, 256), 64, (1, 2)
# Below this a batch is too short for threads to be worth asking for.
LONG = 0.01
# How long a turn over one instance takes about, and passes at least and at most.
TURN_SECONDS, PASSES = 0.4, (200, 5000)
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
            # Each thread has a batch, or as many in flight.
            count = BATCH * threads if way == "--in-flight" else BATCH
            stats = run_program(options, data, name, passes, way, count, threads=threads)
            found[threads] = min(found.get(threads, float("inf")), least_seconds_of([stats]))
    return {"seconds": found, "batches": max(1, stats["instances"] / BATCH), "way": WAYS[way]}


def measure_alone(options, data, name, seconds):
    """The median seconds of a pass over the largest instance in the best turn, by the number of threads; one takes about
    so many seconds."""
    passes = min(max(int(TURN_SECONDS / seconds), PASSES[0]), PASSES[1])
    lines = (data / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    alone = data / "alone"
    alone.mkdir(exist_ok=True)
    (alone / f"{name}.jsonl").write_text(max(lines, key=len), encoding="utf-8")
    weights = data / f"{name}.safetensors"
    if weights.exists() and not (alone / weights.name).exists():
        (alone / weights.name).symlink_to(weights)
    found = {threads: float("inf") for threads in THREADS}
    for _ in range(options.turns):
        for threads, least in found.items():
            stats = run_program(options, alone, name, passes, threads=threads)
            found[threads] = min(least, seconds_of([stats]))
    return found


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
                seconds = rows[name]["seconds"][1] / BATCH / rows[name]["batches"]
                rows[name]["alone"] = measure_alone(options, data, name, seconds)
            except Refused as error:
                figures["refused"][f"{name} at {size}"] = str(error)
    return figures


def report(figures):
    """The table in Markdown."""
    lines, alone = [], []
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
            one, two = (row["alone"][threads] for threads in THREADS)
            alone.append((f"{name} at {size}", number(1e3 * one), number(1e3 * two), ratio(one / two)))
    text = (
        f"Milliseconds a batch of {BATCH} with one thread and with two, which take turns; *in flight* has as many instances at a\n"
        "time on each thread. A star marks what takes 10 ms a batch or more on one thread.\n\n"
    )
    text += markdown(("model", "one thread", "two", "faster"), lines)
    text += "\nMilliseconds of one instance alone, the largest, by the median pass of the best turn: threads share its products.\n\n"
    text += markdown(("model", "one thread", "two", "faster"), alone)
    for what, error in figures["refused"].items():
        text += f"\n`{what}` is refused: {error}\n"
    return text
