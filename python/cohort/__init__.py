"""Batched execution of deep-learning programs that are written for one instance.

    import cohort

    m = cohort.compile("model.coh", weights="weights.safetensors")  # with the compiler
    m = cohort.load("model.cohort", weights=state_dict)             # an artifact, without it
    out = m([{"t": ("Node", ("Leaf", 3), ("Leaf", 7))}])
    out[0], out.numpy(), out.errors
"""

from ._compile import compile
from ._engine import Engine
from ._errors import (
    ArtifactError,
    CompileError,
    CompileWarning,
    DeviceError,
    Error,
    InstanceError,
    QueueFull,
    Span,
    WeightsError,
    WeightsMismatch,
)
from ._gradients import Gradients
from ._model import Model, Result, load
from ._results import Outputs

__all__ = [
    "ArtifactError",
    "CompileError",
    "CompileWarning",
    "DeviceError",
    "Engine",
    "Error",
    "Gradients",
    "InstanceError",
    "Model",
    "Outputs",
    "QueueFull",
    "Result",
    "Span",
    "WeightsError",
    "WeightsMismatch",
    "compile",
    "load",
]


def __getattr__(name: str):
    # PyTorch and Ray are loaded by those who use them.
    if name in ("torch", "ray"):
        import importlib

        return importlib.import_module(f"cohort.{name}")
    raise AttributeError(f"module 'cohort' has no attribute {name!r}")
