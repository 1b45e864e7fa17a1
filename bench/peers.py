"""Every model of examples/ against what one writes for it by hand in PyTorch or JAX, on one thread.

For each model, size and batch the program and its peers take turns over the same instances. A peer's outputs are
compared with the program's before it is timed; one that fails says so in the table and is not timed.
Each model and size is a file of its own, bench/results/peers/<model>-<size>.json, so that a table can be put
together from several runs (`--models`, `--sizes`, `--resume`).

    .venv/bin/python bench/peers.py MODEL SIZE BATCH PEER FOLDER

runs one peer once, for its memory, and prints the peak in bytes, without and with the run.
"""

import json
import math
import re
import statistics
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from safetensors.torch import load_file

import control_torch
import ragged_torch
import steps_torch
import trees_torch
from common import ROOT, Refused, make_data, ratio, read_lines, run
from common import run_program, seconds_of
from control import difference
from corpora import source_of
from ragged import program_of
from readme import FOLDER, best_of, peers_page
from tables import describe_processor

BATCHES = (1, 8, 64)
SIZES = (256, 512)
# Trees and graphs also at a size where what is not products counts. mvrnn's is a quarter of a size.
SMALL = ("treelstm", "treegru", "treefc", "childsum", "dagrnn")
MODELS = (*SMALL, "mvrnn", "birnn", "act", "nestedrnn", "drnn", "stackrnn", "ponder", "listops")
MODELS += ("encoder", "masked_mha", "berxit", "exprtree")
# Where tensors decide, instances run in flight.
IN_FLIGHT = ("act", "nestedrnn", "drnn", "stackrnn", "ponder", "berxit")
LAYERS = ("encoder", "masked_mha", "berxit")
# Numbers agree within this part of the largest, or of one if that is smaller. A float32 sum in another order can
# fall on the other side of a threshold: up to this part of the instances may decide otherwise.
TOLERANCE, MOST_OTHERWISE = 2e-3, 0.01
# The most instances of a pass: with peers that take one at a time, a pass over more would take seconds.
MOST_INSTANCES = 256
# A turn repeats passes until it takes this many seconds, since a turn of a few milliseconds measures what else the
# machine does; but it makes no more passes than this.
TURN_SECONDS, MOST_PASSES = 0.5, 50
# How the name of a peer ends that torch.compile compiles.
COMPILED = ", compiled"


def jax_peers():
    """JAX's peers by model; none where it is not installed."""
    try:
        import steps_jax
    except ImportError:
        return {}
    return steps_jax.BATCHED


def compiled(kind):
    """A peer whose `HOT` methods are compiled by PyTorch for shapes of any size."""

    def make(weights):
        peer = kind(weights)
        for name in kind.HOT:
            setattr(peer, name, torch.compile(getattr(peer, name), dynamic=True))
        return peer

    return make


def peers_of(name):
    """The peers that take batches and those that take one instance at a time, by their names in the tables."""
    batched, single = {}, dict(control_torch.SINGLE.get(name, {}))
    for family in (control_torch, steps_torch, trees_torch):
        batched |= family.BATCHED.get(name, {})
    single |= trees_torch.SINGLE.get(name, {}) | ragged_torch.SINGLE.get(name, {})
    batched |= ragged_torch.BATCHED.get(name, {}) | jax_peers().get(name, {})
    hot = {column: kind for column, kind in batched.items() if hasattr(kind, "HOT")}
    batched |= {f"{column}{COMPILED}": compiled(kind) for column, kind in hot.items()}
    return batched, single


def weights_of(data, name):
    path = data / f"{name}.safetensors"
    weights = load_file(path) if path.exists() else {}
    return ragged_torch.linear_weights(weights) if name in LAYERS else weights


def prepare(name, kind, instances):
    """The instances as a peer takes them: what reading makes of them, and no more."""
    if name in LAYERS:
        return [torch.tensor(instance["x"]) for instance in instances]
    own = getattr(kind, "prepare", None)
    return own(instances) if own else instances


