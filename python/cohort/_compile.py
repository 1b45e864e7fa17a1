"""Compiles programs by `batch-opt`, a process of its own, and keeps what it makes."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
import time
import warnings
from typing import Mapping

from . import _files, _weights
from ._cohort import in_python
from ._errors import ArtifactError, CompileError, CompileWarning, Error, Span, WeightsMismatch
from ._model import Model
from ._numbers import integer
from ._weights import Rename, Weights

# What the file name of a kept artifact is made of changes with it.
_CACHE_VERSION = 1
# What a kept artifact ends with, and what the compiler said when it made it.
_ARTIFACT = ".cohort"
_WARNINGS = ".warnings"
# In seconds: a file that is unfinished for longer is what a process left that died.
_LONGEST_WRITE = 3600
# Weights that are not as the program declares them.
_OF_WEIGHTS = ("E0702", "E0703")
_DIAGNOSTIC = re.compile(r"^error(?:\[(?P<code>\w+)\])?: (?P<message>.*)$", re.MULTILINE)
# Another file's items; a comment may stand between the two words.
_IMPORT = re.compile(rb'\bimport(?:\s|//[^\n]*)*"([^"\n]*)"')
_PLACE = re.compile(r"┌─ (?P<file>.+):(?P<line>\d+):(?P<column>\d+)\s*$", re.MULTILINE)


def compiler() -> str:
    """The path of `batch-opt`: that of `COHORT_BATCH_OPT`, of the distribution `cohort-lang`, or on `PATH`."""
    if given := os.environ.get("COHORT_BATCH_OPT"):
        return given
    spec = importlib.util.find_spec("cohort_lang")
    for folder in spec.submodule_search_locations or [] if spec else []:
        path = os.path.join(folder, "bin", "batch-opt")
        if os.path.exists(path):
            return path
    if found := shutil.which("batch-opt"):
        return found
    raise CompileError(
        "there is no compiler: install `cohort-lang`, or put `batch-opt` on the PATH; to run what is compiled "
        "already, cohort.load needs none"
    )


def cache_folder() -> str | None:
    """Where artifacts are kept: `COHORT_CACHE`, or `cohort` in the user's folder for caches. Nowhere, where these are not
    known, and where `COHORT_CACHE` is empty or relative; as the compiler has it."""
    folder = os.environ.get("COHORT_CACHE")
    if folder is None:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):
            base = os.path.join(os.environ.get("HOME", ""), ".cache")
        folder = os.path.join(base, "cohort")
    return folder if os.path.isabs(folder) else None


def _is_private(folder: str) -> bool:
    """Whether a folder is this user's and nobody else may write there: artifacts are code."""
    try:
        about = os.stat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and about.st_mode & 0o022 == 0


def compile(
    path: str | os.PathLike,
    weights: Weights = None,
    dims: Mapping[str, int] | None = None,
    cache: bool = True,
    *,
    rename: Rename | None = None,
    allow_unused_weights: bool = False,
    device: str = "cpu",
    gpu_arch: str | None = None,
    max_depth: int | None = None,
    max_nodes: int | None = None,
    max_memory: int | None = None,
    max_steps: int | None = None,
    entry: str | None = None,
    gradients: bool = False,
    keep_weights: str = "f32",
    draw: int = 0,
) -> Model:
    """Compiles a program, a `.coh` file, and loads it with its weights.

    The program's dims are bound by the shapes of the weights, and by `dims`. What was compiled is kept by its
    content and used again, unless `cache` is false. What the compiler warns of is a `CompileWarning`. `entry` names a
    function that runs in the place of `main`; with `gradients` it is compiled together with its backward, for `Model.gradients` and `cohort.torch`. With
    `keep_weights="bf16"` the packed weights of products have half the bytes, each rounded once. See `cohort.load` for the other arguments.
    """
    path = os.fspath(path)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise CompileError(f"cannot read {path}: {error.strerror}") from error
    dims = {name: integer(f"dims: {name}", size) for name, size in dict(dims or {}).items()}
    data = _weights.prepare(weights, rename)
    options = [f"--dim={name}={size}" for name, size in sorted(dims.items())]
    if gpu_arch is None and device == "gpu-sim":
        gpu_arch = "sim"
    if gpu_arch is None and device == "ptx-sim":
        gpu_arch = "ptx"
    if gpu_arch is not None:
        options.append(f"--gpu-arch={gpu_arch}")
    if entry is not None:
        options.append(f"--entry={entry}")
    if gradients:
        options.append("--gradients")
    if keep_weights != "f32":
        options.append(f"--keep-weights={keep_weights}")
    shapes = _weights.shapes(data)
    tool = compiler()
    folder = cache_folder() if cache else None
    key = _key(tool, path, source, shapes and shapes[0], options)

    def model(artifact: bytes, said: str) -> Model:
        made = Model(
            artifact,
            path,
            data,
            rename=None,
            allow_unused_weights=allow_unused_weights,
            device=device,
            limits=[max_depth, max_nodes, max_memory, max_steps],
            draw=draw,
            entry=entry or "main",
        )
        if said:
            warnings.warn(said, CompileWarning, stacklevel=3)
        return made

    if folder is not None and _is_private(folder):
        try:
            artifact = _kept(folder, key + _ARTIFACT)
            return model(artifact, _said(folder, key))
        except (OSError, ArtifactError):
            # Not there, or written by a machine or a version that is not this one: made anew.
            pass
    artifact, said = _run(tool, path, shapes, options, folder, data)
    if folder is not None:
        # What has an artifact has its warnings.
        _keep(folder, ({key + _WARNINGS: said.encode()} if said else {}) | {key + _ARTIFACT: artifact})
    return model(artifact, said)


