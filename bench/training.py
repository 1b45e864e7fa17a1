"""Training, against PyTorch with autograd on one thread.

An epoch of the sentiment TreeLSTM of examples/sst, against the same batched by level by hand and one tree
after another, with the same optimiser; and a step's gradients of models with decisions, sequences and
lengths against what one writes in PyTorch. Sides take turns; figures are medians over the turns. The
gradients are compared first.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from common import (
    ONE_THREAD,
    ROOT,
    Refused,
    make_data,
    markdown,
    measure_peak,
    number,
    ratio,
    read_lines,
    run,
)
from ragged import SIZE as D
from ragged import Pool, lengths_of, make_weights, program_of, write_instances
from training_torch import PEERS

sys.path.insert(0, str(ROOT / "examples" / "treelstm"))
from ptb import read_trees  # noqa: E402

SST = ROOT.parent / "shared" / "data" / "sst"
SST_PROGRAM = ROOT / "examples" / "sst" / "sst.coh"
SST_BATCH = 25
# One by one a pass over all trees takes minutes.
SINGLE_TREES = 500
TARGETS = {"level": 3.0, "single": 12.0}
STEP_TARGETS = {"encoder": 1.0, "birnn": 2.0, "act": 3.0}
MOST_BACKWARD = 2.3
BATCH, SIZE = 64, 256
SEQUENCES = 32
TOLERANCE = 1e-3


def run_measured(command):
    """What a command prints, and the most memory that it had, in bytes."""
    command = [str(part) for part in command]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=ONE_THREAD, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise Refused((errors.read().strip() or command[0]).splitlines()[-1])
        return output.read(), usage.ru_maxrss * 1024


# --- An epoch of the TreeLSTM -------------------------------------------------------------------


def make_treebank(options, folder):
    """The treebank, or the example's own trees with labels that mean nothing; gives how many trees train."""
    if SST.exists():
        for part in ("train", "dev", "test"):
            shutil.copy(SST / f"{part}.txt", folder)
    else:
        rng = random.Random(1)

        def labelled(tree):
            parts = [part if isinstance(part, str) else labelled(part) for part in tree[1:]]
            return f"({rng.randrange(5)} {' '.join(parts)})"

        trees = read_trees(ROOT / "examples" / "treelstm" / "trees.txt")
        lines = [labelled(tree) for tree in trees * (2000 // len(trees))]
        for part in ("train", "dev", "test"):
            (folder / f"{part}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    count = len((folder / "train.txt").read_text(encoding="utf-8").splitlines())
    return min(count, 10 * SST_BATCH) if options.quick else count


def sst_dims(words):
    return [f"--dim={dim}" for dim in (f"V={words}", "D=300", "H=150", "C=5")]


def sst_backward(options, folder, words, count):
    """Backward's time to forward's over an epoch's gradients, with the weights that it trained."""
    given = (SST_PROGRAM, folder / "trained.safetensors", folder / f"first{count}.jsonl", SST_BATCH)
    wanted = ("--draw", 1, "--gradients", folder / "gradients.safetensors")
    stats = gradients_ours(options, *given, options.few_turns, *sst_dims(words), *wanted)
    return statistics.median(backward_to_forward(stats))


def train_ours(options, folder, words, count):
    """The seconds of an epoch over the first trees, the second one, and the most memory."""
    data = folder / f"first{count}.jsonl"
    lines = (folder / "train.jsonl").read_text(encoding="utf-8").splitlines()[:count]
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [options.batch_run.with_name("batch-train"), SST_PROGRAM, *sst_dims(words)]
    command += ["--input", data, "--metrics", "accuracy", "--epochs", 2, "--batch", SST_BATCH]
    command += ["--optimiser", "adagrad", "--rate", 0.05, "--decay", 1e-4, "--threads", 1]
    command += ["--group", "emb:rate=0.1,decay=0", "--init", "emb=uniform(0.05)"]
    command += ["--init", "wx=uniform(0.06)", "--init", "u?=uniform(0.08)"]
    command += ["--init", "wo=uniform(0.08)", "--output", folder / "trained.safetensors"]
    log = folder / "log.jsonl"
    _, memory = run_measured([*command, "--log", log])
    first, second = (line["seconds"] for line in read_lines(log))
    return second - first, memory


def train_torch(folder, mode, count):
    """The same in PyTorch."""
    command = [sys.executable, ROOT / "bench" / "training_torch.py", folder, "--mode", mode]
    printed, memory = run_measured([*command, "--trees", count, "--batch", SST_BATCH])
    return json.loads(printed), memory


def measure_epochs(options):
    """An epoch of each side."""
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        folder = Path(folder)
        count = make_treebank(options, folder)
        prepare = ROOT / "examples" / "sst" / "prepare.py"
        said = run([sys.executable, prepare, "--data", folder, "--output", folder])
        words = int(said.split()[0])
        ours, level, single = [], [], []
        for _ in range(options.few_turns):
            ours.append(train_ours(options, folder, words, count))
            level.append(train_torch(folder, "level", count))
        single.append(train_torch(folder, "single", min(count, SINGLE_TREES)))
        backward = sst_backward(options, folder, words, count)

    def median(turns):
        return statistics.median(seconds for seconds, _ in turns)

    return {
        "trees": count,
        "cohort": count / median(ours),
        "level": count / median(level),
        "single": min(count, SINGLE_TREES) / median(single),
        "epoch": median(ours),
        "backward": backward,
        "memory": {
            name: max(memory for _, memory in turns)
            for name, turns in (("cohort", ours), ("level", level))
        },
    }


# --- A step's gradients -------------------------------------------------------------------------

LOSSES = {
    "act": "fn loss(x: f32[D]) -> f32 { let (y, _) = main(x); sum(y * y) }",
    "birnn": "fn loss(words: [i32]) -> f32 { let y = main(words); sum(y * y) }",
    "encoder": "fn loss(x: f32[n, D]) -> f32 { let y = main(x); sum(y * y) }",
}


def prepare_model(options, name, folder):
    """The program with a loss, its inputs as the peers take them, and how many are a batch."""
    if name == "encoder":
        make_weights(name, folder, np.random.default_rng(7))
        program, pool = program_of(name, folder), Pool(D, np.random.default_rng(7))
        lengths = lengths_of("mnli", SEQUENCES)
        inputs = folder / "encoder.jsonl"
        tensors = [x for (x,) in write_instances(inputs, pool, [{"x": (n, D)} for n in lengths])]
        return program, folder / "encoder.safetensors", inputs, tensors, SEQUENCES
    data = make_data(options, [name], SIZE, options.instances)
    example = (ROOT / "examples" / name / f"{name}.coh").read_text(encoding="utf-8")
    program = folder / f"{name}.coh"
    program.write_text(example, encoding="utf-8")
    member = {"act": "x", "birnn": "words"}[name]
    tensors = [torch.tensor(line[member]) for line in read_lines(data / f"{name}.jsonl")]
    return program, data / f"{name}.safetensors", data / f"{name}.jsonl", tensors, BATCH


def gradients_ours(options, program, weights, inputs, batch, repetitions, *arguments):
    """One turn: the statistics, and the gradients where a file is given."""
    with tempfile.NamedTemporaryFile(suffix=".json") as stats:
        command = [options.batch_run, program, "--entry", "loss", "--weights", weights]
        command += ["--input", inputs, "--output", os.devnull, "--quiet", "--threads", 1]
        command += ["--batch", batch, "--max-memory", 1 << 36, "--stats", stats.name]
        command += ["--benchmark-repetitions", repetitions, *arguments]
        run(command)
        return json.loads(Path(stats.name).read_text(encoding="utf-8"))


def seconds_of_passes(stats):
    return [r["record_seconds"] + r["execute_seconds"] for r in stats["repetitions"]]


def rates_of_backward(stats):
    """GFLOP/s of the sums that are gradients of parameters, and of backward's kernels that have products."""
    sums = stats["gradients"]["sum_flops"] / stats["gradients"]["sum_seconds"]
    kernels = [k for k in stats["kernels"] if "$gradient$" in k["name"] and k["flops"]]
    flops, seconds = (sum(k[of] for k in kernels) for of in ("flops", "seconds"))
    return sums / 1e9, flops / seconds / 1e9


def backward_to_forward(stats):
    """Of each pass with gradients, backward's time to that of its forward."""
    passes = zip(stats["repetitions"], seconds_of_passes(stats), strict=True)
    return [r["backward_seconds"] / (whole - r["backward_seconds"]) for r, whole in passes]


def pass_of(peer, tensors, batch):
    """The seconds of a pass of a peer over all batches."""
    peer.clear()
    began = time.perf_counter()
    for start in range(0, len(tensors), batch):
        peer.step(tensors[start : start + batch])
    return time.perf_counter() - began


def check_gradients(name, column, peer, ours):
    """Stops unless a peer's gradients of all instances are the program's."""
    for parameter, theirs in peer.gradients().items():
        own = ours[parameter]
        theirs = torch.zeros_like(own) if theirs is None else theirs
        apart = (own - theirs).abs().max().item()
        if not apart <= TOLERANCE * max(theirs.abs().max().item(), 1e-6):
            raise SystemExit(f"{name}: the gradient of {parameter} differs by {apart} from {column}")


def measure_steps(options, name):
    """The gradients of a model, batch by batch."""
    with tempfile.TemporaryDirectory(dir=options.data) as folder:
        folder = Path(folder)
        program, weights, inputs, tensors, batch = prepare_model(options, name, folder)
        text = program.read_text(encoding="utf-8")
        program.write_text(f"{text}\n{LOSSES[name]}\n", encoding="utf-8")
        given = (program, weights, inputs, batch)
        found = folder / "gradients.safetensors"
        wanted = ("--gradients", found)
        gradients_ours(options, *given, 1, *wanted)
        expected = load_file(found)
        peers = {column: kind(load_file(weights)) for column, kind in PEERS[name].items()}
        for column, peer in peers.items():
            pass_of(peer, tensors, batch)
            check_gradients(name, column, peer, expected)
        ours, backward, forward, seconds = [], [], [], {column: [] for column in peers}
        for _ in range(options.turns):
            stats = gradients_ours(options, *given, options.repetitions, *wanted)
            ours += seconds_of_passes(stats)
            backward += backward_to_forward(stats)
            plain = gradients_ours(options, *given, options.repetitions, "--no-sharing")
            forward += seconds_of_passes(plain)
            for column, peer in peers.items():
                seconds[column] += [
                    pass_of(peer, tensors, batch) for _ in range(options.repetitions)
                ]
    own = statistics.median(ours)
    sums, kernels = rates_of_backward(stats)
    return {
        "model": name,
        "instances": len(tensors),
        "batch": batch,
        "seconds": own,
        "backward": statistics.median(backward),
        "forward": statistics.median(forward),
        "sums": sums,
        "kernels": kernels,
        "peers": {column: statistics.median(times) / own for column, times in seconds.items()},
    }


def measure(options):
    """All figures."""
    models = [name for name in PEERS if not options.models or name in options.models]
    return {
        "epoch": measure_epochs(options),
        "steps": [measure_steps(options, name) for name in models],
        "peak": measure_peak(),
    }


# --- The report ---------------------------------------------------------------------------------


def verdict(value, target):
    return f"{target:g}x {'met' if value >= target else 'missed'}"


def report(figures):
    """The part of the page."""
    epoch = figures["epoch"]
    text = (
        f"An epoch of the sentiment TreeLSTM (D = 300, H = 150, batches of {SST_BATCH}, AdaGrad) over "
        f"{epoch['trees']:,} trees: forward, backward and update, {epoch['epoch']:.1f} s; backward takes {epoch['backward']:.2f} times as "
        f"long as forward ({MOST_BACKWARD} wanted at most). *level* is PyTorch "
        "batched by level by hand, *single* one tree and one node after another, with autograd and the same "
        "optimiser. Memory is the most that a process had.\n\n"
    )
    rows = [["Cohort", number(epoch["cohort"]), "-", "-", number(epoch["memory"]["cohort"] / 1e6)]]
    for mode in ("level", "single"):
        gain = epoch["cohort"] / epoch[mode]
        memory = epoch["memory"].get(mode)
        rows.append(
            [mode, number(epoch[mode]), ratio(gain), verdict(gain, TARGETS[mode])]
            + [number(memory and memory / 1e6)]
        )
    text += markdown(["", "trees a second", "Cohort is", "target", "memory, MB"], rows)
    text += (
        "\nA step's gradients, of the sum of the squares of a batch's outputs, against PyTorch with "
        "autograd, as one writes it by hand. *Backward* is its time to that of the step's own forward, which "
        f"keeps what backward takes; wanted is at most {MOST_BACKWARD}. *Step* is the time of both to that of "
        "forward alone, which keeps nothing. *Sums* are the gradients of parameters (dW) with gathering their "
        "rows, *kernels* those of backward that have products (dX), with whatever else they compute; the peak is "
        f"that of a product in PyTorch, {number(figures['peak'])} GFLOP/s.\n\n"
    )
    rows = []
    for row in figures["steps"]:
        target = STEP_TARGETS[row["model"]]
        missed = [column for column, value in row["peers"].items() if value < target]
        reached = f"{target:g}x missed against {', '.join(missed)}" if missed else f"{target:g}x met"
        peers = ", ".join(f"{column} {ratio(value)}" for column, value in row["peers"].items())
        rows.append(
            [row["model"], row["batch"], number(row["instances"] / row["seconds"])]
            + [f"{row['backward']:.2f}", f"{row['seconds'] / row['forward']:.2f}"]
            + [f"{100 * row[part] / figures['peak']:.0f} %" for part in ("sums", "kernels")]
            + [peers, reached]
        )
    heads = ["model", "batch", "instances a second", "backward / forward", "step / forward"]
    heads += ["sums, of the peak", "kernels, of the peak", "against", "target"]
    return text + markdown(heads, rows)
