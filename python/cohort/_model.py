"""A program that is ready to run."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Literal, Mapping

from . import _files, _numbers, _weights
from ._cohort import Flat
from ._cohort import Model as _Core
from ._cohort import Run
from ._engine import Engine
from ._errors import ArtifactError, InstanceError
from ._gradients import Gradients, part_bytes
from ._results import Outputs
from ._types import Signature, Types
from ._weights import Rename, Weights

Errors = Literal["raise", "return"]
Instance = Mapping[str, Any]

# A stream does not wait longer for instances that make a larger batch, in seconds.
_PATIENCE = 0.005
_MOST_THREADS = 1024


@dataclass(frozen=True)
class Result:
    """What came of an instance of a stream: its place there, from 0, its id, and its output or its error."""

    index: int
    id: str | int
    output: Any
    error: InstanceError | None = None


def load(
    path: str | os.PathLike,
    weights: Weights = None,
    *,
    rename: Rename | None = None,
    allow_unused_weights: bool = False,
    device: str = "cpu",
    max_depth: int | None = None,
    max_nodes: int | None = None,
    max_memory: int | None = None,
    max_steps: int | None = None,
    draw: int = 0,
) -> Model:
    """Loads an artifact, a file that `cohort.compile(…).save(path)` or `batch-opt --emit artifact` wrote.

    `weights` is a safetensors file or a dict of arrays (NumPy's, PyTorch's: a `state_dict()`); `rename`, a
    dict or a function, gives the program's name for a tensor's, a function's `None` leaves it out. The limits
    are those of one instance. `draw` says which random numbers `random` and `dropout` give, as
    `batch-run --draw` does; a call may say otherwise. An artifact is code: load only what you would run.
    """
    path = os.fspath(path)
    try:
        with open(path, "rb") as file:
            artifact = file.read()
    except OSError as error:
        raise ArtifactError(f"cannot open {path}: {error.strerror}") from error
    return Model(
        artifact,
        path,
        weights,
        rename=rename,
        allow_unused_weights=allow_unused_weights,
        device=device,
        limits=[max_depth, max_nodes, max_memory, max_steps],
        draw=draw,
    )


class Model:
    """A program with its weights. Made by `cohort.load` and `cohort.compile`.

    It may be used by any number of threads, which take turns. A process that is forked must load it anew.
    """

    def __init__(self, artifact, path, weights, *, rename, allow_unused_weights, device, limits, draw=0, entry="main"):
        names = ("max_depth", "max_nodes", "max_memory", "max_steps")
        limits = [
            None if limit is None else _numbers.count(name, limit, (1 << 64) - 1)
            for name, limit in zip(names, limits, strict=True)
        ]
        data = _weights.prepare(weights, rename)
        # What it has now, a path or bytes; another object whenever it is replaced.
        self._weights: str | bytes | None = data
        self._weights_of = object()
        self._lock = threading.RLock()
        # Of each thread: whether it is in a call.
        self._calls = threading.local()
        self._core = _Core(
            artifact,
            path,
            data,
            allow_unused_weights=allow_unused_weights,
            device=device,
            limits=limits,
        )
        self._manifest = json.loads(self._core.manifest())
        #: The program's constructors as frozen dataclasses: `m.types.Node(l, r)`.
        self.types = Types(self._manifest)
        self._core.set_classes(self.types._classes)
        #: Which random numbers instances have, where a call does not say.
        self.draw = _numbers.draw(draw)
        #: Whether it was compiled for gradients.
        self.has_gradients = self._manifest.get("gradients") is not None
        #: What the entry takes and gives.
        self.signature = Signature(self._manifest, entry)
        self._stats: dict[str, Any] = {}
        # The instances of the last call, as long as they are there, with its batch and its draw.
        self._last: tuple[Any, int, int] | None = None

    def __repr__(self) -> str:
        return f"<cohort.Model {self.signature}>"

    def __reduce__(self):
        raise TypeError("a model cannot be pickled: save it, and load it where it is needed")

    def __call__(
        self,
        instances: Iterable[Instance] | Flat,
        *,
        batch: int = 256,
        threads: int = 1,
        errors: Errors = "raise",
        draw: int | None = None,
    ) -> Outputs:
        """Runs instances, dicts by the names of `main`'s arguments (`id` may be another key), `batch` of them
        at once; or the rows of a table of Arrow, or of flat arrays. What one gives does not depend on the others, to the bit.

        With `errors="raise"` the first instance that fails raises its `InstanceError`; with `"return"` the
        outputs have the errors of those that failed. With another `draw` instances have other random numbers.
        """
        batch, threads = _numbers.count("batch", batch), _numbers.count("threads", threads, _MOST_THREADS)
        _check_errors(errors)
        draw = self.draw if draw is None else _numbers.draw(draw)
        _check_instances(instances)
        if hasattr(instances, "__arrow_c_stream__") or hasattr(instances, "__arrow_c_array__"):
            instances = self._core.table(instances)
        # A call within another one's iterator, which waits for it, has a session of its own.
        is_within = getattr(self._calls, "are_open", False)
        is_fed = not isinstance(instances, (list, tuple, Flat))
        run = self._core.run(batch, threads, draw=draw, is_fed=is_fed, is_stream=is_within)
        self._calls.are_open = True
        try:
            return self._outputs(run, instances, batch, draw, errors)
        finally:
            self._calls.are_open = is_within

    def gradients(
        self,
        instances: Iterable[Instance] | Flat,
        cotangents: Iterable[Any] | None = None,
        *,
        inputs: bool = False,
        batch: int = 256,
        threads: int = 1,
        errors: Errors = "raise",
        draw: int | None = None,
    ) -> Gradients:
        """Runs instances and differentiates the sum of their losses, a loss being one f32 or the first part of a
        tuple; or, where there are `cotangents`, of all numbers that they give, each times its own.

        A cotangent is an array of the output's shape, or for an output of several parts a tuple with one for
        each; `None` stands for what does not count. An instance that fails adds nothing. The program must have
        been compiled for it: `cohort.compile(…, gradients=True)`, or `batch-opt --gradients --emit artifact`.
        """
        batch, threads = _numbers.count("batch", batch), _numbers.count("threads", threads, _MOST_THREADS)
        _check_errors(errors)
        draw = self.draw if draw is None else _numbers.draw(draw)
        _check_instances(instances)
        if not self.has_gradients:
            raise ValueError(
                "the program was not compiled for gradients: cohort.compile(…, gradients=True) does that, and "
                "`batch-opt --gradients --emit artifact`"
            )
        if hasattr(instances, "__arrow_c_stream__") or hasattr(instances, "__arrow_c_array__"):
            instances = self._core.table(instances)
        elif not isinstance(instances, Flat):
            instances = list(instances)
        weights = None
        if cotangents is not None:
            weights = [part_bytes(self._manifest["result"], cotangent) for cotangent in cotangents]
            if len(weights) != len(instances):
                raise ValueError(f"{len(weights)} cotangents for {len(instances)} instances")
        with self._lock:
            run = self._core.differentiate(
                batch,
                threads,
                draw=draw,
                cotangents=weights,
                of_inputs=inputs,
            )
            outputs = self._outputs(run, instances, batch, draw, errors)
        shapes = {param["name"]: param["shape"] for param in self._manifest["params"]}
        return Gradients.of(outputs, run.gradients(), shapes, len(instances) if inputs else None)

    def run_arrow(
        self,
        table: Any,
        *,
        batch: int = 256,
        threads: int = 1,
        errors: Errors = "return",
    ) -> Any:
        """Runs the rows of a table, whatever has `__arrow_c_stream__`, and gives a `pyarrow.Table` of their results
        (see `Outputs`), in which those that failed have an error; without pyarrow, what other libraries make one
        of."""
        if not (hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")):
            raise TypeError(f"run_arrow takes a table of Arrow, not {type(table).__name__}")
        outputs = self(table, batch=batch, threads=threads, errors=errors)
        try:
            import pyarrow
        except ImportError:
            return outputs
        return pyarrow.table(outputs)

    def _outputs(self, run: Run, instances: Iterable[Instance], batch: int, draw: int, errors: Errors) -> Outputs:
        # Those of an iterator are gone afterwards.
        self._last = (instances, batch, draw) if isinstance(instances, (list, tuple, Flat)) else None
        portions = []
        number = 0
        try:
            source = _FlatChunks(instances) if isinstance(instances, Flat) else _Chunks(instances, run.chunk)
            while chunk := source.next(number):
                while not run.has_room and not run.has_ended:
                    portions += run.take(True)
                if run.has_ended:
                    break
                if isinstance(chunk, Flat):
                    number += run.add_flat(chunk, number)
                else:
                    taken = run.add(chunk, number)
                    source.give_back(chunk[taken:])
                    number += taken
                portions += run.take(False)
            run.end()
            while not run.has_ended:
                portions += run.take(True)
            portions += run.take(False)
        finally:
            if not run.has_ended:
                run.cancel()
        self._stats = json.loads(run.stats)
        outputs = Outputs(self._manifest, self.types, portions, self._core)
        if errors == "raise" and outputs.errors:
            raise outputs.errors[0]
        return outputs

    def stream(
        self,
        iterable: Iterable[Instance],
        *,
        in_flight: int = 64,
        ordered: bool = False,
        threads: int = 1,
        errors: Errors = "raise",
    ) -> Iterator[Result]:
        """Runs instances as they come and gives each `Result` when it is there: as they end, or, `ordered`, in
        the order in which they came. At most `in_flight` are taken ahead of what was given.
        """
        in_flight, threads = _numbers.count("in_flight", in_flight), _numbers.count("threads", threads, _MOST_THREADS)
        _check_errors(errors)
        _check_instances(iterable)
        return self._stream(iterable, in_flight, ordered, threads, errors)

    def _stream(self, iterable, in_flight, ordered, threads, errors) -> Iterator[Result]:
        run = self._core.run(in_flight, threads, draw=self.draw, is_stream=True)
        number = given = 0
        waiting: dict[int, Result] = {}
        try:
            source = _Chunks(iterable, run.chunk)
            is_open = True
            while True:
                while is_open and number - given < in_flight and run.has_room:
                    chunk = source.next(number, in_flight - (number - given), _PATIENCE)
                    if not chunk:
                        is_open = False
                        run.end()
                        break
                    taken = run.add(chunk, number)
                    source.give_back(chunk[taken:])
                    number += taken
                    if run.has_ended:
                        break
                portions = run.take(given < number or not is_open)
                for result in self._results(portions, errors):
                    if not ordered:
                        given += 1
                        yield result
                        continue
                    waiting[result.index] = result
                    while given in waiting:
                        given += 1
                        yield waiting.pop(given - 1)
                if run.has_ended and not portions:
                    break
            self._stats = json.loads(run.stats)
        finally:
            run.cancel()

    def _results(self, portions: list, errors: Errors) -> Iterator[Result]:
        for portion in portions:
            # Numbers are of the whole stream; outputs are in the order of the portion.
            numbers = memoryview(portion[0]).cast("q").tolist()
            order = sorted(range(len(numbers)), key=numbers.__getitem__)
            place = {at: rank for rank, at in enumerate(order)}
            ranks = bytearray(b"".join(place[at].to_bytes(8, "little") for at in range(len(numbers))))
            outputs = Outputs(self._manifest, self.types, [(ranks, *portion[1:])])
            for rank, at in enumerate(order):
                output = outputs[rank]
                if isinstance(output, InstanceError):
                    output.index = numbers[at]
                    if errors == "raise":
                        raise output
                    yield Result(numbers[at], outputs.ids[rank], None, output)
                else:
                    yield Result(numbers[at], outputs.ids[rank], output)

    def set_weights(self, weights: Weights, *, rename: Rename | None = None) -> None:
        """Replaces the weights, all of them: from now on calls give what they would after a load with these, to
        the bit. Streams and engines that have begun keep theirs. Where it raises, nothing is changed."""
        if getattr(self._calls, "are_open", False):
            raise RuntimeError("weights are not replaced within a call, by its iterator")
        data = _weights.prepare(weights, rename)
        with self._lock:
            self._core.set_weights(data)
            self._weights = data
            self._weights_of = object()

    def engine(self, *, in_flight: int = 64, max_queued: int = 1024, threads: int = 1) -> Engine:
        """An engine for instances that come one at a time, for `async with`: `in_flight` are computed at once, and
        `max_queued` may wait.

            async with m.engine() as e:
                output = await e.submit(instance, deadline=0.05)
        """
        in_flight, max_queued = _numbers.count("in_flight", in_flight), _numbers.count("max_queued", max_queued)
        return Engine(self, in_flight, max_queued, _numbers.count("threads", threads, _MOST_THREADS))

    def flat(self, **arguments: Any) -> Flat:
        """Instances of arrays, an argument each, for a call: `m(m.flat(t={...}, x=array))`.

        A data type is a dict: `tags`, the constructors' numbers of all nodes in postorder, each behind its
        parts; `ends`, where each instance's nodes end; and for each constructor a list of arrays, one for each
        field that is not of the type itself, with what its nodes have there. Scalars and tensors of known shape
        are one array with a first axis for the instances; arrays of numbers, and tensors with one dim that
        differs, are a tuple of all rows and of where each instance's begin and the last's end.
        """
        return self._core.flat(arguments)

    @property
    def stats(self) -> dict[str, Any]:
        """What the last run did and how long it took, as `batch-run --stats` has it."""
        return self._stats

    def explain(self, instances: Iterable[Instance] | None = None, *, batch: int = 256) -> dict[str, Any]:
        """How instances are batched, block by block, and where batching is lost, as `batch-run --explain=json`
        has it. Runs the instances, or without any those of the last call, unless an iterator gave them."""
        draw = self.draw
        if instances is None:
            if self._last is None:
                raise ValueError("there is no last call, or an iterator gave its instances: say which ones to explain")
            instances, batch, draw = self._last
        _check_instances(instances)
        batch = _numbers.count("batch", batch)
        run = self._core.run(batch, 1, draw=draw, is_surveyed=True)
        self._outputs(run, instances, batch, draw, "return")
        return json.loads(run.explanation or "{}")

    def cost(self, instance: Instance) -> int:
        """How much work an instance is, roughly: the bytes of its input once it is read, which grow with its
        nodes and rows. To sort by, or to make batches of equal work."""
        cost, error = self._core.cost(instance)
        if error is not None:
            given = instance.get("id", 1) if isinstance(instance, Mapping) else 1
            raise InstanceError("bad_input", given, error)
        return cost

    def save(self, path: str | os.PathLike) -> None:
        """Writes the artifact, which `cohort.load` runs without the compiler. Weights are not part of it."""
        _files.replace(os.fsdecode(path), self._core.artifact())


class _FlatChunks:
    """Instances of arrays, of which each chunk takes what it needs."""

    def __init__(self, instances: Flat):
        self.instances = instances

    def next(self, number: int) -> Flat | None:
        return self.instances if number < len(self.instances) else None


class _Chunks:
    """Instances of an iterable, some at once."""

    def __init__(self, iterable: Iterable[Instance], count: int):
        self.iterator = iter(iterable)
        self.count = count
        self.left: list[Instance] = []

    def next(self, number: int, most: int | None = None, patience: float | None = None) -> list[Instance]:
        """The next ones, from that number on; none at the end."""
        most = self.count if most is None else min(self.count, most)
        chunk, self.left = self.left[:most], self.left[most:]
        try:
            if patience is None:
                chunk.extend(itertools.islice(self.iterator, most - len(chunk)))
                return chunk
            begin = time.monotonic()
            while len(chunk) < most and (not chunk or time.monotonic() - begin < patience):
                chunk.append(next(self.iterator))
        except StopIteration:
            pass
        except BaseException as error:
            error.add_note(f"raised by the iterator that gives instances, for instance {number + len(chunk) + 1}")
            raise
        return chunk

    def give_back(self, instances: list[Instance]) -> None:
        self.left = instances + self.left


def _check_errors(errors: Any) -> None:
    if errors not in ("raise", "return"):
        raise ValueError(f'errors: "raise" or "return", not {errors!r}')


def _check_instances(instances: Any) -> None:
    if isinstance(instances, (Mapping, str, bytes)):
        raise TypeError("instances are a list of dicts; for one instance, a list of it")
