"""Weights as users have them: a safetensors file, an index of several, or a state dict of NumPy arrays or PyTorch
tensors. What they are converted to, and whether they can be, is known to the runtime alone."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Iterable, Mapping, NamedTuple

import numpy as np

from ._errors import WeightsError

Rename = Mapping[str, str] | Callable[[str], str | None]
Weights = str | bytes | os.PathLike | Mapping[str, Any] | None

#: The types that the runtime reads, as NumPy has them.
_DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "BOOL": "?"}
_BFLOAT16 = "BF16"
_INDEX = "model.safetensors.index.json"


class Tensor(NamedTuple):
    """A tensor as it is in a file: its type, its shape and its bytes."""

    dtype: str
    shape: list[int]
    data: np.ndarray


def prepare(weights: Weights, rename: Rename | None) -> str | bytes | None:
    """A path as it is, or the bytes of a safetensors file, which may be given as such."""
    if weights is None or isinstance(weights, bytes):
        if rename is not None:
            raise TypeError("rename= is for weights= of a path or a dict")
        return weights
    if isinstance(weights, (str, os.PathLike)):
        path = os.fspath(weights)
        if rename is None and not os.path.isdir(path) and not path.endswith(".json"):
            return path
        weights = read(path)
    if not isinstance(weights, Mapping):
        raise TypeError(f"weights: a path, a dict of arrays or the bytes of a safetensors file, not {type(weights).__name__}")
    tensors: dict[str, Tensor] = {}
    for name, tensor in weights.items():
        new = renamed(name, rename)
        if new is None:
            continue
        if new in tensors:
            raise WeightsError(f"two tensors for `{new}`, one of them `{name}`")
        tensors[new] = as_tensor(name, tensor)
    return write(tensors)


def renamed(name: str, rename: Rename | None) -> str | None:
    """The program's name of a tensor; `None` leaves it out."""
    if rename is None:
        return name
    return rename(name) if callable(rename) else rename.get(name, name)


def as_tensor(name: str, tensor: Any) -> Tensor:
    """A tensor of a type that the runtime reads."""
    if isinstance(tensor, Tensor):
        return tensor
    dtype = None
    if hasattr(tensor, "detach"):  # PyTorch
        tensor = tensor.detach().cpu().contiguous()
        if str(tensor.dtype) == "torch.bfloat16":
            dtype, tensor = _BFLOAT16, tensor.view(getattr(__import__("torch"), "int16"))
        tensor = tensor.numpy()
    try:
        array = np.asarray(tensor)
    except Exception as error:
        raise WeightsError(f"`{name}`: {type(tensor).__name__} is not an array: {error}") from error
    if array.dtype.name == "bfloat16":
        dtype, array = _BFLOAT16, array.view(np.uint16)
    if dtype is None:
        dtype, array = _readable(name, array)
    # A tensor of no dims stays one.
    shape = list(array.shape)
    return Tensor(dtype, shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def _readable(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    """The array in a type of the runtime's that holds all of its numbers."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "b":
        return "BOOL", array
    if kind == "f" and size <= 8:
        dtype = f"F{8 * size}"
    elif kind in "iu" and (size < 4 or (kind, size) == ("i", 4)):
        dtype = "I32"
    elif kind in "iu":
        dtype = "I64"
        if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
            raise WeightsError(f"`{name}`: uint64 has numbers that no int32 is; convert it")
    else:
        raise WeightsError(f"`{name}`: weights of {array.dtype} are not taken; expected floats, ints or bool")
    return dtype, array.astype(_DTYPES[dtype], copy=False)


def read(path: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file, mapped; or of the files of an index or of a folder with one."""
    if os.path.isdir(path):
        path = _in_folder(path)
    try:
        if path.endswith(".json"):
            return _of_index(path)
        read_header(path)
        return _tensors(path, np.memmap(path, np.uint8, "r"))
    except OSError as error:
        raise WeightsError(f"cannot open {path}: {error.strerror}") from error


def _in_folder(folder: str) -> str:
    for name in (_INDEX, "model.safetensors"):
        if os.path.exists(path := os.path.join(folder, name)):
            return path
    raise WeightsError(f"{folder}: neither {_INDEX} nor model.safetensors is there")


def _of_index(path: str) -> dict[str, Tensor]:
    """The tensors that an index names, each from its file."""
    try:
        with open(path, "rb") as file:
            places = json.load(file)["weight_map"]
        files = sorted(set(places.values()))
        if any(os.path.dirname(name) for name in files):
            raise ValueError("it names a file outside of its folder")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(f"{path} is not a usable index of safetensors files: {error}") from error
    shards = {name: read(os.path.join(os.path.dirname(path), name)) for name in files}
    tensors = {}
    for name, file in places.items():
        if name not in shards[file]:
            raise WeightsError(f"{path}: `{name}` is not in {file}")
        tensors[name] = shards[file][name]
    return tensors


def _tensors(path: str, file: np.ndarray) -> dict[str, Tensor]:
    """The tensors of a safetensors file; their bytes are the file's."""
    try:
        begin = 8 + int.from_bytes(file[:8].tobytes(), "little")
        tensors = {}
        for name, info in json.loads(file[8:begin].tobytes()).items():
            if name == "__metadata__":
                continue
            first, last = info["data_offsets"]
            tensors[name] = Tensor(info["dtype"], info["shape"], file[begin + first : begin + last])
        return tensors
    except (ValueError, KeyError, TypeError, AttributeError) as error:
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


def shapes(weights: str | bytes | None) -> tuple[bytes, int] | None:
    """How weights begin, with the names, types and shapes of the tensors; and how many bytes there are behind that."""
    if weights is None:
        return None
    try:
        if isinstance(weights, bytes):
            start, size = weights[: 8 + int.from_bytes(weights[:8], "little")], len(weights)
        else:
            start, size = read_header(weights), os.path.getsize(weights)
        infos = [info for name, info in json.loads(start[8:]).items() if name != "__metadata__"]
        end = max((int(info["data_offsets"][1]) for info in infos), default=0)
    except OSError as error:
        raise WeightsError(f"cannot open {weights}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise WeightsError(f"{unusable(weights)}: {error}") from error
    if end != size - len(start):
        problem = f"its tensors end at {end}, and there are {size - len(start)} bytes behind its header"
        raise WeightsError(f"{unusable(weights)}: {problem}")
    return start, end


def unusable(weights: str | bytes) -> str:
    """What is said of weights that cannot be read."""
    if isinstance(weights, bytes):
        return "the weights are not a usable safetensors file"
    return f"{weights} is not a usable safetensors file"


def write(weights: Mapping[str, Any]) -> bytes:
    """A safetensors file."""
    tensors = sorted((name, as_tensor(name, tensor)) for name, tensor in weights.items())
    return b"".join([header(tensors), *[tensor.data.tobytes() for _, tensor in tensors]])


def header(tensors: Iterable[tuple[str, Tensor]]) -> bytes:
    """How a safetensors file of these begins."""
    entries, place = {}, 0
    for name, tensor in tensors:
        end = place + tensor.data.nbytes
        entries[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [place, end]}
        place = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
