#!/usr/bin/env python3
"""Writes a program whose products have enough columns for a few hundred rows to suffice for the largest tiles, its weights and its
inputs: in bf16 one instance alone is multiplied by warps, three together are by warpgroups where a card has them.

    test/device/wide.py FOLDER
"""

import json
import random
import struct
import sys
from pathlib import Path

# Terms, columns, results of a row; instances and rows of each.
TERMS, COLUMNS, RESULTS = 64, 16384, 8
INSTANCES, ROWS = 3, 130

PROGRAM = """\
// A row, wide and narrow again: of many columns, so that few rows are many tiles.
dim D, F, C

param u: f32[D, F]
param v: f32[F, C]

fn main(x: f32[n, D]) -> f32[n, C] {
  tanh(x @ u) @ v
}
"""


def write_weights(path, matrices):
    """As safetensors: the length of a header in JSON, the header, the numbers."""
    header, content = {}, b""
    for name, (shape, numbers) in matrices.items():
        packed = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(content), len(content) + len(packed)]}
        content += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


def main():
    """Writes the three files."""
    folder = Path(sys.argv[1])
    drawn = random.Random(29)

    def matrix(rows, columns, scale):
        return [rows, columns], [scale * drawn.uniform(-1, 1) for _ in range(rows * columns)]

    (folder / "wide.coh").write_text(PROGRAM, encoding="utf-8")
    weights = {"u": matrix(TERMS, COLUMNS, 0.2), "v": matrix(COLUMNS, RESULTS, 0.02)}
    write_weights(folder / "weights.safetensors", weights)
    with (folder / "input.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(INSTANCES):
            rows = [[round(drawn.uniform(-1, 1), 4) for _ in range(TERMS)] for _ in range(ROWS)]
            lines.write(json.dumps({"id": f"w{number}", "x": rows}) + "\n")


if __name__ == "__main__":
    main()
