"""Gradients of a run, and what outputs are weighed by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arrays import plain
from ._results import Outputs, parts


@dataclass(frozen=True)
class Gradients:
    """What `Model.gradients` gives."""

    #: What the instances gave.
    outputs: Outputs
    #: By parameter of floats, the gradient of the sum over all instances; zeros where nothing flows.
    params: dict[str, np.ndarray]
    #: Where they were asked for: for each instance those of all tensors and numbers of floats that it takes, in
    #: the order of the arguments; none of one that failed.
    inputs: list[list[np.ndarray]] | None = None

    @staticmethod
    def of(outputs: Outputs, run: Any, shapes: dict[str, list[int]], count: int | None) -> Gradients:
        of_params, of_inputs = run
        params = {name: np.frombuffer(data, np.float32).reshape(shapes[name]) for name, data in of_params}
        if count is None:
            return Gradients(outputs, params)
        inputs: list[list[np.ndarray]] = [[] for _ in range(count)]
        for number, data, of_tensors in of_inputs:
            numbers, at = np.frombuffer(data, np.float32), 0
            for shape in of_tensors:
                size = int(np.prod(shape, dtype=np.int64))
                inputs[number].append(numbers[at : at + size].reshape(shape))
                at += size
        return Gradients(outputs, params, inputs)


def part_bytes(result: Any, cotangent: Any) -> list[tuple[tuple[int, ...], bytes] | None]:
    """For each part of a result, what weighs its floats: its shape, which is checked where the result is known, and its
    numbers."""
    count = len(parts(result))
    if cotangent is None:
        return [None] * count
    if "tuple" not in result:
        return [_bytes(cotangent)]
    if not isinstance(cotangent, (tuple, list)) or len(cotangent) != count:
        raise ValueError(f"the cotangent of an output of {count} parts is a tuple of as many")
    return [None if part is None else _bytes(part) for part in cotangent]


def _bytes(part: Any) -> tuple[tuple[int, ...], bytes]:
    if hasattr(part, "detach"):
        part = part.detach().cpu()
    array = np.asarray(plain(part), dtype="<f4")
    return array.shape, array.tobytes()
