"""`batch-run` over files of NumPy, Arrow and Parquet: the same bits as from JSON Lines, both ways."""

import functools
import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("COHORT_BIN", ROOT / "target" / "release"))
# Arguments that are numbers, or one tree of them.
TENSORS = ["act", "berxit", "birnn", "encoder", "masked_mha", "nestedrnn", "trmm", "vgemm"]


@functools.cache
def folder():
    return tempfile.TemporaryDirectory()


@functools.cache
def compiled(source):
    """The arguments that run a program, which is compiled once."""
    weights = source.parent / "weights.safetensors"
    weights = ["--weights", weights] if weights.exists() else []
    artifact = Path(folder().name) / f"{source.stem}.cohort"
    subprocess.run([BIN / "batch-opt", source, *weights, "--emit=artifact", "-o", artifact], check=True, timeout=120)
    return [artifact, *weights]


def run(source, given, target, code=0):
    command = [BIN / "batch-run", *compiled(source), "--input", given, "--output", target, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    codes = [code] if isinstance(code, int) else code
    assert done.returncode in codes, done.stderr
    return done.returncode, done.stderr


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path, instances):
    """The instances as a file of that name."""
    names = [name for name in instances[0] if name != "id"]
    if path.suffix == ".npz":
        arrays = {}
        for name in names:
            values = [np.asarray(x[name]) for x in instances]
            values = [x.astype(np.float32) if x.dtype == float else x for x in values]
            if len({x.shape for x in values}) == 1:
                arrays[name] = np.stack(values)
            elif len({x.shape[1:] for x in values if x.size}) <= 1:
                shape = max(values, key=lambda x: x.ndim).shape[1:]
                arrays[name] = np.concatenate([x.reshape(-1, *shape) for x in values])
                arrays[name + ".offsets"] = np.cumsum([0] + [len(x) for x in values])
            else:
                arrays[name] = np.concatenate([x.ravel() for x in values])
                arrays[name + ".shapes"] = np.array([x.shape for x in values])
        np.savez(path, **arrays)
        return
    table = pa.table({name: [x[name] for x in instances] for name in names + ["id"]})
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=5)


def bits(value):
    """Numbers as they are in f32, in lists as they were."""
    if isinstance(value, list):
        return [bits(part) for part in value]
    return np.float32(value).tobytes() if isinstance(value, float) else value


@pytest.mark.parametrize("model", TENSORS)
@pytest.mark.parametrize("suffix", [".npz", ".arrow", ".parquet"])
def test_an_example_gives_the_bits_of_json(tmp_path, model, suffix):
    source = ROOT / "examples" / model / f"{model}.coh"
    instances = lines(source.parent / "input.jsonl")
    run(source, source.parent / "input.jsonl", tmp_path / "expected.jsonl")
    expected = [bits(record["output"]) for record in lines(tmp_path / "expected.jsonl")]
    write(tmp_path / f"x{suffix}", instances)
    run(source, tmp_path / f"x{suffix}", tmp_path / "got.jsonl")
    assert [bits(record["output"]) for record in lines(tmp_path / "got.jsonl")] == expected
    run(source, tmp_path / f"x{suffix}", tmp_path / f"got{suffix}")
    assert [bits(x) for x in read(tmp_path / f"got{suffix}")] == expected


def read(path):
    """The outputs that a file of results has, in lists."""
    if path.suffix == ".npz":
        columns = dict(np.load(path))
        assert not any(columns.pop("error"))
        names = sorted(name for name in columns if name.startswith("output") and "." not in name)
        parts = [part(columns, name) for name in names]
    else:
        if path.suffix == ".parquet":
            table = parquet.read_table(path)
        else:
            with pa.memory_map(str(path)) as file:
                table = pa.ipc.open_file(file).read_all()
        parts = [table[name].to_pylist() for name in table.column_names if name.startswith("output")]
    return parts[0] if len(parts) == 1 else [list(each) for each in zip(*parts)]


def part(arrays, name):
    output = arrays[name]
    if name + ".offsets" in arrays:
        return [x.tolist() for x in np.split(output, arrays[name + ".offsets"][1:-1])]
    if name + ".shapes" in arrays:
        shapes = arrays[name + ".shapes"]
        parts = np.split(output, np.cumsum([np.prod(shape) for shape in shapes])[:-1])
        return [x.reshape(shape).tolist() for x, shape in zip(parts, shapes)]
    return output.tolist()