def run_peer(peer, instances, batch):
    """The outputs and the seconds of one pass over all instances in batches."""
    outputs = []
    with torch.inference_mode():
        began = time.perf_counter()
        for start in range(0, len(instances), batch):
            outputs += peer.run(instances[start : start + batch])
        return outputs, time.perf_counter() - began


def check(outputs, expected):
    """What is wrong with a peer's outputs, None if they are the program's; and how many decide otherwise."""
    otherwise = 0
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs of {len(expected)}", 0
    for instance, (ours, theirs) in enumerate(zip(expected, outputs), start=1):
        if hasattr(theirs, "tolist"):
            # Of a padded sequence, its own rows.
            theirs = theirs[: len(ours)].tolist()
        apart = difference(ours, theirs)
        if apart is None:
            otherwise += 1
        elif not apart <= TOLERANCE * max(1.0, largest(ours)):
            return f"its output {instance} differs by {apart:.2g}", otherwise
    if otherwise > MOST_OTHERWISE * len(outputs):
        return f"{otherwise} of {len(outputs)} of its outputs differ", otherwise
    return None, otherwise


def largest(output):
    """The largest float of an output, without its sign."""
    if isinstance(output, (list, tuple)):
        return max(map(largest, output), default=0.0)
    return abs(output) if isinstance(output, float) else 0.0


class Case:
    """A model at a size: its program, its data, and its peers that passed."""

    def __init__(self, options, name, size):
        self.options, self.name, self.size = options, name, size
        count = min(options.instances, MOST_INSTANCES)
        self.data = make_data(options, [name], size, count)
        # As many heads as the peers have.
        own = program_of(name, self.data) if name in LAYERS else None
        self.program = own or ROOT / "examples" / name / f"{name}.coh"
        self.instances = read_lines(self.data / f"{name}.jsonl")
        batched, single = peers_of(name)
        if options.quick:  # Compiling takes longer than all else.
            batched = {c: kind for c, kind in batched.items() if not c.endswith(COMPILED)}
        weights = weights_of(self.data, name)
        self.peers, self.failed, self.otherwise = {}, {}, 0
        for column, kind in (single | batched).items():
            source = kind
            if column.endswith(COMPILED):
                source = batched[column.removesuffix(COMPILED)]
            peer = (kind(weights), prepare(name, source, self.instances))
            self.peers[column] = (*peer, column in single)

    def cohort(self, batch, repetitions, *arguments, **others):
        """One turn of the program."""
        way = "--in-flight" if self.name in IN_FLIGHT else "--batch"
        given = (way, batch, "--max-memory", 1 << 36, *arguments)
        return run_program(self.options, self.data, self.name, repetitions, *given, program=self.program, **others)

    def expected(self):
        """The program's outputs, whose bits do not depend on the batch."""
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            self.cohort(max(BATCHES), 1, output=file.name)
            return [line["output"] for line in read_lines(file.name)]

    def compare(self, batch, expected):
        """Takes turns at one batch size; returns the rates."""
        least, passes = self.options.repetitions, {}
        for column, (peer, instances, single) in self.peers.items():
            if column in self.failed or (single and batch != min(self.options.batches)):
                continue
            try:
                outputs, seconds = run_peer(peer, instances, 1 if single else batch)
                wrong, otherwise = check(outputs, expected)
            except Exception as error:  # Whatever a peer's library says is shown in the table.
                lines = str(error).splitlines() or [""]
                wrong, otherwise = f"{type(error).__name__}: {lines[0][:120]}", 0
            self.otherwise = max(self.otherwise, otherwise)
            if wrong:
                self.failed[column] = wrong
                print(f"{self.name} at {self.size}: {column}: {wrong}", file=sys.stderr)
            else:
                passes[column] = passes_of(seconds, 1 if single else least)
        ours, seconds = [], {column: [] for column in passes}
        own = passes_of(seconds_of([self.cohort(batch, least)]), least)
        for _ in range(self.options.turns):
            ours.append(self.cohort(batch, own))
            for column, count in passes.items():
                peer, instances, single = self.peers[column]
                for _ in range(count):
                    seconds[column].append(run_peer(peer, instances, 1 if single else batch)[1])
        count = len(self.instances)
        return {
            "batch": batch,
            "cohort": count / seconds_of(ours),
            "peers": {c: count / statistics.median(times) for c, times in seconds.items()},
        }

    def memory(self, batch, column):
        """The peak bytes of a run of the program, compiled before, and of a peer's process without and with it."""
        with tempfile.TemporaryDirectory() as folder:
            artifact = Path(folder) / f"{self.name}.cohort"
            weights = self.data / f"{self.name}.safetensors"
            given = ("--weights", weights) if weights.exists() else ()
            run([self.options.batch_opt, self.program, *given, "--emit=artifact", "-o", artifact])
            self.program, program = artifact, self.program
            ours = self.cohort(batch, 1)["peak_memory_bytes"]
            self.program = program
        command = [sys.executable, Path(__file__), self.name, self.size, batch, column, self.data]
        return {"batch": batch, "cohort": ours, "peer": json.loads(run(command)), "column": column}


