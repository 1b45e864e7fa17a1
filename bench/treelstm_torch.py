#!/usr/bin/env python3
"""The treelstm program in PyTorch, as the peer that the benchmark compares with.

    python3 bench/treelstm_torch.py --mode eager|level --weights W --input X [--batch N]
                                    [--threads T] [--repeat R] [--output FILE]

`eager` runs one tree at a time by recursion. `level` runs N trees at once, batched by
level by hand: nodes of the same height in all the trees form one set of large operations.
Linearising the trees is inside the measured time; reading the files is not. The weights
and the JSON Lines are those of the program, and `--output` writes what it would write.

Prints one JSON object: the seconds of each repetition over all trees, the median trees a
second, and the median seconds of a repetition that linearising took.
"""

import argparse
import json
import statistics
import time

import numpy as np
import torch
from safetensors.torch import load_file

# A node's number while its row is unknown: its level above this bit, its position below.
LEVEL_SHIFT = 32
POSITION_MASK = (1 << LEVEL_SHIFT) - 1


def compact(tree):
    """A parsed JSON tree as a word number or a pair of trees."""
    ((name, fields),) = tree.items()
    if name == "Leaf":
        return fields[0]
    return (compact(fields[0]), compact(fields[1]))


def read_instances(path):
    """The ids and the trees of a JSON Lines file."""
    with open(path, encoding="utf-8") as lines:
        instances = [json.loads(line) for line in lines if line.strip()]
    ids = [instance.get("id", str(k + 1)) for k, instance in enumerate(instances)]
    return ids, [compact(instance["t"]) for instance in instances]


class Eager:
    """One tree at a time, one node at a time, as one would first write it."""

    def __init__(self, weights):
        self.w = weights

    def cell(self, tree):
        """The hidden and the cell state [1,H] of a tree."""
        w = self.w
        if isinstance(tree, int):
            gates = torch.addmm(w["bx"], w["emb"][tree : tree + 1], w["wx"])
            i, o, u = gates.chunk(3, dim=1)
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            hl, cl = self.cell(tree[0])
            hr, cr = self.cell(tree[1])
            gates = torch.addmm(torch.addmm(w["b"], hl, w["ul"]), hr, w["ur"])
            i, o, u, fl, fr = gates.chunk(5, dim=1)
            c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(fl) * cl + torch.sigmoid(fr) * cr
        return torch.sigmoid(o) * torch.tanh(c), c

    def run(self, trees):
        """The scores [N,C] of N trees and the seconds spent on linearising, none here."""
        hidden = [self.cell(tree)[0] for tree in trees]
        return torch.addmm(self.w["bo"], torch.cat(hidden), self.w["wo"]), 0.0


class Forest:
    """Several trees linearised: rows of leaves first, then one range of rows a level.

    `words` [leaves]; `levels` holds a pair for each level from 1 up: its first row, and the
    rows [2 m] of the left and the right child of each of its m nodes in turn; `roots` [N].
    """

    def __init__(self, trees):
        words, children = [], []

        def place(tree):
            """Appends a subtree; returns its root's level and position as one number."""
            if isinstance(tree, int):
                words.append(tree)
                return len(words) - 1
            left, right = place(tree[0]), place(tree[1])
            level = max(left, right) >> LEVEL_SHIFT
            if level == len(children):
                children.append([])
            row = children[level]
            row.append(left)
            row.append(right)
            return ((level + 1) << LEVEL_SHIFT) + (len(row) >> 1) - 1

        numbers = np.array([place(tree) for tree in trees])
        sizes = [len(words), *(len(row) >> 1 for row in children)]
        first = np.cumsum([0, *sizes])
        flat = np.array([number for row in children for number in row], dtype=np.int64)
        rows = torch.from_numpy(first[flat >> LEVEL_SHIFT] + (flat & POSITION_MASK))
        self.words = torch.tensor(words)
        self.levels = list(zip(first[1:-1].tolist(), rows.split([2 * m for m in sizes[1:]])))
        self.roots = torch.from_numpy(first[numbers >> LEVEL_SHIFT] + (numbers & POSITION_MASK))
        self.rows = int(first[-1])