def _imported(path: str, source: bytes) -> list[bytes]:
    """The texts of all files that a program imports, empty for one that cannot be read."""
    known: dict[str, bytes] = {}
    rest = [(path, source)]
    while rest:
        path, source = rest.pop()
        for found in _IMPORT.findall(source):
            other = os.path.join(os.path.dirname(path), os.fsdecode(found))
            try:
                if (real := os.path.realpath(other)) in known:
                    continue
                known[real] = b""
                with open(other, "rb") as file:
                    known[real] = file.read()
            except (OSError, ValueError):
                continue
            rest.append((other, known[real]))
    return list(known.values())


def _key(tool: str, path: str, source: bytes, shapes: bytes | None, options: list[str]) -> str:
    status = os.stat(os.path.realpath(tool))
    about = [
        _CACHE_VERSION,
        [os.path.realpath(tool), status.st_size, status.st_mtime_ns],
        # It is in the places that messages name.
        os.path.basename(path),
        options,
        [platform.machine(), _processor()],
    ]
    key = hashlib.sha256(json.dumps(about).encode())
    for part in (source, shapes or b"", *_imported(path, source)):
        key.update(len(part).to_bytes(8, "little"))
        key.update(part)
    return key.hexdigest()


def _processor() -> str:
    """What the machine's processor can, since the code is for it."""
    try:
        with open("/proc/cpuinfo") as file:
            return next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        return platform.processor()


def _kept(folder: str, name: str) -> bytes:
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def _said(folder: str, key: str) -> str:
    """What the compiler warned of, which is there before the artifact is."""
    try:
        return _kept(folder, key + _WARNINGS).decode()
    except FileNotFoundError:
        return ""


def _keep(folder: str, files: Mapping[str, bytes]) -> None:
    """Writes files that others may be reading, or writing too."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not _is_private(folder):
            return
        _remove_unfinished(folder)
        for name, content in files.items():
            _files.replace(os.path.join(folder, name), content, mode=0o600)
    except OSError:
        # A cache that cannot be written is none.
        pass


def _remove_unfinished(folder: str) -> None:
    """Removes what a process that died left."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_files.UNFINISHED) and time.time() - entry.stat().st_mtime > _LONGEST_WRITE:
                os.unlink(entry.path)


def _run(
    tool: str,
    path: str,
    shapes: tuple[bytes, int] | None,
    options: list[str],
    cache: str | None,
    given: str | bytes | None,
) -> tuple[bytes, str]:
    """The artifact, and what the compiler warned of."""
    # The compiler keeps what programs have in common beside the artifacts.
    environment = {**os.environ, "COHORT_CACHE": cache or ""}
    with tempfile.TemporaryDirectory(prefix="cohort-") as folder:
        output = os.path.join(folder, "model.cohort")
        command = [tool, path, "--emit=artifact", "-o", output, *options]
        weights = os.path.join(folder, "weights.safetensors")
        if shapes is not None:
            # The compiler needs no more of the weights than their shapes: the rest is a hole.
            start, size = shapes
            with open(weights, "wb") as file:
                file.write(start)
                file.truncate(len(start) + size)
            command.append(f"--weights={weights}")
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment)
        except OSError as error:
            raise CompileError(f"cannot run {tool}: {error}") from error
        text = in_python(done.stderr.decode(errors="replace"))
        if done.returncode != 0:
            # What it says of the file that it was given is true of what the caller gave.
            is_of_file = weights in text
            named = text.replace(weights, given if isinstance(given, str) else "weights")
            raise _error(named, done.returncode, is_of_file)
        with open(output, "rb") as file:
            return file.read(), text.strip()


def _error(text: str, status: int, is_of_weights: bool) -> Error:
    """What the compiler said, as an exception."""
    found = _DIAGNOSTIC.search(text)
    if found is None:
        why = f"ended by signal {-status}" if status < 0 else f"exit code {status}"
        return CompileError(text.strip() or f"the compiler failed: {why}")
    following = _DIAGNOSTIC.search(text, found.end())
    place = _PLACE.search(text, found.end(), following.start() if following else len(text))
    span = Span(place["file"], int(place["line"]), int(place["column"])) if place else None
    of_weights = is_of_weights or found["code"] in _OF_WEIGHTS
    return (WeightsMismatch if of_weights else CompileError)(text.strip(), found["code"], span)
