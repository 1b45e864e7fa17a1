"""`birnn`: a bidirectional recurrent network that scores every word."""

import numpy as np
from reference import embedding, matrix, random_words, vector

V, D, H, C = 35, 14, 21, 6


def make_weights(rng):
    """emb[V,D] wf[D+H,H] bf[H] hf[H] wb[D+H,H] bb[H] hb[H] wo[2H,C] bo[C]."""
    return {
        "emb": embedding(rng, V, D),
        "wf": matrix(rng, D + H, H),
        "bf": vector(rng, H),
        "hf": vector(rng, H),
        "wb": matrix(rng, D + H, H),
        "bb": vector(rng, H),
        "hb": vector(rng, H),
        "wo": matrix(rng, 2 * H, C),
        "bo": vector(rng, C),
    }


def make_instances(rng):
    """Instances `{"words": [i32]}` of one word and more."""
    lengths = [2, 3, 40] + [int(n) for n in rng.integers(2, 27, 11)]
    return [{"words": [0]}, {"words": [V - 1]}] + [
        {"words": random_words(rng, n, V)} for n in lengths
    ]


def run(p, words, weight, bias, start):
    """The states [n,H] of one direction, in the order of `words`."""
    h, states = p[start], []
    for word in words:
        h = np.tanh(np.concatenate([p["emb"][word], h]) @ p[weight] + p[bias])
        states.append(h)
    return np.stack(states)


def main(p, instance, decisions):
    """The scores [n,C] of the words."""
    words = instance["words"]
    forward = run(p, words, "wf", "bf", "hf")
    backward = np.flip(run(p, words[::-1], "wb", "bb", "hb"), axis=0)
    return np.concatenate([forward, backward], axis=1) @ p["wo"] + p["bo"]
