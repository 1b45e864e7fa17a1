#!/usr/bin/env python3
"""Draws how many symbols the ponder program reads against how many bits count.

    python3 examples/ponder/plot.py --input test.jsonl --results results.jsonl --output steps.svg

--results is what `batch-run` gives for --input. Prints the means too, and how often the parity is right.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

MARK = 2


def read(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()

    steps, right = defaultdict(list), []
    for instance, result in zip(read(options.input), read(options.results), strict=True):
        bits = instance["tape"].index(MARK)
        parity, count = result["output"]
        steps[bits].append(count)
        right.append(parity == sum(instance["tape"][:bits]) % 2)
    counts = sorted(steps)
    means = [sum(steps[count]) / len(steps[count]) for count in counts]
    for count, mean in zip(counts, means):
        print(f"{count} bits: {mean:.2f} symbols read, {len(steps[count])} tapes")
    print(f"right: {sum(right) / len(right):.4f} of {len(right)}")

    matplotlib.rcParams.update({"svg.hashsalt": "ponder", "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(6, 4))
    for count in counts:
        found = sorted(set(steps[count]))
        axes.scatter([count] * len(found), found, s=40, color="#9bb7d4")
    axes.plot(counts, means, marker="o", color="#1f5a96", label="mean")
    axes.set_xlabel("bits that count")
    axes.set_ylabel("symbols read")
    axes.legend()
    figure.tight_layout()
    figure.savefig(options.output, metadata={"Date": None})


if __name__ == "__main__":
    main()
