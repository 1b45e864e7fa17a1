"""A program as a part of a PyTorch model.

    import cohort, cohort.torch

    module = cohort.torch.Module(cohort.load("model.cohort", weights))
    scores = module([{"t": tree} for tree in trees])
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping

import numpy as np
import torch

from . import _weights
from ._model import Model

__all__ = ["Module"]

_TYPES = {"f32": "float32", "i32": "int32", "bool": "bool"}
_STORED = {
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
    "I32": torch.int32,
    "I64": torch.int64,
    "BOOL": torch.bool,
}


class Module(torch.nn.Module):
    """A `torch.nn.Module` that has the parameters of a program, by their names, and computes by Cohort.

    Floats are parameters, integers and booleans are buffers. Whatever changes them, an optimiser, `load_state_dict`
    or an assignment in place, is seen by the next call, which then gives what a model loaded with these weights
    gives, to the bit. Several modules may share one model.

    There are no gradients yet: outputs take part in a graph, and `backward` raises `NotImplementedError`.
    """

    def __init__(self, model: Model, *, batch: int = 256, threads: int = 1):
        super().__init__()
        self.model = model
        self.batch = batch
        self.threads = threads
        self._sent: dict[str, _weights.Tensor] | None = None
        self._sent_as: object = None
        weights = _weights.arrays(model._weights)
        for param in model._manifest["params"]:
            name, ty = param["name"], getattr(torch, _TYPES[param["elem"]])
            stored = weights[name]
            raw = torch.frombuffer(bytearray(stored.data) or bytearray(8), dtype=_STORED[stored.dtype])
            count = int(np.prod(stored.shape, dtype=np.int64))
            # A copy, which the model's own weights do not change with.
            tensor = raw[:count].to(ty, copy=True).reshape(stored.shape)
            # Not by `register_parameter`: names of programs may be those of methods.
            if ty is torch.float32:
                self._parameters[name] = torch.nn.Parameter(tensor)
            else:
                self._buffers[name] = tensor

    def extra_repr(self) -> str:
        return str(self.model.signature)

    def forward(self, instances: Iterable[Mapping[str, Any]]) -> Any:
        """The outputs of instances, dicts by the names of `main`'s arguments.

        A part of the result that is a scalar, or a tensor of known shape, is one tensor with a first axis for the
        instances; any other is a list, of tensors where the part is one. A result of several parts is a tuple.
        The first instance that fails raises its `InstanceError`.
        """
        with self.model._lock:
            self._send()
            outputs = self.model(instances, batch=self.batch, threads=self.threads)
        values: list[Any] = []
        for part, ty in enumerate(outputs._parts):
            if "scalar" in ty or "tensor" in ty:
                values.append(torch.from_numpy(outputs.tensor(part)))
            else:
                values.append([_as_tensor(value) for value in outputs._values(part)])
        inputs = [tensor for tensor in self._parameters.values() if tensor.requires_grad]
        if torch.is_grad_enabled() and inputs:
            values = _in_graph(values, inputs)
        return tuple(values) if "tuple" in self.model._manifest["result"] else values[0]

    def _send(self) -> None:
        """Gives the model the weights that are here, unless it has them."""
        tensors = {**self._parameters, **self._buffers}
        now = {name: _weights.as_tensor(name, tensor) for name, tensor in tensors.items() if tensor is not None}
        if self._sent is None or self.model._weights_of is not self._sent_as or not _are_equal(self._sent, now):
            self.model.set_weights(now)
            self._sent = {name: tensor._replace(data=tensor.data.copy()) for name, tensor in now.items()}
            self._sent_as = self.model._weights_of

    def __deepcopy__(self, memo: dict) -> Module:
        copy = Module(self.model, batch=self.batch, threads=self.threads)
        copy.load_state_dict(self.state_dict())
        copy.train(self.training)
        return copy


def _are_equal(one: dict[str, _weights.Tensor], other: dict[str, _weights.Tensor]) -> bool:
    """To the byte: a change through `.data` is counted nowhere."""
    return one.keys() == other.keys() and all(
        tensor[:2] == other[name][:2] and np.array_equal(tensor.data, other[name].data) for name, tensor in one.items()
    )


def _as_tensor(value: Any) -> Any:
    return torch.from_numpy(np.array(value)) if isinstance(value, np.ndarray) else value


def _in_graph(values: list[Any], inputs: list[torch.Tensor]) -> list[Any]:
    """The values, of which those that are floats know what they come from."""
    flat = [tensor for value in values for tensor in (value if isinstance(value, list) else [value])]
    floats = [tensor for tensor in flat if isinstance(tensor, torch.Tensor) and tensor.is_floating_point()]
    if not floats:
        return values
    known = iter(_Computed.apply(len(floats), *floats, *inputs))

    def known_as(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return next(known) if is_float else value

    return [[known_as(one) for one in value] if isinstance(value, list) else known_as(value) for value in values]


class _Computed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, count: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(tensor.view_as(tensor) for tensor in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise NotImplementedError(
            "Cohort computes no gradients yet: call the module under torch.no_grad(), or freeze its parameters by "
            "module.requires_grad_(False), so that those of the rest of the model are computed"
        )
