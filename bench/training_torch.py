"""The models of the training benchmark in PyTorch, as autograd wants them.

Each class holds a model's weights as parameters, and `run(instances)` gives the outputs of a batch as
tensors that gradients flow through. In-place work and `out=`, which the peers of inference use, are
left out. The loss is the sum of the squares of all outputs.
"""

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