@pytest.fixture
def made(tmp_path):
    """A program over trees in a folder of its own."""
    (tmp_path / "made").mkdir()
    path = tmp_path / "made" / "sum.coh"
    path.write_text(
        "type T = Leaf(i32) | Pair(f32, T, T, i32) | Nil\n"
        "fn total(t: T) -> i32 { match t { Leaf(k) => k, Nil => 0, Pair(x, a, b, k) => total(a) + total(b) + k } }\n"
        "fn main(t: T) -> i32 { 100 / total(t) }\n"
    )
    return path


def test_trees_and_failed_instances(tmp_path, made):
    # Pair(_, Leaf(3), Nil, 7); Leaf(0), which cannot be divided by; Leaf(5).
    arrays = {"t.tags": np.array([0, 2, 1, 0, 0], np.uint8), "t.ends": np.array([3, 4, 5]),
              "t.Leaf": np.array([3, 0, 5]), "t.Pair.0": np.array([0.5]), "t.Pair.1": np.array([7]),
              "id": np.array([10, 11, 12])}
    np.savez_compressed(tmp_path / "x.npz", **arrays)
    run(made, tmp_path / "x.npz", tmp_path / "y.npz", code=1)
    y = np.load(tmp_path / "y.npz")
    assert y["output"].tolist() == [10, 0, 20] and y["id"].tolist() == [10, 11, 12]
    assert y["error"][0] == y["error"][2] == "" and y["error"][1].startswith("division_by_zero: ")
    run(made, tmp_path / "x.npz", tmp_path / "y.arrow", code=1)
    assert read(tmp_path / "y.arrow") == [10, None, 20]
    assert "no place for errors" in run(made, tmp_path / "x.npz", tmp_path / "y.npy", code=2)[1]
    arrays["t.ends"] = np.array([3, 5, 4])
    np.savez(tmp_path / "x.npz", **arrays)
    assert 'array "t"' in run(made, tmp_path / "x.npz", tmp_path / "y.npz", code=2)[1]


@pytest.mark.parametrize("suffix", [".npz", ".arrow", ".parquet"])
def test_a_damaged_file_is_told_by_its_name(tmp_path, suffix):
    source = ROOT / "examples" / "vgemm" / "vgemm.coh"
    path = tmp_path / f"x{suffix}"
    write(path, lines(source.parent / "input.jsonl"))
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    for number in range(15):
        changed = bytearray(whole)
        if number % 3 == 0:
            changed = changed[: int(rng.integers(len(whole)))]
        else:
            for place in rng.integers(len(whole), size=4):
                changed[place] = int(rng.integers(256))
        path.write_bytes(changed)
        # A changed number is still one.
        code, told = run(source, path, tmp_path / "y.jsonl", code=(0, 1, 2))
        assert code != 2 or str(path) in told, told
    path.write_bytes(b"")
    assert path.name in run(source, path, tmp_path / "y.jsonl", code=2)[1]


def test_a_server_takes_and_gives_arrow(tmp_path):
    source = ROOT / "examples" / "encoder" / "encoder.coh"
    instances = lines(source.parent / "input.jsonl")
    run(source, source.parent / "input.jsonl", tmp_path / "expected.jsonl")
    expected = [bits(record["output"]) for record in lines(tmp_path / "expected.jsonl")]
    names = list(instances[0])
    table = pa.table({name: [x[name] for x in instances] for name in names})
    body = pa.BufferOutputStream()
    with pa.ipc.new_stream(body, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    command = [BIN / "batch-serve", *compiled(source), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().split()[-1] + "/infer"
            headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
            whole = body.getvalue().to_pybytes()
            request = urllib.request.Request(url, whole, headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                got = pa.ipc.open_stream(answer.read()).read_all()
            assert [bits(x) for x in got["output"].to_pylist()] == expected
            assert got["id"].to_pylist() == [x["id"] for x in instances]
            for wrong in (b"", b"no stream", whole[:100], whole[:-100], whole[:200] + b"\xff" * 40 + whole[240:]):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(urllib.request.Request(url, wrong, headers), timeout=60)
                assert refused.value.code == 400
        finally:
            server.terminate()
    assert server.returncode == 0
