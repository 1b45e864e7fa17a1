"""Tensors of differing lengths in PyTorch, as the peers of the benchmark.

Each class holds a model's weights and `run(instances)` gives the outputs of a batch of instances,
given as a list of tensors `[n, D]`, padded or packed inside the time. Outputs of padded ones are
padded too.

`Padded*` run a batch padded to its longest instance, with masks. `Packed*` run what is the same for
every row on all rows of the batch one behind another, and attention one sequence at a time: what
one writes by hand. `Nested*` take PyTorch's nested tensors.
"""

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

HEADS = 8
EPSILON = 1e-5


class Peer:
    """What all peers share: the weights of one layer, as tensors that suit a linear layer."""

    def __init__(self, weights):
        self.w = weights

    def norm(self, x, name):
        scale, shift = self.w[f"g{name}"], self.w[f"b{name}"]
        return F.layer_norm(x, scale.shape, scale, shift, EPSILON)

    def feed_forward(self, x):
        w = self.w
        inner = F.gelu(F.linear(x, w["wu"], w["bu"]))
        return F.linear(inner, w["wd"], w["bd"])

    def layer(self, x, attended):
        """The layer but for what mixes rows; `x` may have any leading dims."""
        x = self.norm(F.linear(attended, self.w["wp"], self.w["bp"]) + x, "1")
        return self.norm(self.feed_forward(x) + x, "2")

    def qkv(self, x):
        return F.linear(x, self.w["wqkv"], self.w["bqkv"]).chunk(3, -1)


def heads_of(x):
    """`[…, n, D]` to `[…, heads, n, D / heads]`."""
    return x.unflatten(-1, (HEADS, -1)).transpose(-3, -2)


def attend(q, k, v, **options):
    """Attention of all heads, of tensors `[…, n, D]`."""
    out = F.scaled_dot_product_attention(heads_of(q), heads_of(k), heads_of(v), **options)
    return out.transpose(-3, -2).flatten(-2)


def padded(instances):
    """The instances in one tensor, and which of its rows are theirs."""
    lengths = torch.tensor([len(instance) for instance in instances])
    x = pad_sequence(instances, batch_first=True)
    return x, torch.arange(x.shape[1]) < lengths[:, None]


def causal_mask(is_row):
    """Where rows may look: at those before them that are no padding."""
    n = is_row.shape[1]
    causal = torch.ones(n, n, dtype=torch.bool).tril()
    # A row of padding that sees nothing would not be a number.
    return (causal & is_row[:, None, None, :]) | torch.eye(n, dtype=torch.bool)


class PaddedEncoder(Peer):
    def run(self, instances):
        x, is_row = padded(instances)
        attended = attend(*self.qkv(x), attn_mask=is_row[:, None, None, :])
        return list(self.layer(x, attended).unbind())


class PackedEncoder(Peer):
    def run(self, instances):
        lengths = [len(instance) for instance in instances]
        x = torch.cat(instances)
        parts = zip(*(part.split(lengths) for part in self.qkv(x)))
        attended = torch.cat([attend(*(p[None] for p in part))[0] for part in parts])
        return list(self.layer(x, attended).split(lengths))


class NestedEncoder(Peer):
    def run(self, instances):
        x = torch.nested.nested_tensor(instances, layout=torch.jagged)
        q, k, v = (heads_of_nested(part) for part in self.qkv(x))
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
        return list(self.layer(x, attended).unbind())


def heads_of_nested(x):
    return x.contiguous().unflatten(-1, (HEADS, -1)).transpose(1, 2)


class CausalPeer(Peer):
    def qkv(self, x):
        w = self.w
        return [F.linear(x, w[f"w{part}"], w[f"b{part}"]) for part in "qkv"]

    def project(self, x):
        return F.linear(x, self.w["wp"], self.w["bp"])


class PaddedCausal(CausalPeer):
    """With a mask that is causal and hides padding."""

    def run(self, instances):
        x, is_row = padded(instances)
        attended = attend(*self.qkv(x), attn_mask=causal_mask(is_row))
        return list(self.project(attended).unbind())


class PackedCausal(CausalPeer):
    def run(self, instances):
        lengths = [len(instance) for instance in instances]
        parts = zip(*(part.split(lengths) for part in self.qkv(torch.cat(instances))))
        attended = [attend(*(p[None] for p in part), is_causal=True)[0] for part in parts]
        return list(self.project(torch.cat(attended)).split(lengths))


class PaddedAttention:
    """Causal attention of queries, keys and values that are there, with a mask as above."""

    def run(self, instances):
        (q, is_row), (k, _), (v, _) = (padded(part) for part in zip(*instances))
        return list(attend(q, k, v, attn_mask=causal_mask(is_row)).unbind())


class PackedAttention:
    def run(self, instances):
        return [attend(*(t[None] for t in three), is_causal=True)[0] for three in instances]


ENCODERS = {"padded": PaddedEncoder, "packed": PackedEncoder, "nested": NestedEncoder}
CAUSAL = {"padded": PaddedCausal, "packed": PackedCausal}
ATTENTION = {"padded": PaddedAttention, "packed": PackedAttention}


def products(pairs):
    """A loop of products."""
    return [a @ b for a, b in pairs]


def padded_products(pairs):
    """One batched product, of operands padded to the largest."""
    sizes = [max(t.shape[axis] for t in side) for side in zip(*pairs) for axis in (0, 1)]

    def pad(side, rows, columns):
        out = torch.zeros(len(side), rows, columns)
        for place, tensor in zip(out, side):
            place[: tensor.shape[0], : tensor.shape[1]] = tensor
        return out

    a, b = zip(*pairs)
    return torch.bmm(pad(a, *sizes[:2]), pad(b, *sizes[2:]))


def linear_weights(weights):
    """Weights of a program, with matrices transposed as a linear layer has them."""
    single = {name: w[0] if name_has_layers(weights) else w for name, w in weights.items()}
    return {n: w.T.contiguous() if w.dim() == 2 else w for n, w in single.items()}


def name_has_layers(weights):
    """Whether the weights are those of an encoder, whose first axis counts layers."""
    return "wqkv" in weights
