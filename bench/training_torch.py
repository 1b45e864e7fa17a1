"""The models of the training benchmark in PyTorch, as autograd wants them.

Each class holds a model's weights as parameters, and `run(instances)` gives the outputs of a batch as
tensors that gradients flow through. In-place work and `out=`, which the peers of inference use, are
left out. The loss is the sum of the squares of all outputs.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from torch import nn

from control_torch import ACT_STEPS, act_step
from ragged_torch import PackedEncoder, PaddedEncoder


def trainable(weights):
    """The weights as parameters."""
    return {name: weight.clone().requires_grad_() for name, weight in weights.items()}


class Trained:
    def __init__(self, weights):
        self.w = trainable(weights)

    def step(self, instances):
        """The gradients of a batch's loss, by name."""
        outputs = self.run(instances)
        sum(output.square().sum() for output in outputs).backward()

    def clear(self):
        for weight in self.w.values():
            weight.grad = None

    def gradients(self):
        return {name: weight.grad for name, weight in self.w.items()}


class MaskedAct(Trained):
    """A batch, until its last instance halts."""

    def run(self, instances):
        w, x = self.w, torch.stack(instances)
        s = torch.addmm(w["bin"], x, w["win"])
        n, size = s.shape
        acc, left = torch.zeros(n, size), torch.ones(n, 1)
        active = torch.ones(n, 1, dtype=torch.bool)
        for step in range(1, ACT_STEPS + 1):
            s = act_step(w, s, size)
            p = torch.addmm(w["bh"], s, w["wh"]).sigmoid()
            last = p > left - 0.01 if step < ACT_STEPS else active
            weight = torch.where(last, left, p) * active
            acc, left = acc + weight * s, left - weight
            active = active & ~last
            if not active.any():
                break
        return [torch.addmm(w["bo"], acc, w["wo"])]


class CompactAct(Trained):
    """A batch from which each instance is dropped as it halts."""

    def run(self, instances):
        w, x = self.w, torch.stack(instances)
        s = torch.addmm(w["bin"], x, w["win"])
        n, size = s.shape
        acc, left = torch.zeros(n, size), torch.ones(n, 1)
        sums = []
        for step in range(1, ACT_STEPS + 1):
            s = act_step(w, s, size)
            p = torch.addmm(w["bh"], s, w["wh"]).sigmoid()
            last = (p > left - 0.01 if step < ACT_STEPS else p == p).flatten()
            if last.any():
                done, kept = last.nonzero().flatten(), (~last).nonzero().flatten()
                sums.append(acc[done] + left[done] * s[done])
                s, acc, left, p = s[kept], acc[kept], left[kept], p[kept]
            if not len(s):
                break
            acc, left = acc + p * s, left - p
        # The loss does not look at the order of instances.
        return [torch.addmm(w["bo"], torch.cat(sums), w["wo"])]


class PackedBirnn(Trained):
    """A batch sorted by length; the words' products are made for all of them at once."""

    def run(self, instances):
        w = self.w
        order = sorted(range(len(instances)), key=lambda k: -len(instances[k]))
        sentences = [instances[k] for k in order]
        lengths = [len(sentence) for sentence in sentences]
        forward = self.direction(sentences, w["wf"], w["bf"], w["hf"])
        backward = [sentence.flip(0) for sentence in sentences]
        backward = self.direction(backward, w["wb"], w["bb"], w["hb"])
        # Where word t of sentence k is among the packed states, forward and backward.
        starts = torch.tensor([0, *torch.nn.utils.rnn.pack_sequence(sentences).batch_sizes.tolist()])
        starts = starts.cumsum(0)
        at = [starts[:length] + k for k, length in enumerate(lengths)]
        both = torch.cat([forward[torch.cat(at)], backward[torch.cat([a.flip(0) for a in at])]], 1)
        return [torch.addmm(w["bo"], both, w["wo"])]

    def direction(self, sentences, weight, bias, start):
        """The states of all words in the order of packing."""
        size = start.shape[0]
        packed = nn.utils.rnn.pack_sequence(sentences)
        counts = packed.batch_sizes.tolist()
        words = torch.addmm(bias, self.w["emb"][packed.data], weight[:-size])
        h, states = start.expand(len(sentences), size), []
        for part in words.split(counts):
            h = torch.addmm(part, h[: len(part)], weight[-size:]).tanh()
            states.append(h)
        return torch.cat(states)


class RecurrentBirnn(Trained):
    """PyTorch's own RNN over packed sequences, both directions."""

    def __init__(self, weights):
        super().__init__(weights)
        w = weights
        size, width = w["hf"].shape[0], w["emb"].shape[1]
        self.rnn = nn.RNN(width, size, bidirectional=True)
        with torch.no_grad():
            for suffix, own in (("", "f"), ("_reverse", "b")):
                weight = w[f"w{own}"]
                getattr(self.rnn, f"weight_ih_l0{suffix}").copy_(weight[:-size].T)
                getattr(self.rnn, f"weight_hh_l0{suffix}").copy_(weight[-size:].T)
                getattr(self.rnn, f"bias_ih_l0{suffix}").copy_(w[f"b{own}"])
                getattr(self.rnn, f"bias_hh_l0{suffix}").zero_()

    def run(self, instances):
        w = self.w
        packed = nn.utils.rnn.pack_sequence(instances, enforce_sorted=False)
        words = nn.utils.rnn.PackedSequence(w["emb"][packed.data], *packed[1:])
        count = len(instances)
        start = torch.stack([w["hf"].expand(count, -1), w["hb"].expand(count, -1)])
        states, _ = self.rnn(words, start)
        return [torch.addmm(w["bo"], states.data, w["wo"])]

    def clear(self):
        super().clear()
        self.rnn.zero_grad()

    def gradients(self):
        found = super().gradients()
        for suffix, own in (("", "f"), ("_reverse", "b")):
            parts = [getattr(self.rnn, f"weight_{part}_l0{suffix}").grad.T for part in ("ih", "hh")]
            found[f"w{own}"] = torch.cat(parts)
            found[f"b{own}"] = getattr(self.rnn, f"bias_ih_l0{suffix}").grad
        return found


