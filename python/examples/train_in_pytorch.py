"""A tree model of Cohort in the middle of a PyTorch model, trained from start to end.

Words become vectors by a PyTorch layer, a program of Cohort makes one vector of each tree of them, batched over
trees of any form, and a PyTorch layer classifies that. One optimiser of PyTorch trains all three.

    python train_in_pytorch.py
"""

# %% What is learnt: whether a formula of `and`, `or` and `not` holds.
import random
import tempfile
from pathlib import Path

import numpy as np
import torch

import cohort
import cohort.torch

PROGRAM = """
dim D
param both: f32[D, D]   param left: f32[D, D]   param right: f32[D, D]   param b: f32[D]
param no: f32[D, D]   param nb: f32[D]

type Formula = Value(f32[D]) | Not(Formula) | Pair(f32[D], Formula, Formula)

fn main(f: Formula) -> f32[D] {
  match f {
    Value(x) => x,
    Not(f) => tanh(main(f) @ no + nb),
    Pair(op, l, r) => {
      let (x, y) = (main(l), main(r));
      tanh(x @ left + y @ right + (x * y) @ both + op + b)
    }
  }
}
"""
WORDS = ["false", "true", "and", "or"]


def formula(rng: random.Random, depth: int) -> tuple:
    """A random formula, and whether it holds."""
    kind = rng.randrange(4) if depth > 0 else 0
    if kind == 0:
        holds = rng.random() < 0.5
        return ("Value", WORDS[holds]), holds
    if kind == 1:
        inner, holds = formula(rng, depth - 1)
        return ("Not", inner), not holds
    (left, a), (right, b) = formula(rng, depth - 1), formula(rng, depth - 1)
    is_and = rng.random() < 0.5
    return ("Pair", "and" if is_and else "or", left, right), (a and b if is_and else a or b)


# %% The model.
class Reader(torch.nn.Module):
    def __init__(self, size: int, seed: int = 0):
        super().__init__()
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        shapes = {name: (size, size) for name in ("both", "left", "right", "no")} | {"b": (size,), "nb": (size,)}
        weights = {name: (rng.standard_normal(shape) / size**0.5).astype(np.float32) for name, shape in shapes.items()}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "formula.coh"
            path.write_text(PROGRAM)
            program = cohort.compile(path, weights, gradients=True)
        self.words = torch.nn.Embedding(len(WORDS), size)
        self.tree = cohort.torch.Module(program)
        self.score = torch.nn.Linear(size, 1)

    def forward(self, formulas: list[tuple]) -> torch.Tensor:
        vectors = dict(zip(WORDS, self.words.weight.unbind()))

        def with_vectors(part):
            match part:
                case ("Value", word):
                    return ("Value", vectors[word])
                case ("Not", inner):
                    return ("Not", with_vectors(inner))
                case ("Pair", word, left, right):
                    return ("Pair", vectors[word], with_vectors(left), with_vectors(right))

        return self.score(self.tree([{"f": with_vectors(one)} for one in formulas])).squeeze(1)


# %% The training.
def train(epochs: int = 20, count: int = 400, size: int = 16, batch: int = 20, seed: int = 0) -> dict:
    rng = random.Random(seed)
    data = [formula(rng, 4) for _ in range(count + 100)]
    data, dev = data[:count], data[count:]
    model = Reader(size, seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        rng.shuffle(data)
        total = 0.0
        for begin in range(0, count, batch):
            formulas, holds = zip(*data[begin : begin + batch])
            optimiser.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(formulas), torch.tensor(holds).float())
            loss.backward()
            optimiser.step()
            total += loss.item() * len(formulas)
        with torch.no_grad():
            formulas, holds = zip(*dev)
            accuracy = ((model(formulas) > 0) == torch.tensor(holds)).float().mean().item()
        print(f"epoch {epoch + 1}: loss {total / count:.3f}, right on {accuracy:.0%} of formulas never seen")
    return {"accuracy": accuracy, "model": model}


if __name__ == "__main__":
    train()
