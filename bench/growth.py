"""How cost grows: with the size of a tree, the number of instances, the depth of a chain, and a program's lines.

Each quantity grows while the rest stays, and what is measured is the cost of one unit of it: a curve that
is flat says that twice as much takes twice as long. Equal calls are not shared (`--no-sharing`), since
there are fewer different words the more there are.
"""

import json
import random
import statistics
import tempfile
import time
from pathlib import Path

from common import (
    RESULTS,
    ROOT,
    Refused,
    make_data,
    markdown,
    number,
    plotter,
    run,
    run_program,
    seconds_of,
)
from corpora import repeated

FIGURE = ROOT / "docs" / "figures" / "growth.svg"
SIZE = 64
MODEL = "treelstm"
# Of an SST sentence, in the middle.
LEAVES = 19
# The number of nodes that small trees and short chains have together when they are measured.
NODES = 20_000
WORDS = 6000
HEADS = ("ns a node", "recording", "kernels", "rows a launch")
# A block of a generated program.
BLOCK = """param w{k}: f32[H, H]
param v{k}: f32[H, H]
param b{k}: f32[H]
fn step{k}(t: Tree, x: f32[H]) -> f32[H] {{
  match t {{
    Leaf(w) => tanh(x @ w{k} + b{k}),
    Node(l, r) => {{
      let a = step{k}(l, x);
      let c = step{k}(r, a);
      let g = sigmoid(a @ w{k} + c @ v{k} + b{k});
      g * tanh(a) + (1 - g) * c
    }}
  }}
}}
"""


def random_tree(draw, leaves):
    """A tree whose nodes split their leaves anywhere; as JSON text, since it may be deep."""
    return write_tree(leaves, lambda n: draw.randint(1, n - 1), draw)


def chain(draw, leaves):
    """A tree in which each node has one leaf to its right."""
    return write_tree(leaves, lambda n: n - 1, draw)


def write_tree(leaves, split, draw):
    """The text of a tree, without recursion."""
    parts, todo = [], [leaves]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            parts.append(item)
        elif item == 1:
            parts.append(f'{{"Leaf":[{draw.randrange(WORDS)}]}}')
        else:
            left = split(item)
            parts.append('{"Node":[')
            todo += ["]}", item - left, ",", left]
    return "".join(parts)


def measure_trees(options, data, trees, batch):
    """The figures of a list of trees, given as texts, in batches of `batch`; a node is a leaf or an inner node."""
    nodes = sum(2 * tree.count("Leaf") - 1 for tree in trees)
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        folder = Path(folder)
        (folder / f"{MODEL}.safetensors").symlink_to(data / f"{MODEL}.safetensors")
        lines = "".join(f'{{"t":{tree}}}\n' for tree in trees)
        (folder / f"{MODEL}.jsonl").write_text(lines, encoding="utf-8")
        given = ("--batch", batch, "--no-sharing", "--max-memory", 1 << 36)
        turns = [run_program(options, folder, MODEL, options.repetitions, *given) for _ in range(options.few_turns)]
    each = 1e9 / nodes
    recorded = [r["record_seconds"] for turn in turns for r in turn["repetitions"]]
    return {
        "nodes": nodes,
        "instances": len(trees),
        "ns": seconds_of(turns) * each,
        "record": statistics.median(recorded) * each,
        "kernels": statistics.median(sum(kernel["seconds"] for kernel in turn["kernels"]) for turn in turns) * each,
        "rows": turns[-1]["mean_rows_per_launch"],
    }


def write_program(lines):
    """A program of about `lines` lines: blocks of a recursive function with weights of its own, one after another."""
    each = BLOCK.count("\n") + 1  # And its call.
    blocks = max(1, round((lines - 5) / each))
    calls = "".join(f"  let x = step{k}(t, x);\n" for k in range(blocks))
    return (
        "dim H\ntype Tree = Leaf(i32) | Node(Tree, Tree)\n"
        + "".join(BLOCK.format(k=k) for k in range(blocks))
        + f"fn main(t: Tree, x: f32[H]) -> f32[H] {{\n{calls}  x\n}}\n"
    )


def compile_program(options, lines):
    """The seconds that batch-opt takes to make an artifact of a program of about `lines` lines."""
    text = write_program(lines)
    figures = {"lines": text.count("\n")}
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        program = Path(folder) / "grown.coh"
        program.write_text(text, encoding="utf-8")
        command = [options.batch_opt, program, "--dim", f"H={SIZE}", "--emit=artifact"]
        command += ["-o", Path(folder) / "grown.cohort"]
        seconds = []
        try:
            for _ in range(options.few_turns):
                began = time.perf_counter()
                run(command)
                seconds.append(time.perf_counter() - began)
        except Refused as error:
            return figures | {"refused": str(error)}
    return figures | {"seconds": statistics.median(seconds)}


