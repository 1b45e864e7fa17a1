#!/usr/bin/env python3
"""Makes the weights and inputs that the benchmarks run the models of examples/ on.

    python3 bench/make_models.py FOLDER [--models act drnn] [--instances 512] [--size 256]

For each model it writes `FOLDER/<model>.safetensors` and `FOLDER/<model>.jsonl`, the same from
the same arguments. D = H = size, but for mvrnn a quarter of it. Weights are drawn as for the
goldens (test/goldens/models), whose scales let the numbers of steps and of nodes vary from
instance to instance. Inputs are real where shared data is there, else stand-ins, as corpora.py
says; vectors are random.
"""

import argparse
import importlib
import json
import math
import random
import sys
import zlib
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from corpora import (
    LATTICES,
    ROOT,
    SST_DEV,
    TAGS,
    dependencies,
    lengths_of,
    number_words,
    read_lattices,
    read_tagged,
    repeated,
)

EXAMPLE = ROOT / "examples" / "treelstm"

sys.path[:0] = [str(EXAMPLE), str(ROOT / "examples" / "listops"), str(ROOT / "test" / "goldens")]
from make_data import make_list  # noqa: E402
from ptb import encode, normalise, read_trees, words  # noqa: E402
from reference import matrix, table, vector  # noqa: E402

CLASSES = 5
# A state of mvrnn is a matrix, and each word has one: at size 256 a table of gigabytes.
MVRNN_PART = 4
# Rows of an embedding, whatever the corpus has, so that the weights are always the same ones.
VOCABULARY = 6000
# Factors and offsets of the votes that end a loop, where the goldens' scales would have nearly all
# instances of size 256 stop at the first step or at the last.
VOTES = {
    "act": {"wh": (0.7, 0.0), "bh": (1.0, 1.0)},
    "nestedrnn": {"bs": (1.0, -0.5)},
    "ponder": {"wp": (4.0, 0.0)},
}


class Corpus:
    """Sentences and their parse trees, with the words numbered from 1."""

    def __init__(self, instances):
        path = SST_DEV if SST_DEV.exists() else EXAMPLE / "trees.txt"
        trees = read_trees(path)
        # The order of a corpus is not chance: its first lines may be shorter than the rest.
        np.random.default_rng(0).shuffle(trees)
        listed = sorted({normalise(word) for tree in trees for word in words(tree)})
        self.trees = (trees * math.ceil(instances / len(trees)))[:instances]
        assert len(listed) < VOCABULARY, f"{len(listed)} words"
        self.vocabulary = {word: number for number, word in enumerate(["<unk>", *listed])}

    def sentences(self):
        """The word numbers of each sentence."""
        return [[self.vocabulary[normalise(word)] for word in words(tree)] for tree in self.trees]


