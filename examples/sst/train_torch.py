#!/usr/bin/env python3
"""Trains the sst program's model in PyTorch, batched by level by hand, to compare with.

    python3 examples/sst/train_torch.py --data FOLDER [--binary] [--seed 1] [--epochs 20] [--output W]

Same model, initialisation, loss, optimiser and order of magnitude of everything as `batch-train` with the
options of README.md: AdaGrad of rate 0.05, 0.1 for embeddings, L2 of 1e-4 on all others, dropout of 0.5
before the classifier, every node that has a label supervised, batches of 25. Prints a line an epoch, with
its seconds, and in the end the accuracy on test of the best epoch on dev.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "treelstm"))

from prepare import NEUTRAL, PARTS, binary_label  # noqa: E402
from ptb import normalise, read_trees, words  # noqa: E402
from train import Batch, FlatTree  # noqa: E402


class TreeLstm(nn.Module):
    """The constituency TreeLSTM, with the names, shapes and row vectors of the program."""

    def __init__(self, vocabulary, width, size, classes):
        super().__init__()

        def uniform(limit, *shape):
            return nn.Parameter(torch.empty(shape).uniform_(-limit, limit))

        self.emb = uniform(0.05, vocabulary, width)
        self.wx, self.bx = uniform(0.06, width, 2 * size), nn.Parameter(torch.zeros(2 * size))
        self.ul, self.ur = uniform(0.08, size, 5 * size), uniform(0.08, size, 5 * size)
        self.b = nn.Parameter(torch.zeros(5 * size))
        self.wo, self.bo = uniform(0.08, size, classes), nn.Parameter(torch.zeros(classes))
        self.dropout = nn.Dropout(0.5)

    def forward(self, batch):
        """The scores [nodes, C] of every node, in the order of the batch's rows."""
        c, o = (self.emb[batch.leaf_words] @ self.wx + self.bx).chunk(2, dim=1)
        h = torch.sigmoid(o) * torch.tanh(c)
        for left, right in batch.levels:
            gates = h[left] @ self.ul + h[right] @ self.ur + self.b
            i, fl, fr, o, u = gates.chunk(5, dim=1)
            level = torch.sigmoid(i) * torch.tanh(u)
            level = level + torch.sigmoid(fl) * c[left] + torch.sigmoid(fr) * c[right]
            c = torch.cat([c, level])
            h = torch.cat([h, torch.sigmoid(o) * torch.tanh(level)])
        return self.dropout(h) @ self.wo + self.bo


def relabel(tree, label_of):
    if len(tree) == 2:
        return (label_of(tree[0]), tree[1])
    return (label_of(tree[0]), *(relabel(child, label_of) for child in tree[1:]))


def read_parts(folder, binary):
    """The trees of each part, flat, and how many words there are."""
    trees = {part: read_trees(folder / f"{part}.txt") for part in PARTS}
    if binary:
        polar = {part: [tree for tree in trees[part] if tree[0] != NEUTRAL] for part in PARTS}
        trees = {part: [relabel(tree, binary_label) for tree in polar[part]] for part in PARTS}
    listed = sorted({normalise(word) for tree in trees["train"] for word in words(tree)})
    vocabulary = {word: number for number, word in enumerate(["<unk>", *listed])}
    flat = {part: [FlatTree(tree, vocabulary) for tree in trees[part]] for part in PARTS}
    return flat, len(vocabulary)


def accuracy(model, trees):
    """Of the roots."""
    model.eval()
    right = 0
    with torch.inference_mode():
        for start in range(0, len(trees), 64):
            batch = Batch(trees[start : start + 64])
            found = model(batch)[batch.roots].argmax(dim=1)
            right += (found == batch.labels[batch.roots]).sum().item()
    return right / len(trees)


def train_epoch(model, optimiser, trees, batch_size):
    model.train()
    random.shuffle(trees)
    total = 0.0
    for start in range(0, len(trees), batch_size):
        batch = Batch(trees[start : start + batch_size])
        labelled = batch.labels >= 0
        scores = model(batch)[labelled]
        loss = nn.functional.cross_entropy(scores, batch.labels[labelled], reduction="sum")
        optimiser.zero_grad()
        (loss / len(batch.roots)).backward()
        optimiser.step()
        total += loss.item()
    return total / len(trees)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, help="where the weights go")
    parser.add_argument("--binary", action="store_true")
    parser.add_argument("--width", type=int, default=300, help="D")
    parser.add_argument("--size", type=int, default=150, help="H")
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    trees, vocabulary = read_parts(options.data, options.binary)
    model = TreeLstm(vocabulary, options.width, options.size, 2 if options.binary else 5)
    others = [parameter for name, parameter in model.named_parameters() if name != "emb"]
    optimiser = torch.optim.Adagrad(
        [{"params": [model.emb], "lr": 0.1, "weight_decay": 0.0}, {"params": others}],
        lr=0.05,
        weight_decay=1e-4,
    )
    best, kept, seconds = 0.0, None, []
    for epoch in range(1, options.epochs + 1):
        began = time.monotonic()
        loss = train_epoch(model, optimiser, trees["train"], options.batch)
        seconds.append(time.monotonic() - began)
        dev = accuracy(model, trees["dev"])
        print(f"epoch {epoch}: loss {loss:.4f}; dev {dev:.4f}; {seconds[-1]:.1f} s", flush=True)
        if dev > best:
            best = dev
            kept = {name: p.detach().clone() for name, p in model.named_parameters()}
    model.load_state_dict(kept)
    if options.output:
        save_file(kept, options.output)
    report = {"seed": options.seed, "dev": best, "test": accuracy(model, trees["test"])}
    report["seconds_an_epoch"] = sorted(seconds)[len(seconds) // 2]
    print(json.dumps(report))


if __name__ == "__main__":
    main()
