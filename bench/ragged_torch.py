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
    """Where rows may look: at those before them that are not padding."""
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


class LibraryEncoder:
    """PyTorch's own layer, which packs what a mask says is padding where it may."""

    def __init__(self, weights):
        w = weights
        wide, inner = w["wp"].shape[0], w["wu"].shape[0]
        layer = torch.nn.TransformerEncoderLayer(
            wide, HEADS, inner, activation="gelu", layer_norm_eps=EPSILON, batch_first=True
        )
        names = "self_attn.in_proj_ self_attn.out_proj. linear1. linear2. norm1. norm2.".split()
        pairs = (("wqkv", "bqkv"), ("wp", "bp"), ("wu", "bu"), ("wd", "bd"), ("g1", "b1"), ("g2", "b2"))
        for name, pair in zip(names, pairs):
            for suffix, own in zip(("weight", "bias"), pair):
                layer.get_parameter(f"{name}{suffix}").data = w[own]
        self.layers = torch.nn.TransformerEncoder(layer, 1).eval()

    def run(self, instances):
        x, is_row = padded(instances)
        out = self.layers(x, src_key_padding_mask=~is_row)
        return [rows[: len(instance)] for rows, instance in zip(out, instances)]


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


class PackedBerxit(Peer):
    """An encoder that leaves early, with rows packed; attention takes one sequence after another.

    The weights are those of the program, matrices transposed; a sequence that leaves is dropped.
    """

    MOST_LAYERS = 12
    HOT = ("layer",)

    def __init__(self, weights):
        super().__init__(weights)
        for kind in "wb":
            self.w[f"{kind}qkv"] = torch.cat([self.w[kind + part] for part in "qkv"])

    def feed_forward(self, x):
        w = self.w
        return F.linear(F.relu(F.linear(x, w["wu"], w["bu"])), w["wd"], w["bd"])

    def attend(self, x, lengths):
        """Attention of rows that lie one behind another."""
        parts = zip(*(part.split(lengths) for part in self.qkv(x)))
        return torch.cat([attend(*(p[None] for p in part))[0] for part in parts])

    def run(self, instances):
        w, x, lengths = self.w, torch.cat(instances), [len(instance) for instance in instances]
        first_rows, layers = torch.empty(len(lengths), x.shape[1]), [0] * len(lengths)
        live = list(range(len(lengths)))
        for layer in range(1, self.MOST_LAYERS + 1):
            x = self.layer(x, self.attend(x, lengths))
            firsts = x[torch.tensor([0, *lengths[:-1]]).cumsum(0)]
            leave = F.linear(firsts, w["we"], w["be"]).flatten().tolist()
            leave = [layer == self.MOST_LAYERS or vote > 0 for vote in leave]
            if not any(leave):
                continue
            done = [k for k, gone in enumerate(leave) if gone]
            first_rows[torch.tensor([live[k] for k in done])] = firsts[done]
            for k in done:
                layers[live[k]] = layer
            kept = [k for k, gone in enumerate(leave) if not gone]
            if not kept:
                break
            parts = x.split(lengths)
            x, live = torch.cat([parts[k] for k in kept]), [live[k] for k in kept]
            lengths = [lengths[k] for k in kept]
        scores = F.linear(first_rows, w["wo"], w["bo"]).tolist()
        return list(zip(scores, layers))


class PaddedBerxit(PackedBerxit):
    """The same, but attention is padded to the longest sequence, with a mask; the rest is packed."""

    def attend(self, x, lengths):
        is_row = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        places = is_row.flatten().nonzero().flatten()

        def pad(part):
            out = part.new_zeros(is_row.numel(), part.shape[1])
            return out.index_copy_(0, places, part).view(*is_row.shape, -1)

        q, k, v = (pad(part) for part in self.qkv(x))
        mask = None if is_row.all() else is_row[:, None, None, :]
        return attend(q, k, v, attn_mask=mask).flatten(0, 1).index_select(0, places)


# What the constructors of an expression compute, of tensors of the same shape.
OPERATIONS = {
    "Add": torch.add,
    "Sub": torch.sub,
    "Mul": torch.mul,
    "Div": lambda a, b: a / torch.addcmul(torch.ones(()), b, b),
    "Sin": torch.sin,
    "Exp": lambda a: (-a * a).exp_(),
}


class SingleExpr:
    """One expression after another, as the program is written."""

    def __init__(self, weights):
        pass

    @staticmethod
    def prepare(instances):
        return [(instance["e"], torch.tensor(instance["x"])) for instance in instances]

    def value(self, expression, columns):
        ((name, fields),) = expression.items()
        if name == "Var":
            return columns[fields[0]]
        if name == "Const":
            return torch.full_like(columns[0], fields[0])
        return OPERATIONS[name](*(self.value(field, columns) for field in fields))

    def run(self, instances):
        return [self.value(e, x.t().contiguous().unbind()).tolist() for e, x in instances]


class LevelExpr(SingleExpr):
    """Nodes of one height and one constructor in all expressions, their values padded to the longest table."""

    def run(self, instances):
        nodes, longest = {}, max(len(x) for _, x in instances)

        def place(expression, number):
            """The height, the constructor and the place among those alike of an expression."""
            ((name, fields),) = expression.items()
            if name in ("Var", "Const"):
                key, entry = (0, name), (number, fields[0])
            else:
                entry = [place(field, number) for field in fields]
                key = (1 + max(height for (height, _), _ in entry), name)
            alike = nodes.setdefault(key, [])
            alike.append(entry)
            return key, len(alike) - 1

        tops = [place(e, number) for number, (e, _) in enumerate(instances)]
        first, total = {}, 0
        for key in sorted(nodes):
            first[key] = total
            total += len(nodes[key])
        x = pad_sequence([x for _, x in instances], batch_first=True).transpose(1, 2).flatten(0, 1)
        values = torch.empty(total, longest)
        for key in sorted(nodes):
            height, name = key
            entries = nodes[key]
            out = values[first[key] : first[key] + len(entries)]
            if name == "Const":
                out[:] = torch.tensor([value for _, value in entries])[:, None]
            elif name == "Var":
                rows = torch.tensor([3 * number + column for number, column in entries])
                torch.index_select(x, 0, rows, out=out)
            else:
                sides = ([first[key] + k for key, k in side] for side in zip(*entries))
                operands = (values.index_select(0, torch.tensor(rows)) for rows in sides)
                out.copy_(OPERATIONS[name](*operands))
        rows = [first[key] + k for key, k in tops]
        return [values[row, : len(x)].tolist() for row, (_, x) in zip(rows, instances)]


ENCODERS = {"padded": PaddedEncoder, "packed": PackedEncoder, "nested": NestedEncoder}
ENCODERS |= {"library": LibraryEncoder}
CAUSAL = {"padded": PaddedCausal, "packed": PackedCausal}
ATTENTION = {"padded": PaddedAttention, "packed": PackedAttention}
BATCHED = {
    "encoder": ENCODERS,
    "masked_mha": CAUSAL,
    "berxit": {"packed": PackedBerxit, "padded": PaddedBerxit},
    "exprtree": {"level": LevelExpr},
}
SINGLE = {"exprtree": {"single": SingleExpr}}


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