def make_inputs(name, model, corpus, count, size, rng):
    """The instances of a model, without their ids."""
    if name == "act":
        return [{"x": table(rng, size, scale=1.5)} for _ in range(count)]
    if name == "drnn":
        return [{"seed": table(rng, size, scale=1.5)} for _ in range(count)]
    if name == "birnn" and TAGS.exists():
        sentences = read_tagged(TAGS.read_text(encoding="utf-8"))
        return [{"words": words} for words in repeated(number_words(sentences, VOCABULARY), count)]
    if name in ("birnn", "nestedrnn", "stackrnn"):
        return [{"words": sentence} for sentence in corpus.sentences()]
    if name == "childsum":
        trees = [dependencies(encode(tree, corpus.vocabulary)) for tree in corpus.trees]
        # Two different sentences, also where there are as many trees as instances.
        return [{"a": a, "b": b} for a, b in zip(trees, trees[1:] + trees[:1])]
    if name == "dagrnn":
        return [{"nodes": [{"Node": node} for node in graph]} for graph in graphs(model, count, rng)]
    if name in ("encoder", "masked_mha", "berxit"):
        # One digit behind the point, so that the text is short.
        return [{"x": np.round(rng.standard_normal((n, size)), 1).tolist()} for n in lengths_of("mnli", count)]
    if name == "exprtree":
        rows = rng.integers(size // 2, 3 * size // 2, count)
        return [{"e": model.random_expression(rng, 6), "x": table(rng, int(n), 3)} for n in rows]
    if name == "ponder":
        return [{"tape": rng.integers(0, 3, n).tolist()} for n in lengths_of("mnli", count)]
    if name == "listops":
        draw = random.Random(int(rng.integers(1 << 30)))
        return [{"e": make_list(draw, 4)[0]} for _ in range(count)]
    return [{"t": encode(tree, corpus.vocabulary)} for tree in corpus.trees]


def graphs(model, count, rng):
    """The graphs of dagrnn: lattices, or random ones like them, up to four edges from the last few nodes."""
    if LATTICES.exists():
        lattices = read_lattices(LATTICES.read_text(encoding="utf-8"))
        numbered = number_words([[word for word, _ in lattice] for lattice in lattices], VOCABULARY)
        pairs = [
            [[word, before] for word, (_, before) in zip(words, lattice)] for words, lattice in zip(numbered, lattices)
        ]
        return repeated(pairs, count)
    sizes = rng.integers(10, 40, count)
    made = [model.dag(rng, model.random_predecessors(rng, int(nodes), 4, 6)) for nodes in sizes]
    return [[node["Node"] for node in graph["nodes"]] for graph in made]


class Lstm:
    """The models that are an LSTM and have no golden: listops, and ponder, which reads about eight symbols."""

    def __init__(self, name):
        self.name = name

    def make_weights(self, rng):
        size, symbols = self.H, {"listops": {"digits": 10, "ops": 4}, "ponder": {"emb": 3}}[self.name]
        weights = {name: rng.standard_normal((rows, size)).astype(np.float32) for name, rows in symbols.items()}
        weights |= {"wx": matrix(rng, size, 4 * size), "wh": matrix(rng, size, 4 * size), "b": vector(rng, 4 * size)}
        if self.name == "listops":
            weights |= {"wu": matrix(rng, size, size), "bu": vector(rng, size)}
            return weights | {"wo": matrix(rng, size, 10), "bo": vector(rng, 10)}
        weights |= {"wp": matrix(rng, size, 1), "bp": vector(rng, 1, scale=0.0, mean=-2.5)}
        return weights | {"wo": matrix(rng, size, 2), "bo": vector(rng, 2)}


# What most benchmarks measure, and what only the comparison with every peer does besides.
MODELS = "treelstm treegru treefc mvrnn childsum dagrnn birnn act nestedrnn drnn stackrnn".split()
MORE = "ponder listops encoder masked_mha berxit exprtree".split()


def make(folder, name, corpus, count, size):
    """Writes the weights and the instances of one model."""
    model = Lstm(name) if name in ("listops", "ponder") else importlib.import_module(f"models.{name}")
    size = size // MVRNN_PART if name == "mvrnn" else size
    model.V, model.D, model.H, model.C = VOCABULARY, size, size, CLASSES
    model.L, model.F = 1, 4 * size
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    weights = model.make_weights(rng)
    for vote, (factor, offset) in VOTES.get(name, {}).items():
        weights[vote] = weights[vote] * np.float32(factor) + np.float32(offset)
    instances = make_inputs(name, model, corpus, count, size, rng)
    if weights:
        save_file(weights, folder / f"{name}.safetensors")
    with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as lines:
        for number, instance in enumerate(instances, start=1):
            lines.write(json.dumps({"id": f"s{number}", **instance}) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", choices=MODELS + MORE, default=MODELS)
    parser.add_argument("--instances", type=int, default=512)
    parser.add_argument("--size", type=int, default=256, help="D = H")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(options.instances)
    for name in options.models:
        make(options.folder, name, corpus, options.instances, options.size)


if __name__ == "__main__":
    main()
