#!/usr/bin/env python3
"""Turns the Stanford Sentiment Treebank into input for the sst program.

    python3 examples/sst/prepare.py --data FOLDER --output FOLDER [--binary] [--limit N]
                                    [--least N] [--trees FILE]
                                    [--vectors glove.840B.300d.txt]

--data is the folder with `train.txt`, `dev.txt` and `test.txt`, one labelled tree a line. Writes
`train.jsonl`, `dev.jsonl` and `test.jsonl`, and `vocab.txt`: one word a line, whose number is the line's
from 0, the unknown word; they are the words of the training trees, with --least those that occur there as
often. With --binary trees that are
neutral are left out, and neutral nodes of the others have no label. With --vectors, one word and its
numbers a line, also `emb.safetensors`: those of the words that have one there, and small random ones. With
--trees also `input.jsonl`: trees of any other file, which need no labels, in the same numbers of words.
"""

import argparse
import json
import random
import struct
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "treelstm"))

from ptb import normalise, read_trees, read_vocabulary, word_number, words  # noqa: E402

PARTS = ("train", "dev", "test")
NEUTRAL = 2
NO_LABEL = -1


def binary_label(label):
    """0 for negative, 1 for positive."""
    return NO_LABEL if label == NEUTRAL else int(label > NEUTRAL)


def encode(tree, vocabulary, label_of):
    label = NO_LABEL if tree[0] is None else label_of(tree[0])
    if len(tree) == 2:
        return {"Leaf": [label, word_number(vocabulary, tree[1])]}
    return {"Node": [label, *(encode(child, vocabulary, label_of) for child in tree[1:])]}


def write_vectors(path, vectors, vocabulary):
    """The embeddings as a safetensors file."""
    found = {}
    with open(vectors, encoding="utf-8") as lines:
        for line in lines:
            word, *numbers = line.rstrip("\n").split(" ")
            if word in vocabulary:
                found[word] = [float(number) for number in numbers]
    if not found:
        raise SystemExit(f"{vectors} has none of the words")
    width = len(next(iter(found.values())))
    rng = random.Random(1)
    rows = [
        found.get(word) or [rng.uniform(-0.05, 0.05) for _ in range(width)]
        for word in sorted(vocabulary, key=vocabulary.get)
    ]
    data = b"".join(struct.pack(f"<{width}f", *row) for row in rows)
    shape = [len(rows), width]
    tensor = {"dtype": "F32", "shape": shape, "data_offsets": [0, len(data)]}
    header = json.dumps({"emb": tensor}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    print(f"{len(found)} of {len(rows)} words have a vector")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--binary", action="store_true")
    parser.add_argument("--limit", type=int, help="use at most this many trees of each part")
    parser.add_argument("--least", type=int, default=1, help="how often a word of the vocabulary occurs")
    parser.add_argument("--trees", type=Path, help="other trees, one a line")
    parser.add_argument("--vectors", type=Path)
    return parser.parse_args()


def main():
    options = parse_options()
    trees = {part: read_trees(options.data / f"{part}.txt") for part in PARTS}
    if options.binary:
        polar = {part: [tree for tree in trees[part] if tree[0] != NEUTRAL] for part in PARTS}
        trees = polar
    trees = {part: trees[part][: options.limit] for part in PARTS}
    options.output.mkdir(parents=True, exist_ok=True)
    counts = Counter(normalise(word) for tree in trees["train"] for word in words(tree))
    listed = sorted(word for word, count in counts.items() if count >= options.least)
    vocabulary_file = options.output / "vocab.txt"
    vocabulary_file.write_text("\n".join(["<unk>", *listed]) + "\n", encoding="utf-8")
    vocabulary = read_vocabulary(vocabulary_file)
    label_of = binary_label if options.binary else lambda label: label
    if options.trees:
        trees["input"] = read_trees(options.trees)
    for part in trees:
        with open(options.output / f"{part}.jsonl", "w", encoding="utf-8") as lines:
            for number, tree in enumerate(trees[part], start=1):
                instance = {"id": f"{part}{number}", "t": encode(tree, vocabulary, label_of)}
                lines.write(json.dumps(instance) + "\n")
    if options.vectors:
        write_vectors(options.output / "emb.safetensors", options.vectors, vocabulary)
    print(f"{len(vocabulary)} words: --dim V={len(vocabulary)}")


if __name__ == "__main__":
    main()
