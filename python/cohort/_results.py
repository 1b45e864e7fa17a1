"""Results: numbers as compiled code left them, and what users make of them."""

from __future__ import annotations

import functools
import json
import operator
from typing import Any, Iterator, Sequence

import numpy as np

from ._errors import InstanceError
from ._types import Types, type_text

_DTYPES = {"f32": np.dtype("<f4"), "i32": np.dtype("<i4"), "bool": np.dtype("?")}


def parts(result: Any) -> list[Any]:
    """The types that are left when tuples are taken apart; a column of results is of each."""
    found, left = [], [result]
    while left:
        ty = left.pop()
        if "tuple" in ty:
            left.extend(reversed(ty["tuple"]))
        else:
            found.append(ty)
    return found


class Column:
    """What all instances have of a part of the result, behind each other."""

    def __init__(self, data: np.ndarray, words: np.ndarray, ends: np.ndarray):
        self.data = data
        self.words = words
        self.ends = ends

    @staticmethod
    def of(data: bytearray, words: bytearray, ends: bytearray) -> Column:
        return Column(
            np.frombuffer(data, np.uint8),
            np.frombuffer(words, np.uint64),
            np.frombuffer(ends, np.int64).reshape(-1, 2),
        )

    @staticmethod
    def joined(columns: list[Column]) -> Column:
        if len(columns) == 1:
            return columns[0]
        ends, before = [], np.zeros(2, np.int64)
        for column in columns:
            ends.append(column.ends + before)
            before = before + [len(column.data), len(column.words)]
        return Column(
            np.concatenate([column.data for column in columns]),
            np.concatenate([column.words for column in columns]),
            np.concatenate(ends) if ends else np.empty((0, 2), np.int64),
        )

    def starts(self) -> np.ndarray:
        return np.concatenate([np.zeros((1, 2), np.int64), self.ends])[:-1]

    def reordered(self, order: np.ndarray) -> Column:
        starts, ends = self.starts(), self.ends
        data = _gather(self.data, starts[order, 0], ends[order, 0])
        words = _gather(self.words, starts[order, 1], ends[order, 1])
        return Column(data, words, np.cumsum((ends - starts)[order], axis=0))

    def span(self, instance: int) -> tuple[int, int]:
        if instance == 0:
            return 0, 0
        before = self.ends[instance - 1]
        return int(before[0]), int(before[1])