class Level:
    """All trees of a batch at once, level by level.

    The gates are reordered once so that the sigmoid ones lie side by side and each level
    takes one gather of states, one product, one sigmoid and two tanh.
    """

    def __init__(self, weights):
        w = weights
        self.size = size = w["wo"].shape[0]

        def sigmoids_first(tensor):
            i, o, u, *forget = tensor.split(size, dim=-1)
            return torch.cat([i, o, *forget, u], dim=-1).contiguous()

        self.emb, self.wo, self.bo = w["emb"], w["wo"], w["bo"]
        self.wx, self.bx = sigmoids_first(w["wx"]), sigmoids_first(w["bx"])
        self.u, self.b = sigmoids_first(torch.cat([w["ul"], w["ur"]])), sigmoids_first(w["b"])

    def leaves(self, words, h, c):
        """Fills the states h, c [m,H] of the leaves."""
        size = self.size
        gates = torch.addmm(self.bx, self.emb.index_select(0, words), self.wx)
        i, o = gates[:, : 2 * size].sigmoid_().split(size, dim=1)
        torch.mul(i, gates[:, 2 * size :].tanh_(), out=c)
        torch.tanh(c, out=h).mul_(o)

    def inner(self, rows, all_h, all_c, h, c):
        """Fills the states h, c [m,H] of a level from its children's rows [2 m]."""
        below = all_h.index_select(0, rows), all_c.index_select(0, rows)
        self.cell(*(states.view(len(h), -1) for states in below), h, c)

    def cell(self, children_h, children_c, h, c):
        """The same from both children's states side by side [m,2H]; changes `children_c`."""
        size = self.size
        gates = torch.addmm(self.b, children_h, self.u)
        i, o, forget = gates[:, : 4 * size].sigmoid_().split([size, size, 2 * size], dim=1)
        kept_left, kept_right = children_c.mul_(forget).split(size, dim=1)
        torch.mul(i, gates[:, 4 * size :].tanh_(), out=c).add_(kept_left).add_(kept_right)
        torch.tanh(c, out=h).mul_(o)

    def run(self, trees):
        """The scores [N,C] of N trees and the seconds spent on linearising."""
        began = time.perf_counter()
        forest = Forest(trees)
        linearised = time.perf_counter() - began
        h, c = torch.empty(2, forest.rows, self.size)
        leaves = len(forest.words)
        self.leaves(forest.words, h[:leaves], c[:leaves])
        for first, rows in forest.levels:
            end = first + len(rows) // 2
            self.inner(rows, h, c, h[first:end], c[first:end])
        return torch.addmm(self.bo, h.index_select(0, forest.roots), self.wo), linearised


def run_all(model, trees, batch):
    """The scores of all trees in batches, the seconds taken, and those of linearising."""
    outputs, linearising = [], 0.0
    began = time.perf_counter()
    for start in range(0, len(trees), batch):
        scores, seconds = model.run(trees[start : start + batch])
        outputs.append(scores)
        linearising += seconds
    return outputs, time.perf_counter() - began, linearising


def write_outputs(path, ids, outputs):
    """Writes the scores as the program's JSON Lines."""
    with open(path, "w", encoding="utf-8") as lines:
        for name, scores in zip(ids, torch.cat(outputs).numpy(), strict=True):
            output = [float(str(score)) for score in scores]
            lines.write(json.dumps({"id": name, "output": output}) + "\n")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("eager", "level"), required=True)
    parser.add_argument("--weights", required=True, help="safetensors")
    parser.add_argument("--input", required=True, help="JSON Lines")
    parser.add_argument("--output", help="JSON Lines to write")
    parser.add_argument("--batch", type=int, default=1, help="trees at once")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1, help="measured repetitions")
    return parser.parse_args()


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    ids, trees = read_instances(options.input)
    weights = load_file(options.weights)
    model = Level(weights) if options.mode == "level" else Eager(weights)
    with torch.inference_mode():
        outputs, _, _ = run_all(model, trees, options.batch)  # Warms up.
        timings = [run_all(model, trees, options.batch)[1:] for _ in range(options.repeat)]
    if options.output:
        write_outputs(options.output, ids, outputs)
    seconds = [total for total, _ in timings]
    median = statistics.median(seconds)
    report = {
        "mode": options.mode,
        "batch": options.batch,
        "threads": options.threads,
        "trees": len(trees),
        "seconds": seconds,
        "linearise_seconds": statistics.median(linearising for _, linearising in timings),
        "trees_per_second": len(trees) / median,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
