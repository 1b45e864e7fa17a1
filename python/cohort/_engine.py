"""Instances one at a time, from an event loop."""

from __future__ import annotations

import asyncio
import collections
from typing import TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Iterable, Mapping

from ._errors import InstanceError, QueueFull
from ._numbers import integer, seconds
from ._results import Outputs

if TYPE_CHECKING:
    from ._model import Model


class Engine:
    """Computes instances as they come, beside each other. Made by `m.engine()` and used by `async with`; it
    belongs to the event loop that it was entered in.

    Leaving it waits for what was submitted, or, with an exception, cancels it.
    """

    def __init__(self, model: Model, in_flight: int, max_queued: int, threads: int):
        self._model = model
        self._settings = (in_flight, max_queued, threads)
        self._core: Any = None
        self._loop: Any = None
        self._number = 0
        self._closed: dict[str, int] | None = None
        # By number: where the answer goes.
        self._waiting: dict[int, asyncio.Future] = {}
        # Submissions wait for room one after another; the first of them until there may be some.
        self._turn = asyncio.Lock()
        self._room = asyncio.Event()
        self._submitting = 0

    async def __aenter__(self) -> Engine:
        if self._core is not None or self._closed is not None:
            raise RuntimeError("an engine is entered once")
        self._loop = asyncio.get_running_loop()
        self._core = await asyncio.to_thread(self._model._core.engine, *self._settings)
        self._loop.add_reader(self._core.fileno(), self._take)
        return self

    async def __aexit__(self, kind: Any, *_: Any) -> None:
        try:
            while kind is None and self._submitting:
                self._room.clear()
                await self._room.wait()
        finally:
            self._close()

    def _close(self) -> None:
        core, self._core = self._core, None
        self._closed = core.stats()
        self._loop.remove_reader(core.fileno())
        core.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_result(("error", ("cancelled", "the engine was closed")))
        # Those waiting for room wake up and find the engine closed.
        self._room.set()

    async def submit(
        self,
        instance: Mapping[str, Any],
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> Any:
        """The output of an instance; raises its `InstanceError`. Waits for room where too many wait already.

        After `deadline` seconds the instance is given up and its error is of the kind `deadline`. It goes before
        those that have waited up to `priority` tenths of a second longer. A task that is cancelled here gives its
        instance up.
        """
        return await self._submit(instance, deadline, priority, is_patient=True)

    async def try_submit(
        self,
        instance: Mapping[str, Any],
        *,
        deadline: float | None = None,
        priority: int = 0,
    ) -> Any:
        """As `submit`, but raises `QueueFull` where too many wait already."""
        return await self._submit(instance, deadline, priority, is_patient=False)

    async def _submit(self, instance: Any, deadline: float | None, priority: int, is_patient: bool) -> Any:
        core = self._open()
        if deadline is not None:
            deadline = seconds("deadline", deadline)
        priority = integer("priority", priority)
        if not -(2**31) <= priority < 2**31:
            raise ValueError(f"priority: {priority} has more than 32 bits")
        self._number += 1
        number = self._number
        # The instance is read now, whatever becomes of it while it waits.
        built = core.build(instance, number)
        end = None if deadline is None else self._loop.time() + deadline
        answer = self._loop.create_future()

        def is_taken() -> bool:
            left = None if end is None else end - self._loop.time()
            return self._open().submit(built, number, priority, left)

        self._submitting += 1
        try:
            async with asyncio.timeout_at(end):
                if not is_patient:
                    if self._turn.locked() or not is_taken():
                        raise QueueFull(f"{self._settings[1]} instances wait already")
                else:
                    async with self._turn:
                        while not is_taken():
                            self._room.clear()
                            await self._room.wait()
                self._waiting[number] = answer
                kind, value = await answer
        except TimeoutError:
            core.cancel(number)
            kind, value = "error", ("deadline", "it has no result by its deadline")
        except asyncio.CancelledError:
            core.cancel(number)
            raise
        finally:
            self._waiting.pop(number, None)
            self._submitting -= 1
            self._room.set()
        if kind == "error" and isinstance(value, tuple):
            given = instance.get("id", number) if isinstance(instance, Mapping) else number
            raise InstanceError(value[0], given, value[1])
        if kind == "error":
            raise value
        return Outputs(self._model._manifest, self._model.types, [(bytes(8), *value[1:])])[0]

    async def map(
        self,
        instances: Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]],
        *,
        ordered: bool = True,
    ) -> AsyncIterator[Any]:
        """The outputs of instances, in their order, or, without `ordered`, as they end. An instance that fails
        raises. At most as many are taken ahead as may run and wait."""
        most = self._settings[0] + self._settings[1]
        tasks: collections.deque[asyncio.Task] = collections.deque()
        source = instances if isinstance(instances, AsyncIterable) else _each(instances)
        try:
            async for instance in source:
                tasks.append(asyncio.ensure_future(self.submit(instance)))
                while tasks and (tasks[0].done() if ordered else any(task.done() for task in tasks)) or len(tasks) >= most:
                    yield await self._next(tasks, ordered)
            while tasks:
                yield await self._next(tasks, ordered)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _next(self, tasks: collections.deque[asyncio.Task], ordered: bool) -> Any:
        if ordered:
            output = await tasks[0]
            tasks.popleft()
            return output
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        first = next(task for task in tasks if task in done)
        tasks.remove(first)
        return first.result()

    @property
    def stats(self) -> dict[str, int]:
        """How many instances wait, run, are done, failed, were cancelled, late or refused; how many `launches` of
        kernels there were, and of how many `rows`: `rows / launches` says how much was computed together."""
        return dict(self._closed) if self._core is None and self._closed else self._open().stats()

    def _open(self) -> Any:
        if self._core is None:
            raise RuntimeError("the engine is not open: use it within `async with m.engine() as e`")
        return self._core

    def _take(self) -> None:
        """Answers have come."""
        if self._core is None:
            return
        answers = self._core.take()
        for number, value, *error in answers:
            future = self._waiting.get(number)
            if future is not None and not future.done():
                future.set_result(("error", error[0]) if value is None else ("done", value))


async def _each(instances: Iterable[Any]) -> AsyncIterator[Any]:
    for instance in instances:
        yield instance