def measure(options):
    """The figures of all four; with --resume, what is there is not measured again."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = RESULTS / "growth.json"
    figures = json.loads(kept.read_text()) if options.resume and kept.exists() else {}
    data, draw = make_data(options, [MODEL], SIZE, 16), random.Random(1)
    most = 1_000 if options.quick else 100_000

    def points(name, values, one):
        """Measures one point after another, and keeps each as it is measured."""
        found = figures.setdefault(name, {})
        for value in values:
            if str(value) in found:
                continue
            try:
                found[str(value)] = one(value)
            except Refused as error:
                found[str(value)] = {"refused": str(error)}
            print(f"{name} {value}: {found[str(value)]}", flush=True)
            kept.write_text(json.dumps(figures, indent=1) + "\n")

    def trees(shape, nodes, batch):
        leaves = (nodes + 1) // 2
        count = max(1, NODES // nodes)
        return measure_trees(options, data, [shape(draw, leaves) for _ in range(count)], batch)

    def instances(count):
        # The same trees again and again: what grows is their number.
        some = [random_tree(draw, LEAVES) for _ in range(min(count, 1000))]
        return measure_trees(options, data, repeated(some, count), "all")

    grown = [n for n in (10, 100, 1_000, 10_000, 100_000) if n <= most]
    points("trees", grown, lambda n: trees(random_tree, n, 1))
    points("trees, batches of 64", grown, lambda n: trees(random_tree, n, 64))
    points("instances", [1, *grown], instances)
    depths = [n for n in grown if n <= 10_000]
    points("chains", depths, lambda n: trees(chain, 2 * n + 1, 1))
    points("chains, batches of 64", depths, lambda n: trees(chain, 2 * n + 1, 64))
    points(
        "lines",
        [20, 50, 100, 200, 500, 1_000, 2_000][: 3 if options.quick else None],
        lambda n: compile_program(options, n),
    )
    return figures


def nanoseconds(points, value):
    return number(points[value].get("ns")) if value in points else "-"


def report(figures):
    """The tables in Markdown, and the plot."""
    text = (
        f"The TreeLSTM at H = {SIZE}, one thread, nothing shared between equal calls: nanoseconds a node, of which as many\n"
        "are leaves as inner nodes. A *tree* splits its leaves anywhere, a *chain* has one leaf beside each inner node.\n"
        "Up to 20,000 nodes are measured together, so many trees as that makes. *Instances* have "
        f"{LEAVES} leaves and are one batch.\n\n"
        f"![Nanoseconds a node and milliseconds a line](figures/{FIGURE.name})\n\n"
    )
    for title, names, what in (
        ("tree", ("trees", "trees, batches of 64"), "nodes of a tree"),
        ("instances", ("instances",), "instances"),
        ("chain", ("chains", "chains, batches of 64"), "depth of a chain"),
    ):
        rows = []
        for value in figures[names[0]]:
            cells = [f"{int(value):,}"]
            for name in names:
                point = figures[name].get(value, {})
                cells += [number(point.get(key)) for key in ("ns", "record", "kernels", "rows")]
            rows.append(cells)
        heads = [what]
        for name in names:
            suffix = name.partition(", ")[2]
            heads += [f"{head}{', ' * bool(suffix)}{suffix}" for head in HEADS]
        text += markdown(heads, rows) + "\n"
    rows = [
        (
            point["lines"],
            number(point.get("seconds")),
            number(point.get("seconds") and point["seconds"] / point["lines"] * 1e3),
        )
        for point in figures["lines"].values()
    ]
    text += markdown(("lines of a program", "compile s", "ms a line"), rows)
    for name, points in figures.items():
        for value, point in points.items():
            if "refused" in point:
                text += f"\n{name} {value} is refused: {point['refused']}\n"
    return text


def plot(figures, path):
    """Draws the cost of a unit against how many there are."""
    pyplot = plotter("growth")
    figure, axes = pyplot.subplots(1, 4, figsize=(16, 4), layout="constrained")
    panels = (("trees", "nodes of a tree"), ("instances", "instances"), ("chains", "depth of a chain"))
    for axis, (name, what) in zip(axes, panels):
        for other, points in figures.items():
            known = {int(value): point["ns"] for value, point in points.items() if "ns" in point}
            if other.partition(",")[0] == name:
                label = other.partition(", ")[2] or ("one batch" if name == "instances" else "one at a time")
                axis.plot(known.keys(), known.values(), "o-", label=label)
        axis.set(xscale="log", yscale="log", xlabel=what, ylabel="ns a node", ylim=(50, 20_000))
        axis.legend(fontsize="small")
    lines = [point for point in figures["lines"].values() if "seconds" in point]
    counts = [point["lines"] for point in lines]
    axes[3].plot(counts, [1e3 * point["seconds"] / point["lines"] for point in lines], "o-")
    axes[3].set(xscale="log", yscale="log", xlabel="lines of a program", ylabel="ms to compile a line")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
