#!/usr/bin/env python3
"""Makes tapes whose parity is asked for, as input for the ponder program.

    python3 examples/ponder/make_data.py --output FOLDER [--train 3000] [--dev 500] [--test 500]
                                         [--most 8] [--length 10] [--seed 1]

Writes `train.jsonl`, `dev.jsonl` and `test.jsonl`. A tape has one to --most bits, a mark (2), and bits that
mean nothing up to --length symbols; each number of bits is as likely as the others.
"""

import argparse
import json
import random
from pathlib import Path

MARK = 2


def make_tape(rng, most, length):
    bits = [rng.randrange(2) for _ in range(rng.randint(1, most))]
    rest = [rng.randrange(2) for _ in range(length - len(bits) - 1)]
    return {"tape": [*bits, MARK, *rest], "parity": sum(bits) % 2}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder for the files")
    parser.add_argument("--train", type=int, default=3000)
    parser.add_argument("--dev", type=int, default=500)
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--most", type=int, default=8, help="bits that count")
    parser.add_argument("--length", type=int, default=10, help="symbols of a tape")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    options = parse_options()
    rng = random.Random(options.seed)
    options.output.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        with open(options.output / f"{part}.jsonl", "w", encoding="utf-8") as lines:
            for number in range(1, getattr(options, part) + 1):
                instance = make_tape(rng, options.most, options.length)
                lines.write(json.dumps({"id": f"{part}{number}", **instance}) + "\n")


if __name__ == "__main__":
    main()
