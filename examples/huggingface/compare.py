"""Saves a `BertModel` of `transformers` with random weights, in several files, runs that checkpoint by Cohort, and
compares: all layers, and leaving early. Ends with 1 where they differ by 1e-4 or more.

compare.sh installs what it needs and runs it.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from make_checkpoint import CONFIG, instances

import cohort

HERE = pathlib.Path(__file__).resolve().parent
MOST = 1e-4


def checkpoint(folder: str) -> tuple[transformers.BertModel, torch.Tensor]:
    """A model whose rows differ, saved as `transformers` does, and the vote of those that leave early beside it."""
    torch.manual_seed(4)
    config = transformers.BertConfig(**CONFIG, hidden_act="gelu", attn_implementation="eager")
    model = transformers.BertModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter + torch.randn_like(parameter) / max(parameter.shape[-1], 16) ** 0.5)
    model.save_pretrained(folder, max_shard_size="40KB")
    return model, torch.randn(CONFIG["hidden_size"])


@torch.no_grad()
def expected(model, vote: torch.Tensor | None, text: dict) -> tuple[np.ndarray, np.ndarray, int]:
    """The rows of the last layer, or of that at which a text leaves, what is pooled, and the number of layers."""
    ids, segments = (torch.tensor([text[name]]) for name in ("ids", "segments"))
    found = model(input_ids=ids, token_type_ids=segments, output_hidden_states=True)
    layers = len(found.hidden_states) - 1
    if vote is not None:
        left = (at for at in range(1, layers) if found.hidden_states[at][0, 0] @ vote >= 0)
        layers = next(left, layers)
    rows = found.hidden_states[layers]
    return rows[0].numpy(), model.pooler(rows)[0].numpy(), layers


def main() -> int:
    texts = instances(64)
    with tempfile.TemporaryDirectory() as folder:
        model, vote = checkpoint(folder)
        files = len(list(pathlib.Path(folder).glob("*.safetensors")))
        whole = cohort.compile(HERE / "bert.coh", folder)
        weights = {name: tensor.detach() for name, tensor in model.state_dict().items()} | {"exit.weight": vote}
        early = cohort.compile(HERE / "early_exit.coh", weights)
        worst, left = [0.0, 0.0], {}
        for text, (rows, pooled), (early_rows, early_pooled, count) in zip(
            texts, whole(texts, batch=16), early(texts, batch=16), strict=True
        ):
            for at, (found, of) in enumerate((((rows, pooled), None), ((early_rows, early_pooled), vote))):
                *right, layers = expected(model, of, text)
                differences = [np.abs(one - other).max() for one, other in zip(found, right, strict=True)]
                worst[at] = max(worst[at], *map(float, differences))
            if count != layers:
                print(f"a text leaves after {count} layers, and by transformers after {layers}")
                return 1
            left[count] = left.get(count, 0) + 1
    print(f"transformers {transformers.__version__}, torch {torch.__version__}: {len(texts)} texts, {files} files")
    print(f"all layers: differs by at most {worst[0]:.1e}")
    print(f"early exit: differs by at most {worst[1]:.1e}; texts by layers {dict(sorted(left.items()))}")
    return int(max(worst) >= MOST)


if __name__ == "__main__":
    sys.exit(main())
