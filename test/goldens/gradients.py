#!/usr/bin/env python3
"""Makes the gradients that the examples' parameters and inputs should have, by PyTorch in float64.

    python3 test/goldens/gradients.py [MODEL ...]

The reference models in models/ are run as they stand, with PyTorch's functions in the place of
NumPy's, and differentiated by autograd. What is differentiated is the sum of an instance's floats,
of which the k-th in the order of the output weighs 1 / (1 + k % 3). For each model it writes

    test/goldens/gradients/<model>.safetensors   of the parameters, summed over the instances
    test/goldens/gradients/<model>.jsonl         of the inputs that are tensors, a line an instance,
                                                 where there are such

`drnn` is left out: its outputs are decisions.
"""

import importlib
import sys
import types

import numpy
import torch
from safetensors.numpy import load_file, save_file

WITHOUT = {"drnn"}


class Torch(types.ModuleType):
    """The functions of NumPy that the models use on what is differentiated, by PyTorch."""

    def __getattr__(self, name):
        # What makes weights and instances is never called.
        return getattr(numpy, name)

    tanh, exp, sin, abs = torch.tanh, torch.exp, torch.sin, torch.abs
    add, subtract, multiply = torch.add, torch.subtract, torch.multiply
    empty_like = torch.empty_like

    @staticmethod
    def array(value):
        return value if isinstance(value, torch.Tensor) else double(value)

    @staticmethod
    def zeros(shape):
        return torch.zeros(shape, dtype=torch.float64)

    @staticmethod
    def full(length, value):
        return torch.full((length,), value, dtype=torch.float64)

    @staticmethod
    def sqrt(value):
        return torch.sqrt(value) if isinstance(value, torch.Tensor) else numpy.sqrt(value)

    @staticmethod
    def maximum(value, least):
        return torch.maximum(value, double(least))

    @staticmethod
    def concatenate(parts, axis=0):
        return torch.cat(list(parts), dim=axis)

    @staticmethod
    def stack(parts, axis=0):
        return torch.stack(list(parts), dim=axis)

    @staticmethod
    def flip(value, axis):
        return torch.flip(value, [axis])

    @staticmethod
    def split(value, count, axis=0):
        return torch.tensor_split(value, count, dim=axis)

    @staticmethod
    def tri(length, dtype=None):
        return torch.tril(torch.ones(length, length, dtype=torch.bool))

    @staticmethod
    def tril(value):
        return torch.tril(value)

    @staticmethod
    def where(condition, then, otherwise):
        return torch.where(condition, then, double(otherwise))


def double(value):
    """A tensor of float64."""
    return torch.as_tensor(value, dtype=torch.float64)


def with_torch(name):
    """Imports a module of the reference with PyTorch in the place of NumPy."""
    sys.modules["numpy"] = Torch("numpy")
    try:
        return importlib.import_module(name)
    finally:
        sys.modules["numpy"] = numpy


reference = with_torch("reference")
reference.softmax = lambda x: torch.softmax(x, dim=-1)
reference.gelu = torch.nn.functional.gelu


class Decisions:
    """Takes the decisions of an instance; nothing flows through them."""

    def above(self, score, threshold):
        """Whether the scalar `score` is greater than `threshold`."""
        return bool(score > threshold)

    def argmax(self, scores):
        """The index of the greatest entry of the vector `scores`."""
        return int(torch.argmax(scores))


def is_tensor(value):
    """Whether a member of an instance is a tensor of floats."""
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, float)


def floats(output):
    """The tensors of an output, in its order."""
    if isinstance(output, torch.Tensor):
        return [output.flatten()]
    parts = output if isinstance(output, (list, tuple)) else []
    return [tensor for part in parts for tensor in floats(part)]


def gradient(leaf):
    """What has flown to a tensor."""
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


def differentiate(model, p, instance):
    """Adds to the gradients of `p`, and gives those of the tensors among the instance's members."""
    leaves = {k: double(v).requires_grad_() for k, v in instance.items() if is_tensor(v)}
    outputs = torch.cat(floats(model.main(p, instance | leaves, Decisions())))
    weights = 1 / (1 + torch.arange(len(outputs), dtype=torch.float64) % 3)
    if outputs.requires_grad:
        (outputs * weights).sum().backward()
    return {name: gradient(leaf) for name, leaf in leaves.items()}


def generate(name):
    """Writes the gradients of one model."""
    from generate import EXAMPLES, GOLDENS, float32_json, read_lines, write_lines

    model = with_torch(f"models.{name}")
    folder = (GOLDENS if name == "treelstm" else EXAMPLES) / name
    weights = load_file(folder / "weights.safetensors")
    p = {name: double(tensor).requires_grad_() for name, tensor in weights.items()}
    lines = []
    for instance in read_lines(folder / "input.jsonl"):
        gradients = differentiate(model, p, instance)
        members = {k: float32_json(one.numpy()) for k, one in gradients.items()}
        lines.append({"id": instance["id"], "gradient": members})
    (GOLDENS / "gradients").mkdir(exist_ok=True)
    rounded = {k: gradient(tensor).numpy().astype(numpy.float32) for k, tensor in p.items()}
    save_file(rounded, GOLDENS / "gradients" / f"{name}.safetensors")
    if any(line["gradient"] for line in lines):
        write_lines(GOLDENS / "gradients" / f"{name}.jsonl", lines)
    print(f"{name}: {len(lines)} instances, {len(rounded)} parameters")


def main():
    from generate import MODELS

    for name in sys.argv[1:] or [name for name in MODELS if name not in WITHOUT]:
        generate(name)


if __name__ == "__main__":
    main()
