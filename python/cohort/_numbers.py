"""Numbers that users give: Python's, NumPy's and those of other libraries."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


def integer(name: str, value: Any) -> int:
    """Whatever has `__index__`, but no truth value."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: an int, not {type(value).__name__}") from None


def count(name: str, value: Any, most: int = 1 << 32) -> int:
    """An integer from 1 on."""
    number = integer(name, value)
    if not 1 <= number <= most:
        raise ValueError(f"{name}: {number} is not between 1 and {most}")
    return number


def draw(value: Any) -> int:
    """One of those that `batch-run --draw` takes."""
    try:
        number = integer("draw", value)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise ValueError(f"draw is an integer from 0 to 2**64 - 1, not {value!r}")
    return number


def seconds(name: str, value: Any) -> float:
    """Whatever has `__float__` or `__index__`, from 0 on."""
    if isinstance(value, bool) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{name}: seconds, not {type(value).__name__}")
    number = float(value)
    if not number >= 0:
        raise ValueError(f"{name}: {value} is not a number of seconds")
    return number
