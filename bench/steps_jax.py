"""Models with loops in JAX, as peers of the benchmark: a batch padded, with masks, compiled for each shape.

Lengths are padded to a multiple of `BUCKET`, and a last batch that is not full stays as it is, so that few shapes are
compiled; the run before the clock starts compiles them. Trees and graphs are missing: their shapes differ from
batch to batch, so that JAX would compile each one anew. Import fails where JAX is not installed.
"""

import os

# XLA reads this as it starts: one thread, as all others have.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from control_torch import ACT_STEPS  # noqa: E402

BUCKET = 16
HEADS = 8
EPSILON = 1e-5


class Peer:
    """What all share: the weights as JAX's arrays, and the compiled function of a batch."""

    def __init__(self, weights):
        self.w = {name: jnp.asarray(weight.numpy()) for name, weight in weights.items()}
        self.compiled = jax.jit(self.batch)


def pad(sequences):
    """Sequences in one array, padded to a bucket, and their lengths."""
    lengths = np.array([len(sequence) for sequence in sequences], np.int32)
    longest = -(-int(lengths.max()) // BUCKET) * BUCKET
    first = np.asarray(sequences[0])
    out = np.zeros((len(sequences), longest, *first.shape[1:]), first.dtype)
    for row, sequence in zip(out, sequences):
        row[: len(sequence)] = sequence
    return out, lengths


def layernorm(x, gain, bias):
    x = x - x.mean(-1, keepdims=True)
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + EPSILON) * gain + bias


class MaskedAct(Peer):
    def batch(self, w, x):
        s = x @ w["win"] + w["bin"]

        def turn(state):
            s, acc, left, steps, active, step = state
            s = layernorm(s + jnp.tanh(s @ w["w1"] + w["c1"]) @ w["w2"] + w["c2"], w["g"], w["b"])
            p = jax.nn.sigmoid(s @ w["wh"] + w["bh"])[:, 0]
            step = step + 1
            last = (step == ACT_STEPS) | (p > left - 0.01)
            weight = jnp.where(active, jnp.where(last, left, p), 0)
            return s, acc + weight[:, None] * s, left - weight, steps + active, active & ~last, step

        n = len(x)
        none = jnp.zeros(n, jnp.int32)
        start = (s, jnp.zeros_like(s), jnp.ones(n), none, jnp.ones(n, bool), 0)
        _, acc, _, steps, _, _ = lax.while_loop(lambda state: state[4].any(), turn, start)
        return acc @ w["wo"] + w["bo"], steps

    def run(self, instances):
        x = np.array([instance["x"] for instance in instances], np.float32)
        scores, steps = self.compiled(self.w, x)
        return list(zip(np.asarray(scores).tolist(), np.asarray(steps).tolist()))


class MaskedPonder(Peer):
    def batch(self, w, tape, lengths):
        n, size = len(lengths), w["wh"].shape[0]
        symbols = w["emb"] @ w["wx"] + w["b"]

        def turn(state):
            h, c, rem, steps, active, t = state
            gates = symbols[tape[:, t]] + h @ w["wh"]
            i, f, o, u = jnp.split(gates, 4, axis=1)
            c_new = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
            h_new = jax.nn.sigmoid(o) * jnp.tanh(c_new)
            rem = rem * (1 - jax.nn.sigmoid(h_new @ w["wp"] + w["bp"])[:, 0])
            keep = active[:, None]
            h, c, steps = jnp.where(keep, h_new, h), jnp.where(keep, c_new, c), steps + active
            return h, c, rem, steps, active & (t + 1 < lengths) & (rem > 0.5), t + 1

        h = jnp.zeros((n, size))
        start = (h, h, jnp.ones(n), jnp.zeros(n, jnp.int32), jnp.ones(n, bool), 0)
        h, _, _, steps, _, _ = lax.while_loop(lambda state: state[4].any(), turn, start)
        return (h @ w["wo"] + w["bo"]).argmax(1), steps

    def run(self, instances):
        tape = [np.array(instance["tape"], np.int32) for instance in instances]
        answers, steps = self.compiled(self.w, *pad(tape))
        return list(zip(np.asarray(answers).tolist(), np.asarray(steps).tolist()))


class PaddedBirnn(Peer):
    def batch(self, w, words, lengths):
        size = w["hf"].shape[0]
        present = (jnp.arange(words.shape[1]) < lengths[:, None]).T[..., None]
        embedded = w["emb"][words.T]  # [T,n,D]

        def direction(weight, bias, start, reverse):
            def turn(h, step):
                parts, here = step
                h = jnp.where(here, jnp.tanh(parts + h @ weight[-size:]), h)
                return h, h

            parts = embedded @ weight[:-size] + bias
            start = jnp.broadcast_to(start, (len(lengths), size))
            return lax.scan(turn, start, (parts, present), reverse=reverse)[1]

        # Backward it waits in its first state until the sentence's last word.
        forward = direction(w["wf"], w["bf"], w["hf"], False)
        backward = direction(w["wb"], w["bb"], w["hb"], True)
        scores = jnp.concatenate([forward, backward], -1) @ w["wo"] + w["bo"]
        return scores.transpose(1, 0, 2)

    def run(self, instances):
        words, lengths = pad([np.array(instance["words"], np.int32) for instance in instances])
        scores = np.asarray(self.compiled(self.w, words, lengths))
        return [rows[:n].tolist() for rows, n in zip(scores, lengths)]


class PaddedEncoder(Peer):
    """Weights are those of a linear layer, with matrices transposed."""

    def batch(self, w, x, lengths):
        n, longest, wide = x.shape

        def linear(x, name):
            return x @ w[f"w{name}"].T + w[f"b{name}"]

        q, k, v = (part.reshape(n, longest, HEADS, -1) for part in jnp.split(linear(x, "qkv"), 3, -1))
        attended = jax.nn.dot_product_attention(q, k, v, key_value_seq_lengths=lengths)
        x = layernorm(linear(attended.reshape(n, longest, wide), "p") + x, w["g1"], w["b1"])
        inner = jax.nn.gelu(linear(x, "u"), approximate=False)
        return layernorm(linear(inner, "d") + x, w["g2"], w["b2"])

    def run(self, instances):
        out = np.asarray(self.compiled(self.w, *pad([instance.numpy() for instance in instances])))
        return [rows[: len(instance)] for rows, instance in zip(out, instances)]


BATCHED = {
    "act": {"JAX": MaskedAct},
    "birnn": {"JAX": PaddedBirnn},
    "ponder": {"JAX": MaskedPonder},
    "encoder": {"JAX": PaddedEncoder},
}
