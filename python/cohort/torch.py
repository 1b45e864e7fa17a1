"""A program as a part of a PyTorch model.

    import cohort, cohort.torch

    module = cohort.torch.Module(cohort.compile("model.coh", weights, gradients=True))
    scores = module([{"t": tree} for tree in trees])
    torch.nn.functional.cross_entropy(scores, classes).backward()
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping

import numpy as np
import torch

from . import _weights
from ._cohort import Flat
from ._leaves import Leaves
from ._model import Model

__all__ = ["Module"]

_TYPES = {"f32": "float32", "i32": "int32", "bool": "bool"}


class Module(torch.nn.Module):
    """A `torch.nn.Module` that has the parameters of a program, by their names, and computes by Cohort.

    Floats are parameters, integers and booleans are buffers. Whatever changes them, an optimiser, `load_state_dict`
    or an assignment in place, is seen by the next call, which then gives what a model loaded with these weights
    gives, to the bit. Several modules may share one model.

    Of a model that was compiled with `gradients=True` outputs know what they come from: `backward` computes the
    gradients of parameters, and of the tensors that instances hold where these require them. It runs the program
    once more, as nothing is kept of the call but what it was given. `draw` says which random numbers instances
    have, those of `dropout` for one: set another one for each step.
    """

    #: Which random numbers the instances of the next call have.
    draw: int

    def __init__(self, model: Model, *, batch: int = 256, threads: int = 1, draw: int | None = None):
        super().__init__()
        self.model = model
        self.batch = batch
        self.threads = threads
        self.draw = model.draw if draw is None else draw
        self._leaves = Leaves(model._manifest)
        self._sent: dict[str, _weights.Tensor] | None = None
        self._sent_as: object = None
        for param, data in zip(model._manifest["params"], model._core.parameters()):
            name, ty = param["name"], getattr(torch, _TYPES[param["elem"]])
            # A copy, which the model's own weights do not change with.
            raw = torch.frombuffer(bytearray(data) or bytearray(8), dtype=ty)
            tensor = raw[: int(np.prod(param["shape"], dtype=np.int64))].reshape(param["shape"])
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
        if hasattr(instances, "__arrow_c_stream__") or hasattr(instances, "__arrow_c_array__"):
            instances = self.model._core.table(instances)
        elif not isinstance(instances, (Flat, Mapping, str, bytes)):
            instances = list(instances)
        draw = self.draw
        with self.model._lock:
            self._send()
            outputs = self.model(instances, batch=self.batch, threads=self.threads, draw=draw)
        values: list[Any] = []
        for part, ty in enumerate(outputs._parts):
            if "scalar" in ty or "tensor" in ty:
                values.append(torch.from_numpy(outputs.tensor(part)))
            else:
                values.append([_as_tensor(value) for value in outputs._values(part)])
        if torch.is_grad_enabled():
            call = _Call(self, instances, draw)
            if call.tensors:
                values = _in_graph(values, call)
        return tuple(values) if "tuple" in self.model._manifest["result"] else values[0]

    def _send(self, others: Mapping[str, torch.Tensor] = {}) -> None:
        """Gives the model the weights that are here, or others in their place, unless it has them."""
        tensors = {**self._parameters, **self._buffers, **others}
        now = {name: _weights.as_tensor(name, tensor) for name, tensor in tensors.items() if tensor is not None}
        if self._sent is None or self.model._weights_of is not self._sent_as or not _are_equal(self._sent, now):
            self.model.set_weights(now)
            self._sent = {name: tensor._replace(data=tensor.data.copy()) for name, tensor in now.items()}
            self._sent_as = self.model._weights_of

    def __deepcopy__(self, memo: dict) -> Module:
        copy = Module(self.model, batch=self.batch, threads=self.threads, draw=self.draw)
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


class _Call:
    """What a call was given, to differentiate it."""

    def __init__(self, module: Module, instances: Any, draw: int):
        self.module = module
        self.instances = instances
        self.draw = draw
        params = {name: tensor for name, tensor in module._parameters.items() if tensor is not None}
        self.names = [name for name, tensor in params.items() if tensor.requires_grad]
        #: The parameters, and then the tensors of instances, that gradients are wanted for.
        self.tensors = [params[name] for name in self.names]
        #: For each tensor of an instance: the instances and leaves where it is.
        self.places: list[list[tuple[int, int]]] = []
        if not isinstance(instances, list) or not module._leaves.exist:
            return
        known: dict[int, int] = {}
        for number, instance in enumerate(instances):
            for leaf, value in enumerate(module._leaves.of(instance)):
                if isinstance(value, torch.Tensor) and value.requires_grad:
                    if id(value) not in known:
                        known[id(value)] = len(self.places)
                        self.places.append([])
                        self.tensors.append(value)
                    self.places[known[id(value)]].append((number, leaf))
                elif isinstance(value, (list, tuple)) and _holds_graph(value):
                    raise TypeError(
                        "a list of tensors that require gradients is given for one tensor: use torch.stack"
                    )

    def differentiate(self, tensors: tuple[torch.Tensor, ...], cotangents: list[Any]) -> list[torch.Tensor]:
        """The gradients of these tensors, which are as they were when the call was made."""
        module, model = self.module, self.module.model
        params = tensors[: len(self.names)]
        with model._lock:
            module._send(dict(zip(self.names, params)))
            gradients = model.gradients(
                self.instances,
                cotangents,
                inputs=bool(self.places),
                batch=module.batch,
                threads=module.threads,
                draw=self.draw,
            )
        found = [torch.from_numpy(gradients.params[name].copy()) for name in self.names]
        for places in self.places:
            parts = [torch.from_numpy(gradients.inputs[number][leaf].copy()) for number, leaf in places]
            found.append(torch.stack(parts).sum(0) if len(parts) > 1 else parts[0])
        return [one.to(device=of.device, dtype=of.dtype) for one, of in zip(found, tensors)]


def _holds_graph(value: Any) -> bool:
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, (list, tuple)):
            left.extend(value)
        elif isinstance(value, torch.Tensor) and value.requires_grad:
            return True
    return False


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _in_graph(values: list[Any], call: _Call) -> list[Any]:
    """The values, of which those that are floats know what they come from."""
    flat = [tensor for value in values for tensor in (value if isinstance(value, list) else [value])]
    floats = [tensor for tensor in flat if _is_float(tensor)]
    if not floats:
        return values
    known = iter(_Computed.apply(call, values, len(floats), *floats, *call.tensors))
    return [
        [next(known) if _is_float(one) else one for one in value]
        if isinstance(value, list)
        else next(known)
        if _is_float(value)
        else value
        for value in values
    ]


class _Computed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: _Call, values: list[Any], count: int, *tensors: torch.Tensor) -> Any:
        ctx.call, ctx.count = call, count
        # Of each part, whether what is given has a gradient: of all instances together, or one by one.
        ctx.parts = [
            [_is_float(one) for one in value] if isinstance(value, list) else _is_float(value) for value in values
        ]
        ctx.set_materialize_grads(False)
        # PyTorch reports it where one is changed in place before `backward`.
        ctx.save_for_backward(*tensors[count:])
        return tuple(tensor.view_as(tensor) for tensor in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        call = ctx.call
        if not call.module.model.has_gradients:
            raise NotImplementedError(
                "the program was compiled without gradients: use cohort.compile(…, gradients=True); or freeze the "
                "module's parameters by module.requires_grad_(False), so that those of the rest of the model are "
                "computed"
            )
        if torch.is_grad_enabled():
            raise RuntimeError(
                "Cohort computes no gradients of gradients: call `backward` or `grad` without create_graph=True"
            )
        tensors = ctx.saved_tensors
        left = iter(gradients)
        parts = [
            [next(left) if is_float else None for is_float in part]
            if isinstance(part, list)
            else next(left)
            if part
            else None
            for part in ctx.parts
        ]
        count = len(call.instances)
        is_tuple = "tuple" in call.module.model._manifest["result"]
        cotangents: list[Any] = []
        for number in range(count):
            own = tuple(None if part is None else part[number] for part in parts)
            cotangents.append(own if is_tuple else own[0])
        return (None, None, None, *[None] * ctx.count, *call.differentiate(tensors, cotangents))
