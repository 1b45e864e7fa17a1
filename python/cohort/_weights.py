"""Weights as users have them: a safetensors file, or a state dict of NumPy arrays or PyTorch tensors."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Mapping

import numpy as np

from ._errors import WeightsError

Rename = Mapping[str, str] | Callable[[str], str | None]
Weights = str | bytes | os.PathLike | Mapping[str, Any] | None

_DTYPES = {"F32": "<f4", "I32": "<i4", "BOOL": "?", "F16": "<f2", "F64": "<f8", "I64": "<i8"}


def prepare(weights: Weights, rename: Rename | None) -> str | bytes | None:
    """A path as it is, or the bytes of a safetensors file, which may be given as such."""
    if weights is None or isinstance(weights, bytes):
        if rename is not None:
            raise TypeError("rename= is for weights= of a path or a dict")
        return weights
    if isinstance(weights, (str, os.PathLike)):
        path = os.fspath(weights)
        if rename is None:
            return path
        weights = read(path)
    if not isinstance(weights, Mapping):
        raise TypeError(f"weights: a path, a dict of arrays or the bytes of a safetensors file, not {type(weights).__name__}")
    tensors: dict[str, np.ndarray] = {}
    for name, tensor in weights.items():
        new = renamed(name, rename)
        if new is None:
            continue
        if new in tensors:
            raise WeightsError(f"two tensors for `{new}`, one of them `{name}`")
        tensors[new] = as_array(name, tensor)
    return write(tensors)


def renamed(name: str, rename: Rename | None) -> str | None:
    """The program's name of a tensor; `None` leaves it out."""
    if rename is None:
        return name
    return rename(name) if callable(rename) else rename.get(name, name)


def as_array(name: str, tensor: Any) -> np.ndarray:
    """An array of a type that programs have. Narrow floats are widened; what is wider is taken where no
    number changes."""
    if hasattr(tensor, "detach"):  # PyTorch
        tensor = tensor.detach().cpu()
        if str(tensor.dtype) == "torch.bfloat16":
            tensor = tensor.float()
        tensor = tensor.numpy()
    try:
        array = np.asarray(tensor)
    except Exception as error:
        raise WeightsError(f"`{name}`: {type(tensor).__name__} is no array: {error}") from error
    if array.dtype.kind == "f":
        narrow = array.astype("<f4")
    elif array.dtype.kind in "iu":
        narrow = array.astype("<i4")
    elif array.dtype.kind == "b":
        return array
    else:
        raise WeightsError(f"`{name}`: weights of {array.dtype} are not taken; expected float32, int32 or bool")
    if array.dtype.itemsize >= 4 and not np.array_equal(narrow, array, equal_nan=array.dtype.kind == "f"):
        raise WeightsError(f"`{name}`: {array.dtype} has numbers that {narrow.dtype} does not have; convert it")
    return narrow


def read(path: str) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file, mapped."""
    try:
        start = read_header(path)
        header = json.loads(start[8:])
        has_data = os.path.getsize(path) > len(start)
        data = np.memmap(path, np.uint8, "r", offset=len(start)) if has_data else np.empty(0, np.uint8)
        tensors = {}
        for name, info in header.items():
            if name == "__metadata__":
                continue
            begin, end = info["data_offsets"]
            raw = data[begin:end]
            if info["dtype"] == "BF16":
                array = (raw.view("<u2").astype("<u4") << 16).view("<f4")
            elif info["dtype"] in _DTYPES:
                array = raw.view(_DTYPES[info["dtype"]])
            else:
                raise ValueError(f"`{name}`: weights of {info['dtype']} are not taken")
            tensors[name] = array.reshape(info["shape"])
        return tensors
    except OSError as error:
        raise WeightsError(f"cannot open {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise WeightsError(f"{path} is not a usable safetensors file: {error}") from error


def read_header(path: str) -> bytes:
    """How a safetensors file begins."""
    try:
        with open(path, "rb") as file:
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if not 0 < length <= min(os.path.getsize(path) - 8, 100 << 20):
                raise WeightsError(f"{path} is not a usable safetensors file: it has no header")
            return start + file.read(length)
    except OSError as error:
        raise WeightsError(f"cannot open {path}: {error.strerror}") from error


def data_bytes(start: bytes) -> int:
    """How many bytes a safetensors file has behind its header."""
    try:
        infos = [info for name, info in json.loads(start[8:]).items() if name != "__metadata__"]
        return max((int(info["data_offsets"][1]) for info in infos), default=0)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(f"the weights are not a usable safetensors file: {error}") from error


def header(tensors: Mapping[str, np.ndarray]) -> bytes:
    """How a safetensors file of these begins."""
    entries, place = {}, 0
    for name, array in sorted(tensors.items()):
        entries[name] = {
            "dtype": {"f": "F32", "i": "I32", "b": "BOOL"}[array.dtype.kind],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def write(tensors: Mapping[str, np.ndarray]) -> bytes:
    """A safetensors file."""
    data = [np.ascontiguousarray(array).tobytes() for _, array in sorted(tensors.items())]
    return b"".join([header(tensors), *data])
