#!/usr/bin/env python3
"""Makes the benchmark's weights and inputs: random TreeLSTMs over the trees of SST dev.

    python3 bench/make_sst.py FOLDER [--sizes 64 256] [--trees FILE]

Writes `FOLDER/sst.jsonl` and, for each size, `FOLDER/treelstm-<size>.safetensors` with
D = H = size. Where the trees of SST are missing it takes the example's own sentences,
repeated to about as many trees.
"""

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from corpora import ROOT, SST_DEV

EXAMPLE = ROOT / "examples" / "treelstm"
CLASSES = 5
ABOUT_AS_MANY = 1100

sys.path.insert(0, str(EXAMPLE))
from ptb import encode, normalise, read_trees, words  # noqa: E402


def load_trees(path):
    """The trees to run over: those of `path` if it exists, else the example's, repeated."""
    if path.exists():
        return read_trees(path)
    trees = read_trees(EXAMPLE / "trees.txt")
    return trees * math.ceil(ABOUT_AS_MANY / len(trees))


def random_weights(vocabulary, size):
    """Weights of the treelstm program with V words and D = H = size, float32."""
    rng = np.random.default_rng(size)

    def uniform(*shape):
        limit = 1 / math.sqrt(size)
        return rng.uniform(-limit, limit, shape).astype(np.float32)

    return {
        "emb": rng.standard_normal((vocabulary, size)).astype(np.float32),
        "wx": uniform(size, 3 * size),
        "bx": uniform(3 * size),
        "ul": uniform(size, 5 * size),
        "ur": uniform(size, 5 * size),
        "b": uniform(5 * size),
        "wo": uniform(size, CLASSES),
        "bo": uniform(CLASSES),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--trees", type=Path, default=SST_DEV, help="trees, one a line")
    options = parser.parse_args()

    trees = load_trees(options.trees)
    listed = sorted({normalise(word) for tree in trees for word in words(tree)})
    vocabulary = {word: number for number, word in enumerate(["<unk>", *listed])}
    options.folder.mkdir(parents=True, exist_ok=True)
    with open(options.folder / "sst.jsonl", "w", encoding="utf-8") as lines:
        for number, tree in enumerate(trees, start=1):
            lines.write(json.dumps({"id": f"s{number}", "t": encode(tree, vocabulary)}) + "\n")
    for size in options.sizes:
        weights = random_weights(len(vocabulary), size)
        save_file(weights, options.folder / f"treelstm-{size}.safetensors")


if __name__ == "__main__":
    main()
