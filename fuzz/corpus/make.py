#!/usr/bin/env python3
"""Writes the files of arrays beside this one: instances of files.coh, nested.coh and array.coh. Needs pyarrow."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

HERE = Path(__file__).parent
LENGTHS = [(2, 1), (0, 3), (3, 0), (1, 2)]
# In postorder: Leaf 0, Pair 1, Empty 2.
TREES = [[0], [0, 2, 1], [2], [0, 0, 1, 0, 1]]


def instances():
    """The arguments of each instance but its tree."""
    rng = np.random.default_rng(1)
    for k, (n, m) in enumerate(LENGTHS):
        yield {
            "a": np.float32(k / 2), "b": np.int32(7 - k), "c": k % 2 == 0,
            "v": rng.random(3, np.float32), "x": rng.random((n, 2), np.float32),
            "y": np.arange(n, dtype=np.int32), "z": rng.random((m, n), np.float32),
            "l": np.arange(k, dtype=np.int32),
        }


def archive(path, save):
    """NumPy's archive of all instances."""
    every = list(instances())
    arrays = {name: np.array([one[name] for one in every]) for name in "abcv"}
    for name in "xyl":
        arrays[name] = np.concatenate([one[name] for one in every])
        arrays[name + ".offsets"] = np.cumsum([0] + [len(one[name]) for one in every])
    arrays["z"] = np.concatenate([one["z"].ravel() for one in every])
    arrays["z.shapes"] = np.array([one["z"].shape for one in every])
    tags = [tag for tree in TREES for tag in tree]
    arrays["t.tags"] = np.array(tags, np.uint8)
    arrays["t.ends"] = np.cumsum([len(tree) for tree in TREES])
    arrays["t.Leaf"] = np.arange(tags.count(0), dtype=np.int32)
    arrays["t.Pair"] = np.arange(tags.count(1), dtype=np.float32)
    arrays["id"] = np.arange(10, 10 + len(every))
    save(path, **arrays)


def table():
    """A table of all instances: of a tree the constructors and fields of its nodes, in postorder."""
    every = list(instances())
    f32, i32 = pa.float32(), pa.int32()
    types = {"a": f32, "b": i32, "c": pa.bool_(), "v": pa.list_(f32, 3), "x": pa.list_(pa.list_(f32, 2)),
             "y": pa.list_(i32), "z": pa.large_list(pa.list_(f32)), "l": pa.list_(i32)}
    columns = {name: pa.array([np.asarray(one[name]).tolist() for one in every], ty) for name, ty in types.items()}
    trees = [{"tags": tree, "Leaf": [3] * tree.count(0), "Pair": [0.5] * tree.count(1)} for tree in TREES]
    tree = pa.struct({"tags": pa.list_(pa.uint8()), "Leaf": pa.list_(i32), "Pair": pa.list_(f32)})
    columns["t"] = pa.array(trees, tree)
    columns["id"] = pa.array([f"r{number}" for number in range(len(every))])
    return pa.table(columns)


def nested():
    """Values of data types within others: Word is Known 0, Spelled 1, Gap 2; Tree is Leaf 0, Node 1, Many 2."""
    f32, i32 = pa.float32(), pa.int32()
    word = pa.struct({"tags": pa.list_(pa.uint8()), "Known": pa.list_(i32), "Spelled": pa.list_(pa.string())})
    many = pa.struct({"0": pa.list_(f32, 2), "1": i32, "2": pa.struct({"0": word, "1": pa.list_(f32)})})
    tree = pa.struct({"tags": pa.list_(pa.int8()), "Leaf": pa.list_(word), "Node": pa.list_(f32), "Many": pa.list_(many)})
    words = [
        {"tags": [0], "Known": [7], "Spelled": []},
        {"tags": [1], "Known": [], "Spelled": ["word"]},
        {"tags": [2], "Known": [], "Spelled": []},
    ]
    leaf = {"tags": [0], "Leaf": words[:1], "Node": [], "Many": []}
    # Many([Node(Leaf, Leaf), Leaf]).
    both = {
        "tags": [0, 0, 1, 0, 2], "Leaf": words, "Node": [0.5],
        "Many": [{"0": [1.0, 2.0], "1": 2, "2": {"0": words[1], "1": [1.5, 2.5]}}],
    }
    return pa.table({
        "a": pa.array([{"0": leaf, "1": []}, {"0": both, "1": words}], pa.struct({"0": tree, "1": pa.list_(word)})),
        "s": pa.array([["", "a"], []], pa.list_(pa.string())),
        "d": pa.array([[], [[], [{"0": 1, "1": True}]]], pa.list_(pa.list_(pa.struct({"0": i32, "1": pa.bool_()})))),
    })


if __name__ == "__main__":
    archive(HERE / "files.npz", np.savez)
    archive(HERE / "packed.npz", np.savez_compressed)
    np.save(HERE / "array.npy", np.arange(24, dtype=np.float32).reshape(4, 3, 2))
    files = table()
    for name, written in (("files", files), ("nested", nested())):
        with pa.OSFile(str(HERE / f"{name}.arrow"), "wb") as file, pa.ipc.new_file(file, written.schema) as writer:
            writer.write_table(written, max_chunksize=3)
    with pa.OSFile(str(HERE / "stream.arrow"), "wb") as file, pa.ipc.new_stream(file, files.schema) as writer:
        writer.write_table(files)
    parquet.write_table(files, HERE / "files.parquet")
    parquet.write_table(files, HERE / "plain.parquet", compression="none", use_dictionary=False, row_group_size=2)
