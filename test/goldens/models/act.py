"""`act`: adaptive computation time, a weighted sum of states until they halt."""

import numpy as np
from reference import layernorm, matrix, sigmoid, table, vector

D, H, C = 11, 21, 4
MOST_STEPS = 16


def make_weights(rng):
    """win[D,H] bin[H] w1[H,2H] c1[2H] w2[2H,H] c2[H] g[H] b[H] wh[H,1] bh[1] wo[H,C] bo[C]."""
    return {
        "win": matrix(rng, D, H),
        "bin": vector(rng, H),
        "w1": matrix(rng, H, 2 * H),
        "c1": vector(rng, 2 * H),
        "w2": matrix(rng, 2 * H, H, gain=2.0),
        "c2": vector(rng, H),
        "g": vector(rng, H, mean=1.0),
        "b": vector(rng, H),
        "wh": matrix(rng, H, 1, gain=1.5),
        "bh": vector(rng, 1, scale=0.1, mean=-2.0),
        "wo": matrix(rng, H, C, gain=2.0),
        "bo": vector(rng, C),
    }


def make_instances(rng):
    """Instances `{"x": f32[D]}`."""
    return [{"x": table(rng, D, scale=1.5)} for _ in range(18)]


def main(p, instance, decisions):
    """The scores [C] of the accumulated state and the number of steps."""
    s = np.array(instance["x"]) @ p["win"] + p["bin"]
    accumulated, remaining = np.zeros(H), 1.0
    for step in range(1, MOST_STEPS + 1):
        s = layernorm(s + np.tanh(s @ p["w1"] + p["c1"]) @ p["w2"] + p["c2"], p["g"], p["b"])
        halting = sigmoid(s @ p["wh"] + p["bh"])[0]
        last = decisions.above(halting - remaining, -0.01) or step == MOST_STEPS
        weight = remaining if last else halting
        accumulated = accumulated + weight * s
        remaining = remaining - weight
        if last:
            break
    return accumulated @ p["wo"] + p["bo"], step
