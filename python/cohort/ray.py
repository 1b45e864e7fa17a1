"""Programs on many machines: `Predictor` for Ray Data, `Deployment` for Ray Serve.

    ds.map_batches(
        cohort.ray.Predictor,
        fn_constructor_kwargs={"model": "model.cohort", "weights": "w.safetensors"},
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=2),
    )
    serve.run(cohort.ray.Deployment.bind("model.cohort", "w.safetensors"))
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import math
import os
from typing import Any, Callable, Mapping

import numpy as np

from ._compile import compile
from ._errors import InstanceError
from ._model import Model, load
from ._types import _attribute
from ._weights import Weights

__all__ = ["Deployment", "Predictor", "Replica"]


def _model(model: str | bytes | os.PathLike, weights: Weights, options: Mapping[str, Any]) -> Model:
    """A program, which is compiled, or an artifact."""
    if not isinstance(model, bytes) and os.fspath(model).endswith(".coh"):
        return compile(model, weights, **options)
    return load(model, weights, **options)


class Predictor:
    """Runs a model over the batches of a dataset, for `map_batches(..., batch_format="pyarrow")`.

    A batch is a table with a column for each of `main`'s arguments, and perhaps `id`; it gives the columns
    `output` (`output_0` and so on where the result has several parts), `error` and `message`. Columns that are
    no arguments stay as they are. With `errors="raise"` the first instance that fails ends the dataset.

    Batches of the dataset are what an actor is given at once, and `batch` is how many instances are computed
    together: what an instance gives does not depend on either.
    """

    def __init__(
        self,
        model: str | bytes | os.PathLike,
        weights: Weights = None,
        *,
        batch: int = 256,
        threads: int = 1,
        errors: str = "return",
        **options: Any,
    ):
        self.model = _model(model, weights, options)
        self._run = {"batch": batch, "threads": threads, "errors": errors}

    def __call__(self, table: Any) -> Any:
        import pyarrow

        arguments = [name for name in self.model.signature.arguments if name in table.column_names]
        given = [*arguments, *(["id"] if "id" in table.column_names else [])]
        columns = {name: _storage(table.column(name)) for name in given}
        if not columns and len(table):
            return self._without_arguments(table)
        result = self.model.run_arrow(pyarrow.table(columns), **self._run)
        kept = [name for name in table.column_names if name not in arguments]
        for name in result.column_names:
            if name == "id":
                continue
            if name in kept:
                raise ValueError(f"the dataset has a column {name!r}, which is one of the results': rename it")
            table = table.append_column(name, result.column(name))
        return table.drop_columns(arguments)

    def _without_arguments(self, table: Any) -> Any:
        wanted = ", ".join(map(repr, self.model.signature.arguments))
        raise ValueError(f"the dataset has no column that is an argument of the program ({wanted}): {table.column_names}")


def _storage(column: Any) -> Any:
    """A column in Arrow's own types: Ray Data has tensors in one of its own."""
    import pyarrow

    if not isinstance(column.type, pyarrow.ExtensionType):
        return column
    shape = getattr(column.type, "shape", None)
    if shape is None:
        # Their shapes differ.
        return pyarrow.array([np.asarray(value).tolist() for value in column.to_numpy(zero_copy_only=False)])
    rows = pyarrow.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    nested = rows.combine_chunks()
    nested = pyarrow.concat_arrays(nested.chunks) if isinstance(nested, pyarrow.ChunkedArray) else nested
    values = nested.flatten()
    for length in reversed(shape):
        values = pyarrow.FixedSizeListArray.from_arrays(values, int(length))
    return values


