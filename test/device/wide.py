#!/usr/bin/env python3
"""Writes a program whose products have enough columns for some rows to suffice for the largest tiles, its weights and its inputs: in
bf16 one instance alone is multiplied by warps, all together are by warpgroups where a card has them. Of one product weights stay in
shared memory and rows come in more steps than there are buffers, of the other both sides come step by step.

    test/device/wide.py FOLDER
"""

import json
import random
import struct
import sys
from pathlib import Path

# Of rows, then terms and columns of both products, and results of a row; instances and rows of each.
INPUTS, TERMS, COLUMNS, RESULTS = 32, (320, 704), (2432, 3840), 8
INSTANCES, ROWS = 4, 390

PROGRAM = """\
// A row, wide and narrow again, twice: of many columns, so that few rows are many tiles.
dim B, D, E, F, G, C

param a: f32[B, D]   param u: f32[D, F]   param p: f32[F, C]
param b: f32[B, E]   param w: f32[E, G]   param q: f32[G, C]

fn main(x: f32[n, B]) -> f32[n, C] {
  tanh(tanh(x @ a) @ u) @ p + tanh(tanh(x @ b) @ w) @ q
}
"""


def write_weights(path, matrices):
    """As safetensors, in bf16: the length of a header in JSON, the header, the numbers."""
    header, content = {}, b""
    for name, (shape, numbers) in matrices.items():
        # The upper halves of numbers in f32.
        packed = b"".join(struct.pack("<f", number)[2:] for number in numbers)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(content), len(content) + len(packed)]}
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
    weights = {}
    for names, terms, columns in zip(("aup", "bwq"), TERMS, COLUMNS):
        sizes = [(INPUTS, terms, 0.3), (terms, columns, 0.1), (columns, RESULTS, 0.02)]
        weights |= {name: matrix(*size) for name, size in zip(names, sizes)}
    write_weights(folder / "weights.safetensors", weights)
    with (folder / "input.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(INSTANCES):
            rows = [[round(drawn.uniform(-1, 1), 4) for _ in range(INPUTS)] for _ in range(ROWS)]
            lines.write(json.dumps({"id": f"w{number}", "x": rows}) + "\n")


if __name__ == "__main__":
    main()
