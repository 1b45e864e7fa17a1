"""What can go wrong, as exceptions."""

from __future__ import annotations

from typing import NamedTuple


class Error(Exception):
    """Everything that this package raises of its own."""


class Span(NamedTuple):
    """A place in a source file; line and column count from 1."""

    file: str
    line: int
    column: int


class _Diagnosed(Error):
    """What the compiler may have said. The message has all diagnostics; `code` and `span` are of the first."""

    def __init__(self, message: str, code: str | None = None, span: Span | None = None):
        super().__init__(message)
        self.code = code
        self.span = span

    def __reduce__(self):
        return type(self), (self.args[0], self.code, self.span)


class CompileError(_Diagnosed):
    """The program does not compile. The message has all diagnostics; `code` and `span` are of the first."""


class CompileWarning(UserWarning):
    """The program compiles, and the compiler has something to say of it."""


class WeightsError(_Diagnosed):
    """The weights cannot be read, or are not those that the program asks for."""


class WeightsMismatch(WeightsError, CompileError):
    """The compiler found that the weights are not as the program declares them. The message has all diagnostics; `code` and
    `span` are of the first, if that is of the program."""


class ArtifactError(Error):
    """A file is not an artifact, is damaged, or is for another version or machine."""


class DeviceError(Error):
    """A device cannot be used, or failed."""


class QueueFull(Error):
    """An engine's queue is full: it takes no other instance now."""


class InstanceError(Error):
    """An instance has no result. `kind` says why in one word (`bad_input`, `memory_limit`, ...), `id` is the
    instance's own or its number from 1, `index` its place in the instances, from 0."""

    def __init__(self, kind: str, id: str | int | float, message: str = "", index: int | None = None):
        super().__init__(kind, id, message, index)
        self.kind = kind
        self.id = id
        self.message = message
        self.index = index

    def __str__(self) -> str:
        return f"instance {self.id!r}: {self.kind}: {self.message}"
