"""Writes a checkpoint with random weights, named and laid out as HuggingFace's `BertModel` saves one: in several files
with their index, weights of `torch.nn.Linear` as [out, in], a tensor for each layer, some of them in half precision.

    python3 examples/huggingface/make_checkpoint.py FOLDER

Needs NumPy alone. `reference` computes the model from these tensors, in float64; run with `--check`, the script
compares that with `transformers`.
"""

from __future__ import annotations

import argparse
import json
import math
import os

import numpy as np

#: A small one; the program reads all sizes but the number of heads from the weights.
CONFIG = {
    "vocab_size": 97,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 80,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}
_DTYPES = {"float16": "F16", "float32": "F32"}


def checkpoint(config: dict[str, int] = CONFIG, seed: int = 4) -> dict[str, np.ndarray]:
    """Tensors by the names of `BertModel.state_dict()`, and the vote of the program that leaves early."""
    random = np.random.default_rng(seed)
    wide, inside = config["hidden_size"], config["intermediate_size"]
    tensors: dict[str, np.ndarray] = {}

    def weight(name: str, *shape: int, dtype: type = np.float32) -> None:
        tensors[name] = (random.standard_normal(shape) / math.sqrt(shape[-1])).astype(dtype)

    def dense(name: str, before: int, after: int) -> None:
        weight(f"{name}.weight", after, before)
        weight(f"{name}.bias", after)

    def norm(name: str) -> None:
        tensors[f"{name}.weight"] = random.uniform(0.5, 1.5, wide).astype(np.float32)
        weight(f"{name}.bias", wide)

    for name, rows in (
        ("word", config["vocab_size"]),
        ("position", config["max_position_embeddings"]),
        ("token_type", config["type_vocab_size"]),
    ):
        weight(f"embeddings.{name}_embeddings.weight", rows, wide, dtype=np.float16)
    norm("embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            dense(f"{name}.attention.self.{part}", wide, wide)
        dense(f"{name}.attention.output.dense", wide, wide)
        norm(f"{name}.attention.output.LayerNorm")
        dense(f"{name}.intermediate.dense", wide, inside)
        dense(f"{name}.output.dense", inside, wide)
        norm(f"{name}.output.LayerNorm")
    dense("pooler.dense", wide, wide)
    weight("exit.weight", wide)
    return tensors


def write(folder: str, tensors: dict[str, np.ndarray], files: int = 2) -> str:
    """Writes the tensors into several files, and gives the path of their index."""
    os.makedirs(folder, exist_ok=True)
    places: dict[str, str] = {}
    names = list(tensors)
    for number in range(files):
        file = f"model-{number + 1:05}-of-{files:05}.safetensors"
        part = names[number * len(names) // files : (number + 1) * len(names) // files]
        header, end = {}, 0
        for name in part:
            tensor = tensors[name]
            begin, end = end, end + tensor.nbytes
            header[name] = {"dtype": _DTYPES[tensor.dtype.name], "shape": tensor.shape, "data_offsets": [begin, end]}
            places[name] = file
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(os.path.join(folder, file), "wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            out.writelines(np.ascontiguousarray(tensors[name]).tobytes() for name in part)
    index = os.path.join(folder, "model.safetensors.index.json")
    with open(index, "w") as out:
        json.dump({"metadata": {}, "weight_map": places}, out, indent=1)
    return index


def instances(count: int, config: dict[str, int] = CONFIG, seed: int = 2) -> list[dict[str, list[int]]]:
    """Texts of differing lengths, of two segments."""
    random = np.random.default_rng(seed)
    texts = []
    for _ in range(count):
        length = int(random.integers(1, config["max_position_embeddings"] + 1))
        first = int(random.integers(0, length + 1))
        ids = random.integers(0, config["vocab_size"], length).tolist()
        texts.append({"ids": ids, "segments": [0] * first + [1] * (length - first)})
    return texts


def reference(tensors: dict[str, np.ndarray], instance: dict[str, list[int]], leave: bool = False):
    """The last layer's rows, what is pooled, and the number of layers, of one text."""
    tensors = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    erf = np.vectorize(math.erf)

    def dense(name: str, x: np.ndarray) -> np.ndarray:
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    def attention(name: str, x: np.ndarray) -> np.ndarray:
        q, k, v = (np.split(dense(f"{name}.{part}", x), CONFIG["num_attention_heads"], -1) for part in ("query", "key", "value"))
        heads = []
        for query, key, value in zip(q, k, v):
            scores = query @ key.T / math.sqrt(query.shape[-1])
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(scores / scores.sum(-1, keepdims=True) @ value)
        return np.concatenate(heads, -1)

    ids, segments = instance["ids"], instance["segments"]
    x = tensors["embeddings.word_embeddings.weight"][ids]
    x = x + tensors["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm("embeddings.LayerNorm", x + tensors["embeddings.token_type_embeddings.weight"][segments])
    layers = 0
    while f"encoder.layer.{layers}.output.dense.weight" in tensors:
        name = f"encoder.layer.{layers}"
        y = dense(f"{name}.attention.output.dense", attention(f"{name}.attention.self", x))
        y = norm(f"{name}.attention.output.LayerNorm", x + y)
        x = dense(f"{name}.intermediate.dense", y)
        x = dense(f"{name}.output.dense", 0.5 * x * (1 + erf(x / math.sqrt(2))))
        x = norm(f"{name}.output.LayerNorm", x + y)
        layers += 1
        if leave and x[0] @ tensors["exit.weight"] >= 0:
            break
    return x, np.tanh(dense("pooler.dense", x[0])), layers


def transformers_model(tensors: dict[str, np.ndarray]):
    """HuggingFace's model with these tensors; each of its names must be there."""
    import torch
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(**CONFIG, hidden_act="gelu", attn_implementation="eager")).eval()
    state = {name: torch.from_numpy(t.astype(np.float32)) for name, t in tensors.items() if name != "exit.weight"}
    missing, unexpected = model.load_state_dict(state, strict=False)
    # Numbers of positions are a buffer, which newer versions do not save.
    missing = [name for name in missing if not name.endswith(("position_ids", "token_type_ids"))]
    assert not missing and not unexpected, (missing, unexpected)
    return model


def check() -> float:
    """The largest difference between `reference` and `transformers`."""
    import torch

    tensors = checkpoint()
    model = transformers_model(tensors)
    worst = 0.0
    for instance in instances(8):
        ids, segments = (torch.tensor([instance[name]]) for name in ("ids", "segments"))
        with torch.no_grad():
            found = model(input_ids=ids, token_type_ids=segments)
        rows, pooled, _ = reference(tensors, instance)
        worst = max(worst, np.abs(found.last_hidden_state[0].numpy() - rows).max())
        worst = max(worst, np.abs(found.pooler_output[0].numpy() - pooled).max())
    return float(worst)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", nargs="?", help="where to write the checkpoint and some texts")
    arguments.add_argument("--check", action="store_true", help="compare the reference with `transformers`")
    given = arguments.parse_args()
    if given.check:
        print(f"the reference differs from transformers by at most {check():.1e}")
    if given.folder:
        print(write(given.folder, checkpoint()))
        with open(os.path.join(given.folder, "input.jsonl"), "w") as out:
            out.writelines(json.dumps(text) + "\n" for text in instances(8))