def passes_of(seconds, least):
    """How many passes a turn makes when a pass takes `seconds`."""
    return max(least, min(MOST_PASSES, math.ceil(TURN_SECONDS / seconds)))


def measure_one(options, name, size):
    """The figures of a model at a size."""
    case = Case(options, name, size)
    expected = case.expected()
    single = [column for column, (_, _, alone) in case.peers.items() if alone]
    rows = [{**case.compare(batch, expected), "single": single} for batch in options.batches]
    for row in rows:
        row["best"], row["best rate"] = best_of(rows, row)
        row["ratio"] = row["best"] and row["cohort"] / row["best rate"]
    return {
        "model": name,
        "size": size,
        "instances": len(case.instances),
        "inputs": source_of(name),
        "rows": rows,
        "failed": case.failed,
        "otherwise": case.otherwise,
        "memory": None,
        "processor": describe_processor(),
        "versions": {package: installed(package) for package in ("torch", "jax")},
        "turns": options.turns,
        "repetitions": options.repetitions,
        "turn_seconds": TURN_SECONDS,
    }


def installed(package):
    try:
        return version(package).split("+")[0]
    except PackageNotFoundError:
        return None


def sizes_of(options, name):
    """The sizes at which a model is measured."""
    sizes = [64, *SIZES] if name in SMALL else SIZES
    return [size for size in sizes if not options.sizes or size in options.sizes]


def measure(options):
    """The figures of all models and sizes that run; with --resume, what is there is not measured again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    cases, refused = [], {}
    for name in MODELS:
        if options.models and name not in options.models:
            continue
        for size in sizes_of(options, name)[: 1 if options.quick else None]:
            path = FOLDER / f"{name}-{size}.json"
            if not (options.resume and path.exists()):
                try:
                    figures = measure_one(options, name, size)
                except Refused as error:
                    refused[f"{name} at {size}"] = str(error)
                    continue
                path.write_text(json.dumps(figures, indent=1) + "\n")
                print(f"{name} at {size}: {[ratio(row['ratio']) for row in figures['rows']]}", flush=True)
            figures = json.loads(path.read_text())
            last = figures["rows"][-1]
            if options.memory and last["best"] and not figures["memory"]:
                try:
                    figures["memory"] = Case(options, name, size).memory(last["batch"], last["best"])
                except Refused as error:
                    refused[f"{name} at {size}, for its memory"] = str(error)
                path.write_text(json.dumps(figures, indent=1) + "\n")
            cases.append(figures)
    return {"cases": cases, "refused": refused}


def report(figures):
    """The tables in Markdown."""
    return peers_page(figures)


def main():
    """One run of a peer, for its memory."""
    name, size, batch, column, data = sys.argv[1:]
    batched, single = peers_of(name)
    kind = (batched | single)[column]
    source = (batched | single)[column.removesuffix(COMPILED)]
    data = Path(data)
    peer = kind(weights_of(data, name))
    instances = prepare(name, source, read_lines(data / f"{name}.jsonl"))

    def peak():
        # What getrusage gives begins with the peak of the process that started this one.
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        return int(re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)[1]) * 1024

    before = peak()
    run_peer(peer, instances, 1 if column in single else int(batch))
    print(json.dumps({"before": before, "peak": peak()}))


if __name__ == "__main__":
    main()
