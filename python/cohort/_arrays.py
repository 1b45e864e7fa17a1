"""What becomes an array."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(value: Any) -> np.ndarray:
    """Whatever has `__array__` as an array of NumPy: a tensor of PyTorch without its graph, since what is computed here is
    no part of it, and wider where NumPy has no such type."""
    if hasattr(value, "detach"):
        value = value.detach()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
    return np.asarray(value)
