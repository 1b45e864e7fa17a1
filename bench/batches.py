"""What batching by work gains: an encoder over texts of the lengths of `race`, in batches of equal numbers of
instances and in batches of equal `m.cost`.

    python3 bench/batches.py

Needs the wheels of Cohort. Times are of the processor, one thread. The longest batch is what the others of a step
wait for, where each of many workers has one.
"""

import argparse
import pathlib
import statistics
import time

import numpy as np

import cohort

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The lengths of the whole data set; where they are missing, quantiles of them, from which it draws.
LENGTHS = [ROOT.parent / "shared" / "data" / "lengths", ROOT / "bench" / "lengths"]
WIDE, INSIDE, LAYERS = 64, 128, 2


def lengths(count, random):
    path = next(path for folder in LENGTHS if (path := folder / "race.txt").exists())
    known = [int(line) for line in path.read_text().split()]
    return known[:count] if count <= len(known) else random.choice(known, count).tolist()


def model():
    random = np.random.default_rng(1)

    def weight(*shape):
        return (random.standard_normal(shape) / shape[-2 if len(shape) > 2 else -1] ** 0.5).astype(np.float32)

    shapes = {
        "wqkv": (LAYERS, WIDE, 3 * WIDE), "bqkv": (LAYERS, 3 * WIDE), "wp": (LAYERS, WIDE, WIDE), "bp": (LAYERS, WIDE),
        "g1": (LAYERS, WIDE), "b1": (LAYERS, WIDE), "wu": (LAYERS, WIDE, INSIDE), "bu": (LAYERS, INSIDE),
        "wd": (LAYERS, INSIDE, WIDE), "bd": (LAYERS, WIDE), "g2": (LAYERS, WIDE), "b2": (LAYERS, WIDE),
    }  # fmt: skip
    return cohort.compile(ROOT / "examples/encoder/encoder.coh", {name: weight(*shape) for name, shape in shapes.items()})


def by_number(instances, batches):
    size = -(-len(instances) // batches)
    return [instances[i : i + size] for i in range(0, len(instances), size)]


def by_cost(m, instances, batches):
    """That number of batches, each of about the same cost."""
    costs = [m.cost(instance) for instance in instances]
    most = sum(costs) / batches
    made, left = [[]], most
    for instance, cost in zip(instances, costs):
        if made[-1] and left < cost / 2 and len(made) < batches:
            made.append([])
            left += most
        made[-1].append(instance)
        left -= cost
    return made


def times(m, batches):
    result = []
    for batch in batches:
        begin = time.process_time()
        m(batch, batch=len(batch))
        result.append(time.process_time() - begin)
    return result


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--instances", type=int, default=1024)
    arguments.add_argument("--batches", type=int, default=64)
    arguments.add_argument("--turns", type=int, default=3)
    given = arguments.parse_args()
    random = np.random.default_rng(2)
    m = model()
    instances = [{"x": random.standard_normal((n, WIDE)).astype(np.float32)} for n in lengths(given.instances, random)]
    ways = {"by number": by_number(instances, given.batches), "by cost": by_cost(m, instances, given.batches)}
    seconds = {name: [] for name in ways}
    for _ in range(given.turns):
        for name, batches in ways.items():
            seconds[name].append(times(m, batches))
    print("| batches | instances/s | mean ms | longest ms | longest / mean |\n|---|---|---|---|---|")
    for name, turns in seconds.items():
        # Of each batch, the median over the turns.
        each = [statistics.median(turn) for turn in zip(*turns)]
        mean, longest = statistics.mean(each), max(each)
        rate = len(instances) / sum(each)
        print(f"| {name} | {rate:,.0f} | {1e3 * mean:.1f} | {1e3 * longest:.1f} | {longest / mean:.2f} |")


if __name__ == "__main__":
    main()
