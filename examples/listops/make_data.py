#!/usr/bin/env python3
"""Makes nested list operations with their values, as input for the listops program.

    python3 examples/listops/make_data.py --output FOLDER [--train 2000] [--dev 500] [--test 500]
                                          [--depth 4] [--seed 1]

Writes `train.jsonl`, `dev.jsonl` and `test.jsonl`, one expression a line, none of them twice. An operator
(MAX, MIN, MED, the median rounded down, and SUM_MOD, the last digit of the sum) has two to five arguments;
each is a digit or, above the depth, with one in three a list again.
"""

import argparse
import json
import random
import statistics
from pathlib import Path

OPERATORS = [
    ("MAX", max),
    ("MIN", min),
    ("MED", lambda values: int(statistics.median(values))),
    ("SUM_MOD", lambda values: sum(values) % 10),
]


def make_list(rng, depth):
    """A list as the program's input, its text, and its value."""
    op = rng.randrange(len(OPERATORS))
    name, compute = OPERATORS[op]
    args = [make_argument(rng, depth - 1) for _ in range(rng.randint(2, 5))]
    value = compute([value for _, _, value in args])
    text = f"[{name} {' '.join(text for _, text, _ in args)}]"
    return {"List": {"op": op, "args": [arg for arg, _, _ in args], "value": value}}, text, value


def make_argument(rng, depth):
    if depth > 0 and rng.random() < 1 / 3:
        return make_list(rng, depth)
    digit = rng.randrange(10)
    return {"Digit": [digit]}, str(digit), digit


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder for the files")
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--dev", type=int, default=500)
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--depth", type=int, default=4, help="of lists in lists")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    options = parse_options()
    rng = random.Random(options.seed)
    seen = set()
    options.output.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        with open(options.output / f"{part}.jsonl", "w", encoding="utf-8") as lines:
            number = 0
            while number < getattr(options, part):
                expression, text, _ = make_list(rng, options.depth)
                if text in seen:
                    continue
                seen.add(text)
                number += 1
                lines.write(json.dumps({"id": f"{part}{number}", "e": expression}) + "\n")


if __name__ == "__main__":
    main()