class TrainedEncoder(Trained):
    """Of one layer; its weights as a linear layer has them are views of the parameters."""

    kind = None

    def run(self, instances):
        layer = {name: w[0].T if w.dim() == 3 else w[0] for name, w in self.w.items()}
        return self.outputs(self.kind(layer).run(instances), instances)

    def outputs(self, outputs, instances):
        return outputs


class PackedTrainedEncoder(TrainedEncoder):
    kind = PackedEncoder


class PaddedTrainedEncoder(TrainedEncoder):
    kind = PaddedEncoder

    def outputs(self, outputs, instances):
        """Rows of padding have no loss."""
        return [output[: len(x)] for output, x in zip(outputs, instances)]


PEERS = {
    "act": {"masked": MaskedAct, "compact": CompactAct},
    "birnn": {"packed": PackedBirnn, "nn.RNN": RecurrentBirnn},
    "encoder": {"padded": PaddedTrainedEncoder, "packed": PackedTrainedEncoder},
}


# --- The TreeLSTM of examples/sst ---------------------------------------------------------------


class SingleTree:
    """The TreeLSTM of `train_torch.py` with its parameters, one tree and one node after another."""

    def __init__(self, model):
        self.model = model

    def loss(self, tree):
        """The sum over the labelled nodes of a tree in PTB form, `(label, word)` or `(label, left, right)`."""
        # One look-up a tree: its gradient has all rows of the table, each time.
        rows = iter(self.model.emb[torch.tensor(words_of(tree))].unbind())
        states, labels = [], []
        self.state(tree, rows, states, labels)
        scores = self.model.dropout(torch.stack(states)) @ self.model.wo + self.model.bo
        return nn.functional.cross_entropy(scores, torch.tensor(labels), reduction="sum")

    def state(self, tree, rows, states, labels):
        model, (label, *parts) = self.model, tree
        if len(parts) == 1:
            c, o = (next(rows) @ model.wx + model.bx).chunk(2)
            h = o.sigmoid() * c.tanh()
        else:
            (hl, cl), (hr, cr) = (self.state(part, rows, states, labels) for part in parts)
            i, fl, fr, o, u = (hl @ model.ul + hr @ model.ur + model.b).chunk(5)
            c = i.sigmoid() * u.tanh() + fl.sigmoid() * cl + fr.sigmoid() * cr
            h = o.sigmoid() * c.tanh()
        states.append(h)
        labels.append(label)
        return h, c


def words_of(tree):
    """The numbers of a tree's words, from left to right."""
    return [tree[1]] if len(tree) == 2 else [*words_of(tree[1]), *words_of(tree[2])]


def train_trees(folder, mode, count, batch):
    """The seconds of a pass of training over the first trees, by level or one by one."""
    from ptb import normalise, read_trees, words
    from train import FlatTree
    from train_torch import TreeLstm, train_epoch

    trees = read_trees(folder / "train.txt")
    listed = sorted({normalise(word) for tree in trees for word in words(tree)})
    numbers = {word: number for number, word in enumerate(["<unk>", *listed])}
    model = TreeLstm(len(numbers), 300, 150, 5)
    others = [parameter for name, parameter in model.named_parameters() if name != "emb"]
    optimiser = torch.optim.Adagrad(
        [{"params": [model.emb], "lr": 0.1}, {"params": others, "weight_decay": 1e-4}], lr=0.05
    )
    trees = trees[:count]
    if mode == "level":
        flat = [FlatTree(tree, numbers) for tree in trees]
        train_epoch(model, optimiser, flat[:batch], batch)
        began = time.perf_counter()
        train_epoch(model, optimiser, flat, batch)
        return time.perf_counter() - began

    def numbered(tree):
        if len(tree) == 2:
            return tree[0], numbers[normalise(tree[1])]
        return tree[0], numbered(tree[1]), numbered(tree[2])

    trees = [numbered(tree) for tree in trees]
    single = SingleTree(model)
    began = time.perf_counter()
    for start in range(0, len(trees), batch):
        part = trees[start : start + batch]
        optimiser.zero_grad()
        for tree in part:
            (single.loss(tree) / len(part)).backward()
        optimiser.step()
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description="One pass of training over trees in PyTorch")
    parser.add_argument("folder", type=Path, help="with train.txt")
    parser.add_argument("--mode", choices=("level", "single"), required=True)
    parser.add_argument("--trees", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    options = parser.parse_args()
    for example in ("sst", "treelstm"):
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / example))
    torch.set_num_threads(1)
    print(json.dumps(train_trees(options.folder, options.mode, options.trees, options.batch)))


if __name__ == "__main__":
    main()
