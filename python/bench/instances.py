"""What it costs to take instances from Python: CPU a tree of 38 nodes, as tuples, dataclasses, JSON's form and
flat arrays. The trees are built and thrown away by a program that does nothing with them.

    python python/bench/instances.py [COUNT]
"""

import pathlib
import sys
import tempfile
import time

import numpy as np

import cohort

PROGRAM = """
type Tree = Leaf(i32) | Node(Tree, Tree) | Root(Tree)
fn main(t: Tree) -> i32 { 0 }
"""
NODES = 38


def tuples(rng):
    """Of 19 leaves, 18 inner nodes and a root."""
    parts = [("Leaf", int(word)) for word in rng.integers(0, 1000, 19)]
    while len(parts) > 1:
        at = rng.integers(0, len(parts) - 1)
        parts[at : at + 2] = [("Node", parts[at], parts[at + 1])]
    return ("Root", parts[0])


def as_json(tree):
    return {tree[0]: [as_json(part) if isinstance(part, tuple) else part for part in tree[1:]]}


def as_objects(types, tree):
    return getattr(types, tree[0])(*[as_objects(types, part) if isinstance(part, tuple) else part for part in tree[1:]])


def flat(trees):
    tags, words, ends = [], [], []

    def walk(tree):
        for part in tree[1:]:
            if isinstance(part, tuple):
                walk(part)
        tags.append(("Leaf", "Node", "Root").index(tree[0]))
        if tree[0] == "Leaf":
            words.append(tree[1])

    for tree in trees:
        walk(tree)
        ends.append(len(tags))
    return {"tags": np.array(tags, np.uint8), "ends": np.array(ends), "Leaf": [np.array(words, np.int32)]}


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "trees.coh")
        path.write_text(PROGRAM)
        m = cohort.compile(path)
    rng = np.random.default_rng(0)
    trees = [tuples(rng) for _ in range(count)]
    forms = {
        "tuples": [{"t": tree} for tree in trees],
        "dataclasses": [{"t": as_objects(m.types, tree)} for tree in trees],
        "JSON's form": [{"t": as_json(tree)} for tree in trees],
    }
    arrays = flat(trees)
    # What is left of a call when there is nothing to read of an instance.
    path = pathlib.Path(tempfile.mkdtemp(), "nothing.coh")
    path.write_text("fn main(k: i32) -> i32 { 0 }")
    nothing = cohort.compile(path)
    rest = best(lambda: nothing([{"k": 1}] * count), count)
    rest_of_flat = best(lambda: nothing(nothing.flat(k=np.ones(count, np.int32))), count)
    for name, instances in forms.items():
        print(f"{best(lambda: m(instances), count) - rest:6.2f} us  {name}")
    print(f"{best(lambda: m(m.flat(t=arrays)), count) - rest_of_flat:6.2f} us  flat arrays")
    print(f"{rest:6.2f} us  all else, the same for each; {rest_of_flat:.2f} us for flat arrays")


def best(run, count):
    """CPU an instance, in microseconds, of the best of five runs."""
    times = []
    for _ in range(5):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return 1e6 * min(times) / count


if __name__ == "__main__":
    main()