class Replica:
    """A model behind Ray Serve, see `Deployment`: one engine a replica, whose requests are computed together."""

    def __init__(
        self,
        model: str | bytes | os.PathLike,
        weights: Weights = None,
        *,
        in_flight: int = 64,
        max_queued: int = 1024,
        threads: int = 1,
        deadline: float | None = None,
        **options: Any,
    ):
        self._model = _model(model, weights, options)
        self._engine = self._model.engine(in_flight=in_flight, max_queued=max_queued, threads=threads)
        self._deadline = deadline
        self._stack = contextlib.AsyncExitStack()
        self._opening: asyncio.Task | None = None

    async def __call__(self, request: Any) -> Any:
        """An instance, by a handle, gives its output, values of data types in their JSON form. A request of HTTP
        has an instance as JSON, or a list of them, and gets its record, or theirs."""
        from starlette.requests import Request

        # Which is a mapping too.
        if isinstance(request, Request):
            return await self._answer(request)
        return _plain(await self.submit(request), lambda array: array)

    async def submit(self, instance: Mapping[str, Any]) -> Any:
        # An engine belongs to the event loop of its requests, which is not yet there when a replica is made.
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._stack.enter_async_context(self._engine))
        await asyncio.shield(self._opening)
        return await self._engine.submit(instance, deadline=self._deadline)

    def stats(self) -> dict[str, int]:
        """What came of the instances of this replica."""
        return self._engine.stats if self._opening is not None and self._opening.done() else {}

    async def _answer(self, request: Any) -> Any:
        from starlette.responses import Response

        def answer(value: Any, status: int) -> Response:
            return Response(json.dumps(value, ensure_ascii=False), status, media_type="application/json")

        def refusal(message: str) -> Response:
            return answer({"error": {"kind": "bad_request", "message": message}}, 400)

        try:
            body = json.loads(await request.body())
        except (ValueError, RecursionError) as error:
            return refusal(f"the body is not JSON: {error}")
        if isinstance(body, Mapping):
            record, status = await self._record(body, 1)
            return answer(record, status)
        if not isinstance(body, list) or not all(isinstance(one, Mapping) for one in body):
            return refusal("the body is an instance, an object, or a list of them")
        records = await asyncio.gather(*(self._record(one, number) for number, one in enumerate(body, 1)))
        return answer([record for record, _ in records], 200)

    async def _record(self, instance: Mapping[str, Any], number: int) -> tuple[dict[str, Any], int]:
        """A record as `batch-run` writes it, and the status of a request that is this instance alone."""
        id = instance.get("id", number)
        try:
            return {"id": id, "output": _plain(await self.submit({"id": id, **instance}), _numbers)}, 200
        except InstanceError as error:
            kind, message = error.kind, error.message
        except RecursionError:
            kind, message = "memory_limit", "the result nests too deeply to be JSON"
        status = {"bad_input": 400, "shape_mismatch": 400, "deadline": 504}.get(kind, 422)
        return {"id": id, "error": {"kind": kind, "message": message}}, status


def _plain(value: Any, of_array: Callable[[np.ndarray], Any]) -> Any:
    """A result without the model's own classes: values of data types in their JSON form."""
    if isinstance(value, np.ndarray):
        return of_array(value)
    if dataclasses.is_dataclass(value):
        attributes = [field.name for field in dataclasses.fields(value)]
        fields = [_plain(getattr(value, name), of_array) for name in attributes]
        name = type(value).__name__
        if not fields:
            return name
        # Fields without names are numbered; one that is a word of Python's has an underscore more.
        if attributes[0] == "_0":
            return {name: fields}
        names = [own[:-1] if own.endswith("_") and _attribute(own[:-1]) == own else own for own in attributes]
        return {name: dict(zip(names, fields))}
    if isinstance(value, (list, tuple)):
        return [_plain(one, of_array) for one in value]
    if isinstance(value, float) and of_array is _numbers:
        return _numbers(np.asarray(value, np.float32))
    return value


def _numbers(array: np.ndarray) -> Any:
    """Lists, of numbers with as many digits as tell f32 apart; those that JSON does not have are texts."""
    if array.dtype.kind != "f":
        return array.tolist()
    finite = bool(np.isfinite(array).all())
    values = array.astype(np.float32).astype("U").astype(np.float64).tolist()
    return values if finite else _named(values)


def _named(value: Any) -> Any:
    if isinstance(value, list):
        return [_named(one) for one in value]
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def __getattr__(name: str) -> Any:
    # Ray Serve is an extra of Ray, which those who only predict need not have.
    if name == "Deployment":
        from ray import serve

        # More requests are let in than an engine has in flight, so that it is never short of them.
        deployment = serve.deployment(Replica, name="Deployment", max_ongoing_requests=256)
        globals()["Deployment"] = deployment
        return deployment
    raise AttributeError(f"module 'cohort.ray' has no attribute {name!r}")