def _gather(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The ranges of the values, behind each other."""
    lengths = ends - starts
    total = int(lengths.sum())
    if total == 0:
        return values[:0].copy()
    if (lengths == lengths[0]).all():
        return values[(starts[:, None] + np.arange(lengths[0])).ravel()]
    before = np.cumsum(lengths) - lengths
    return values[np.repeat(starts - before, lengths) + np.arange(total)]


class Reader:
    """Makes values of a program's types, one after another; nothing recurses, so depth does not matter."""

    def __init__(self, manifest: dict, types: Types):
        self.row_pools = manifest["row_pools"]
        self.adts = manifest["adts"]
        self.classes = types._classes

    def value(self, ty: Any, column: Column, byte: int, word: int) -> Any:
        data, words = column.data, column.words
        # What is read around: how to make it of its parts, the types of those that are missing, those
        # that are there.
        open_: list[tuple[Any, Any, list]] = []
        while True:
            done = True
            match ty:
                case {"scalar": elem}:
                    dtype = _DTYPES[elem]
                    value = data[byte : byte + dtype.itemsize].view(dtype)[0].item()
                    byte += dtype.itemsize
                case "str":
                    end = byte + int(words[word])
                    value, byte, word = bytes(data[byte:end]).decode(), end, word + 1
                case {"tensor": {"pool": pool}}:
                    value, byte = self._tensor(pool, [], data, byte)
                case {"ragged": {"pool": pool, "dims": dims}}:
                    leading = []
                    for dim in dims:
                        if isinstance(dim, dict) and "known" in dim:
                            leading.append(dim["known"])
                        else:
                            leading.append(int(words[word]))
                            word += 1
                    value, byte = self._tensor(pool, leading, data, byte)
                case {"tuple": types}:
                    open_.append((tuple, iter(types), []))
                    done = False
                case {"array": element}:
                    length = int(words[word])
                    word += 1
                    if "scalar" in element:
                        dtype = _DTYPES[element["scalar"]]
                        end = byte + length * dtype.itemsize
                        value = data[byte:end].view(dtype).tolist()
                        byte = end
                    else:
                        open_.append((list, _times(element, length), []))
                        done = False
                case {"stacked": {"pool": pool}}:
                    value, byte = self._tensor(pool, [int(words[word])], data, byte)
                    word += 1
                case {"adt": adt}:
                    tag = int(words[word])
                    word += 1
                    fields = self.adts[adt]["constructors"][tag]["fields"]
                    made = self.classes[adt][tag]
                    open_.append((made, iter(fields), []))
                    done = False
                case _:
                    raise ValueError(f"an unknown type: {ty!r}")
            while True:
                if done:
                    if not open_:
                        return value
                    open_[-1][2].append(value)
                make, missing, there = open_[-1]
                ty = next(missing, None)
                if ty is not None:
                    break
                open_.pop()
                value = make(there) if make in (tuple, list) else make(*there)
                done = True

    def _tensor(self, pool: int, leading: list[int], data: np.ndarray, byte: int) -> tuple[Any, int]:
        of_row = self.row_pools[pool]
        dtype = _DTYPES[of_row["elem"]]
        shape = leading + of_row["shape"]
        end = byte + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if not shape:
            return data[byte:end].view(dtype)[0].item(), end
        return _view(data[byte:end], dtype).reshape(shape), end


def _times(ty: Any, count: int) -> Iterator[Any]:
    for _ in range(count):
        yield ty


def _view(data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Bytes as elements, also where they do not lie as elements do."""
    if data.ctypes.data % dtype.alignment:
        data = data.copy()
    return data.view(dtype)


class Outputs(Sequence):
    """The outputs of a call, in the order of its instances.

    `out[i]` is one instance's output: a float, an int, a bool, a NumPy array, or tuples, lists and dataclasses
    of these; of one that failed, its `InstanceError`. `out.numpy()`, `out.tensor(i)` and `out.offsets(i)` are of
    all instances together.
    """

    def __init__(self, manifest: dict, types: Types, portions: list, core: Any = None):
        self._manifest = manifest
        self._core = core
        self._parts = parts(manifest["result"])
        self._reader = Reader(manifest, types)
        numbers = [np.frombuffer(portion[0], np.int64) for portion in portions]
        self._count = sum(map(len, numbers))
        texts: list[str] = []
        found: list[InstanceError] = []
        for portion, of_portion in zip(portions, numbers):
            texts.extend(portion[1])
            for place, kind, message in portion[2]:
                found.append(InstanceError(kind, _id(portion[1][place]), message, int(of_portion[place])))
        columns = [
            Column.joined([Column.of(*portion[3][part]) for portion in portions])
            if portions
            else Column.of(bytearray(), bytearray(), bytearray())
            for part in range(len(self._parts))
        ]
        order = np.concatenate(numbers) if numbers else np.empty(0, np.int64)
        if not np.array_equal(order, np.arange(self._count)):
            order = np.argsort(order)
            columns = [column.reordered(order) for column in columns]
            texts = [texts[place] for place in order]
        self._texts = texts
        self._columns = columns
        #: What went wrong, in the order of the instances.
        self.errors: list[InstanceError] = sorted(found, key=lambda error: error.index)
        self._failed = {error.index: error for error in self.errors}

    def __getstate__(self) -> dict[str, Any]:
        manifest = {name: self._manifest[name] for name in ("result", "adts", "row_pools", "dims") if name in self._manifest}
        return {
            "manifest": manifest,
            "texts": self._texts,
            "columns": [(column.data, column.words, column.ends) for column in self._columns],
            "errors": self.errors,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._manifest, self._core = state["manifest"], None
        self._parts = parts(self._manifest["result"])
        self._reader = Reader(self._manifest, Types(self._manifest))
        self._texts, self._count = state["texts"], len(state["texts"])
        self._columns = [Column(*column) for column in state["columns"]]
        self.errors = state["errors"]
        self._failed = {error.index: error for error in self.errors}

    @functools.cached_property
    def ids(self) -> list[str | int]:
        """The instances' ids, or their numbers from 1."""
        return [_id(text) for text in self._texts]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        try:
            i = operator.index(index)
        except TypeError:
            raise TypeError(f"an output is taken by its place, from 0, not by {type(index).__name__}") from None
        i += self._count if i < 0 else 0
        if not 0 <= i < self._count:
            raise IndexError(f"output {index} of {self._count}")
        if i in self._failed:
            return self._failed[i]
        values = iter(
            [
                self._reader.value(ty, column, *column.span(i))
                for ty, column in zip(self._parts, self._columns)
            ]
        )
        return _nest(self._manifest["result"], values)

    def __repr__(self) -> str:
        failed = f", {len(self.errors)} failed" if self.errors else ""
        ty = type_text(self._manifest, self._manifest["result"])
        return f"<Outputs: {self._count} of {ty}{failed}>"

    def _none_failed(self) -> None:
        if self.errors:
            raise ValueError(
                f"{len(self.errors)} of {self._count} instances have no output, first {self.errors[0]}; "
                "take those of the others by index"
            )

    def tensor(self, part: int = 0) -> np.ndarray:
        """All values of a part of the result, without a copy: of tensors of one shape with a first axis for the
        instances; of those whose lengths differ, and of arrays, with all rows behind each other, which
        `offsets` tells apart. A NumPy array, which other libraries take through DLPack."""
        ty, column = self._part(part)
        match ty:
            case {"scalar": elem}:
                self._none_failed()
                return _view(column.data, _DTYPES[elem])
            case {"tensor": {"pool": pool}}:
                self._none_failed()
                of_row = self._manifest["row_pools"][pool]
                shape = [self._count, *of_row["shape"]]
                return _view(column.data, _DTYPES[of_row["elem"]]).reshape(shape)
            case {"ragged": {"pool": pool}} | {"stacked": {"pool": pool}}:
                of_row = self._manifest["row_pools"][pool]
                shape = [int(self.offsets(part)[-1]), *of_row["shape"]]
                return _view(column.data, _DTYPES[of_row["elem"]]).reshape(shape)
            case {"array": {"scalar": elem}}:
                return _view(column.data, _DTYPES[elem])
            case {"array": {"tensor": {"pool": pool}}}:
                of_row = self._manifest["row_pools"][pool]
                shape = [int(self.offsets(part)[-1]), *of_row["shape"]]
                return _view(column.data, _DTYPES[of_row["elem"]]).reshape(shape)
        raise TypeError(f"part {part} is not a tensor: {type_text(self._manifest, ty)}")

    def offsets(self, part: int = 0) -> np.ndarray:
        """Where each instance's rows begin in `tensor(part)`; behind them, how many rows there are."""
        ty, column = self._part(part)
        lengths = np.zeros(self._count, np.int64)
        match ty:
            case {"scalar": _} | {"tensor": _}:
                return np.arange(self._count + 1)
            case {"ragged": {"dims": dims}}:
                shapes = self._lengths(column, sum(not _is_known(dim) for dim in dims))
                known = np.prod([dim["known"] for dim in dims if _is_known(dim)], dtype=np.int64)
                lengths = np.prod(shapes, axis=1) * known
            case {"stacked": _} | {"array": {"scalar": _}} | {"array": {"tensor": _}}:
                lengths = self._lengths(column, 1)[:, 0]
            case _:
                raise TypeError(f"part {part} is not a tensor: {type_text(self._manifest, ty)}")
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])

    def _lengths(self, column: Column, count: int) -> np.ndarray:
        """The lengths that each instance has, zeros for one that failed."""
        lengths = np.zeros((self._count, count), np.int64)
        there = np.ones(self._count, bool)
        there[list(self._failed)] = False
        lengths[there] = column.words.astype(np.int64).reshape(-1, count)
        return lengths

    def numpy(self):
        """The outputs of all instances as one array with a first axis for the instances; a tuple of arrays
        where the result has several parts. All shapes must be equal."""
        self._none_failed()
        arrays = tuple(self._equal(part) for part in range(len(self._parts)))
        return arrays[0] if len(arrays) == 1 and "tuple" not in self._manifest["result"] else arrays

    def _equal(self, part: int) -> np.ndarray:
        ty, column = self._part(part)
        values = self.tensor(part)
        if "scalar" in ty or "tensor" in ty:
            return values
        dims = ty["ragged"]["dims"] if "ragged" in ty else ["any"]
        free = sum(not _is_known(dim) for dim in dims)
        lengths = self._lengths(column, free)
        if self._count and (lengths != lengths[0]).any():
            raise ValueError(
                f"shapes of part {part} differ ({type_text(self._manifest, ty)}); take all values by "
                f"tensor({part}) and offsets({part})"
            )
        own = iter(lengths[0].tolist() if self._count else [0] * free)
        leading = [dim["known"] if _is_known(dim) else next(own) for dim in dims]
        return values.reshape([self._count, *leading, *values.shape[1:]])

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if isinstance(array, tuple):
            raise ValueError("a result of several parts is not an array; see numpy()")
        return np.array(array, dtype=dtype, copy=True if copy is None else copy)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object:
        """A table of Arrow with a row an instance: `id`; `output`, or `output_0` and so on, one for each part; and
        `error` and `message` of those that failed, whose outputs are null. `pyarrow.table(out)` and
        `polars.DataFrame(out)` take it."""
        if self._core is None:
            raise TypeError("outputs that were pickled are no table of Arrow: make it where they were computed")
        columns = [
            (column.data.tobytes(), column.words.tobytes(), column.ends.tobytes()) for column in self._columns
        ]
        failed = [self._failed.get(i) for i in range(self._count)]
        errors = [None if error is None else (error.kind, error.message) for error in failed]
        return self._core.arrow(columns, self._texts, errors)

    def _values(self, part: int) -> list[Any]:
        """What each instance has of a part."""
        self._none_failed()
        ty, column = self._part(part)
        return [self._reader.value(ty, column, *column.span(i)) for i in range(self._count)]

    def _part(self, part: int) -> tuple[Any, Column]:
        if not 0 <= part < len(self._parts):
            raise IndexError(f"part {part} of a result of {len(self._parts)}")
        return self._parts[part], self._columns[part]


def _id(text: str) -> str | int:
    return int(text) if text.isdecimal() else json.loads(text)


def _is_known(dim: Any) -> bool:
    return isinstance(dim, dict) and "known" in dim


def _nest(result: Any, values: Iterator[Any]) -> Any:
    """The values of a result's parts in its tuples."""
    if "tuple" not in result:
        return next(values)
    return tuple(_nest(ty, values) for ty in result["tuple"])
