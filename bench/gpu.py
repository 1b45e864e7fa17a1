#!/usr/bin/env python3
"""Compiled programs on a GPU against PyTorch on the same, from the folder that gpu_kit.py makes.

    python3 FOLDER/gpu.py [--device cuda|gpu-sim] [--output RESULTS]

For each model, size and batch the program and its peers (gpu_torch.py) run over the same instances;
a batch is waited for before the next begins, results stay on the card, nobody's files are read inside
the time, and the fastest of several passes counts. *End to end* is from the first instance to the last
on the host's clock; *on the card* is by events, from a batch's first copy to its last launch. Bytes and
operations are what kernels have to read, write and multiply at the least, against what the card was
measured to do (gpu_ceilings.py).

Where there is no GPU it says so and succeeds. Where there is no PyTorch for it, peers are left out.
With `--device gpu-sim`, and a kit made with --tiny, it runs the simulator and PyTorch on the processor:
that tests this benchmark, compares outputs, and reports no time, since none would be a GPU's.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import gpu_ceilings
from tables import markdown, number, ratio, read_lines, share

KIT = Path(__file__).resolve().parent
# Of the instances that a peer may decide or compute otherwise, in float32 with another order of sums.
MOST_OTHERWISE = 0.01
LONGEST = 900
NO_PEERS = "NOTHING IS COMPARED WITH PYTORCH, only measured"


class Refused(Exception):
    """The program does not run there; the message is why."""


def write_sequences(folder):
    """The encoder's inputs: rows of numbers with one digit behind the point."""
    about = json.loads((folder / "lengths.json").read_text())
    rng = random.Random(7)
    rows = [
        "[" + ",".join(f"{rng.randint(-19, 19) / 10:.1f}" for _ in range(about["size"])) + "]"
        for _ in range(251)
    ]
    with open(folder / "input.jsonl", "w", encoding="utf-8") as lines:
        for instance, length in enumerate(about["lengths"], start=1):
            picked = ",".join(rng.choice(rows) for _ in range(length))
            lines.write(f'{{"id": {instance}, "x": [{picked}]}}\n')


def write_weights(folder):
    """The weights as floats, from the halves of the kit; safetensors as the format is, without a library."""
    data = (folder / "halves.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, begin = json.loads(data[8 : 8 + length]), 8 + length
    halves = struct.unpack(f"<{(len(data) - begin) // 2}e", data[begin:])
    for name, tensor in header.items():
        if name != "__metadata__":
            assert tensor["dtype"] == "F16"
            tensor["dtype"] = "F32"
            tensor["data_offsets"] = [2 * offset for offset in tensor["data_offsets"]]
    about = json.dumps(header).encode()
    about += b" " * (-len(about) % 8)
    floats = struct.pack(f"<{len(halves)}f", *halves)
    path = folder / "weights.safetensors"
    path.write_bytes(len(about).to_bytes(8, "little") + about + floats)


def run_ours(options, folder, batch, *arguments, output=os.devnull):
    """One turn of the program: its statistics."""
    in_flight = folder.name.startswith("act")
    with tempfile.NamedTemporaryFile(suffix=".json") as stats:
        command = [KIT / "batch-run", folder / "model.cohort", "--device", options.device]
        command += ["--weights", folder / "weights.safetensors", "--input", folder / "input.jsonl"]
        command += ["--in-flight" if in_flight else "--batch", batch, "--max-memory", 1 << 36]
        command += ["--output", output, "--quiet", "--stats", stats.name, *arguments]
        command = [str(part) for part in command]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            raise Refused(f"longer than {LONGEST} s") from None
        if done.returncode != 0:
            said = done.stderr.strip() or f"batch-run ended with {done.returncode}"
            raise Refused(said.splitlines()[-1].removeprefix("error: "))
        return json.loads(Path(stats.name).read_text(encoding="utf-8"))


def measure_ours(options, folder, batch):
    """The program's figures: as it runs; with one batch at a time, whose times on the card are its own, with graphs and
    without; and with each call timed."""
    passes = ("--benchmark-repetitions", options.passes)
    alone = ("--without", "overlap")
    beside = run_ours(options, folder, batch, *passes)
    stats = run_ours(options, folder, batch, *passes, *alone)
    plain = run_ours(options, folder, batch, *passes, *alone, "--no-graphs")
    timed = run_ours(options, folder, batch, *passes, "--device-times")

    def seconds(stats, *parts):
        return min(sum(repetition[part] for part in parts) for repetition in stats["repetitions"])

    both = ("record_seconds", "execute_seconds")
    return {
        "instances": stats["instances"],
        "seconds": seconds(beside, *both),
        "alone_seconds": seconds(stats, *both),
        "plain_seconds": seconds(plain, *both),
        "record_seconds": seconds(stats, "record_seconds"),
        "schedule_seconds": stats["schedule_seconds"],
        "device": stats["device"],
        "device_seconds": stats["device"]["seconds"],
        "timed_device": timed["device"],
        "flushes": stats["flushes"],
        "calls": stats["kernel_launches"],
        "flops": sum(kernel["flops"] for kernel in stats["kernels"]),
        "bytes": sum(kernel["bytes"] for kernel in stats["kernels"]),
        "kernels": timed["kernels"],
    }


def check(options, folder, card, name, weights, instances, batches):
    """Stops if the program and its peers do not compute the same, in small batches or in the largest, whose functions are others."""
    import gpu_torch

    few = min(len(instances), 64)
    for batch in sorted({16, max(batches)}):
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as output:
            run_ours(options, folder, batch, output=output.name)
            expected = [line["output"] for line in read_lines(output.name)[:few]]
        otherwise = gpu_torch.check(card, name, weights, instances[:few], expected)
        for column, count in otherwise.items():
            if count > max(1, MOST_OTHERWISE * few):
                raise SystemExit(f"{name}: in batches of {batch} {count} of {few} outputs differ from PyTorch's ({column})")
    return f"{few} outputs agree with {', '.join(otherwise)}"


def measure_case(options, name, size, batches, card):
    """A row for each batch size, and what was found out about outputs."""
    folder = KIT / f"{name}-{size}"
    if not (folder / "input.jsonl").exists():
        write_sequences(folder)
    if not (folder / "weights.safetensors").exists():
        write_weights(folder)
    rows, checked, weights, instances = [], "not compared", None, None
    if card:
        import gpu_torch
        from safetensors.torch import load_file

        weights = load_file(folder / "weights.safetensors")
        instances = gpu_torch.MODELS[name][0](read_lines(folder / "input.jsonl"))
    for batch in batches:
        row = {"model": name, "size": size, "batch": batch, "peers": {}}
        try:
            if card and not rows:
                checked = check(options, folder, card, name, weights, instances, batches)
            row["ours"] = measure_ours(options, folder, batch)
        except Refused as why:
            row["refused"] = str(why)
        if card:
            row["peers"] = gpu_torch.measure(card, name, weights, instances, batch, options)
        rows.append(row)
        print(summary(row, options), file=sys.stderr, flush=True)
    return rows, checked


def summary(row, options):
    """A row in a line, for who waits."""
    about = f"{row['model']} {row['size']}, batch {row['batch']}"
    if "refused" in row:
        return f"{about}: refused: {row['refused']}"
    if options.device != "cuda":
        return f"{about}: ran"
    return f"{about}: {row['ours']['instances'] / row['ours']['seconds']:,.0f} instances/s"


# --- The report ----------------------------------------------------------------------------------


def per_second(figures):
    """Instances a second, of figures that may be missing or refused."""
    if not figures or "seconds" not in figures:
        return None
    return figures["instances"] / figures["seconds"]


def times_faster(ours, theirs):
    return ours / theirs if ours and theirs else None


def speed_tables(rows):
    """For each model: instances a second of all sides, end to end and on the card."""
    parts = []
    for name in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == name]
        columns = list(dict.fromkeys(column for row in own for column in row["peers"]))
        heads = ["size", "batch", "ours/s", *(f"{c}/s" for c in columns)]
        heads += [f"vs {c}" for c in columns] + ["ours ms on card", *(f"{c} ms" for c in columns)]
        lines = []
        for row in own:
            speeds = [per_second(row["peers"].get(column)) for column in columns]
            ours = per_second(row.get("ours"))
            line = [row["size"], row["batch"], number(ours), *map(number, speeds)]
            line += [ratio(times_faster(ours, speed)) for speed in speeds]
            sides = [row.get("ours"), *(row["peers"].get(column) for column in columns)]
            lines.append(line + [number(on_card_milliseconds(side)) for side in sides])
        parts.append(f"### {name}\n\n{markdown(heads, lines)}{reasons(own)}")
    return "\n".join(parts)


def on_card_milliseconds(side):
    """Of a thousand instances, since not all sides take all."""
    if not side or not side.get("device_seconds"):
        return None
    return side["device_seconds"] / side["instances"] * 1e6


def reasons(rows):
    """Why what is missing is missing."""
    found = {}
    for row in rows:
        found.setdefault(row.get("refused"), "ours")
        for column, figures in row["peers"].items():
            found.setdefault(figures.get("refused"), column)
    return "".join(f"\n{side}: {why}\n" for why, side in found.items() if why)


def ceiling_table(rows, ceilings):
    """Operations and bytes of the program's kernels against the ceilings, on the card's clock."""
    flops = max(ceilings["multiply_add_flops"], ceilings.get("product_flops") or 0)
    heads = ["model", "size", "batch", "TFLOP/s", "of peak", "in kernels", "GB/s", "of copies"]
    lines = []
    for row in rows:
        ours = row.get("ours")
        if not ours or not ours["device_seconds"]:
            continue
        kernels = sum(kernel["seconds"] for kernel in ours["kernels"])
        done, moved = (ours[what] / ours["device_seconds"] for what in ("flops", "bytes"))
        lines.append(
            [row["model"], row["size"], row["batch"], number(done / 1e12), share(done / flops)]
            + [share(ours["flops"] / kernels / flops) if kernels else "-"]
            + [number(moved / 1e9), share(moved / ceilings["copy_bytes"])]
        )
    return markdown(heads, lines)


def loss_table(rows, ceilings):
    """Where the time of a pass goes, in milliseconds."""
    heads = ["model", "size", "batch", "end to end", "one at a time", "recording", "scheduling", "on card", "kernels"]
    heads += ["copies", "results", "between", "gathers", "launches", "no graphs", "graphs", "changed"]
    slower = 1 / ceilings["gather_bytes"] - 1 / ceilings["copy_bytes"]
    lines = []
    for row in rows:
        ours = row.get("ours")
        if not ours:
            continue
        device, timed = ours["device"], ours["timed_device"]
        kernels = sum(kernel["seconds"] for kernel in ours["kernels"])
        lists = timed.get("list_seconds") or 0.0
        between = max(0.0, ours["device_seconds"] - kernels - lists)
        seconds = [ours["seconds"], ours["alone_seconds"], ours["record_seconds"], ours["schedule_seconds"]]
        seconds += [ours["device_seconds"], kernels, lists, device["fetch_seconds"], between]
        seconds.append(max(0.0, slower * ours["bytes"]))
        line = [row["model"], row["size"], row["batch"], *(number(s * 1e3) for s in seconds)]
        graphs = device["graphs"]
        lines.append(
            line
            + [device["launches"], number(ours["plain_seconds"] * 1e3)]
            + [f"{graphs['replayed']} of {ours['flushes']}", graphs["changed_launches"]]
        )
    return markdown(heads, lines)


def report(figures):
    """The page; of the simulator only what holds for it."""
    rows, ceilings = figures["rows"], figures["ceilings"]
    checks = "".join(f"- {case}: {found}\n" for case, found in figures["checks"].items())
    if figures["device"] != "cuda":
        lines = []
        for row in rows:
            ours = row.get("ours")
            about = [row["model"], row["size"], row["batch"]]
            done = [ours["device"]["launches"], ours["flops"], ours["bytes"]] if ours else ["-"] * 3
            lines.append(about + done + [row.get("refused", "")])
        heads = ["model", "size", "batch", "launches", "FLOP", "bytes", "refused"]
        return (
            "# A test of the GPU's benchmark\n\nOn the simulator, and PyTorch on the processor: no "
            f"speed was measured.\n\n{checks}\n{markdown(heads, lines)}"
        )
    peak = ceilings.get("product_flops")
    return (
        f"# On a GPU: {ceilings['card']}\n\n{figures['peers']}\n\nThe card, as measured: copies read and "
        f"write {ceilings['copy_bytes'] / 1e9:,.0f} GB/s, gathers of rows of 1 KiB "
        f"{ceilings['gather_bytes'] / 1e9:,.0f} GB/s; float32 multiply-adds "
        f"{ceilings['multiply_add_flops'] / 1e12:.1f} TFLOP/s"
        f"{f', a large product in PyTorch {peak / 1e12:.1f} TFLOP/s' if peak else ''}; a queued launch takes "
        f"{ceilings['queued_launch_seconds'] * 1e6:.1f} µs, one from the host and back "
        f"{ceilings['launch_seconds'] * 1e6:.1f} µs, a small copy to the card and back "
        f"{ceilings['to_device_seconds'] * 1e6:.1f} and {ceilings['to_host_seconds'] * 1e6:.1f} µs.\n\n"
        f"{checks}\n## Instances a second, and milliseconds on the card for a thousand\n\n"
        f"{speed_tables(rows)}\n"
        "## Against the card's ceilings\n\nOperations of products and the least bytes, over the time on "
        "the card; `in kernels`, over the time in kernels alone.\n\n"
        f"{ceiling_table(rows, ceilings)}\n"
        "## What is lost\n\nMilliseconds of a pass over all instances. `one at a time` and what follows is of batches "
        "that are recorded when the card is done with the one before (`--without overlap`). `kernels` is their "
        "sum one after another; `copies` are those of inputs and lists to the card, `results` those of decisions and "
        "results back; `between` is the rest of the time on the card, lost to launches; `gathers` is what "
        "reading and writing all rows from anywhere would cost over copying them in order, at most.\n\n"
        f"{loss_table(rows, ceilings)}"
    )


def why_unseen(torch):
    """Why PyTorch uses no GPU, in its words."""
    if torch.version.cuda is None:
        return "it was built without CUDA"
    try:
        torch.cuda.init()
    except (AssertionError, RuntimeError) as why:
        return str(why).splitlines()[0]
    return f"it was built for CUDA {torch.version.cuda}"


def find_card(device, precision):
    """The card for PyTorch, and what to say about it."""
    try:
        import gpu_torch
        import torch
    except ImportError as why:
        return None, f"{NO_PEERS}: PyTorch cannot be used here: {why}"
    if device != "cuda":
        return gpu_torch.Card("cpu", precision), f"PyTorch {torch.__version__} on the processor."
    if not torch.cuda.is_available():
        return None, f"{NO_PEERS}: PyTorch {torch.__version__} sees no GPU: {why_unseen(torch)}"
    about = f"Peers are PyTorch {torch.__version__}; products of all sides are {precision}."
    return gpu_torch.Card("cuda", precision), about


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cuda", "gpu-sim"), default="cuda")
    parser.add_argument("--output", type=Path, default=KIT / "results")
    parser.add_argument("--models", nargs="+", help="only these")
    parser.add_argument("--batches", nargs="+", type=int, help="in place of the kit's")
    parser.add_argument("--passes", type=int, default=5, help="of which the fastest counts")
    parser.add_argument("--single-instances", type=int, default=64, help="of peers that take one")
    return parser.parse_args()


def main():
    options = parse_options()
    about = json.loads((KIT / "kit.json").read_text())
    ceilings = {}
    if options.device == "cuda":
        try:
            ceilings = gpu_ceilings.measure()
        except gpu_ceilings.Absent as why:
            print(f"skip: every measurement: {why}")
            return
    elif not about["tiny"]:
        sys.exit("the simulator takes hours for this kit: make one with gpu_kit.py --tiny")
    card, peers = find_card(options.device, about["precision"])
    print(peers, file=sys.stderr)
    if card and card.is_gpu:
        import gpu_torch

        ceilings["product_flops"] = gpu_torch.product_flops(card)
    rows, checks = [], {}
    for name, size in about["cases"]:
        if not options.models or name in options.models:
            batches = options.batches or about["batches"]
            found, checked = measure_case(options, name, size, batches, card)
            rows += found
            checks[f"{name} {size}"] = checked
    figures = {"device": options.device, "peers": peers, "ceilings": ceilings}
    figures |= {"checks": checks, "rows": rows}
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "gpu.json").write_text(json.dumps(figures, indent=1) + "\n")
    page = report(figures)
    (options.output / "gpu.md").write_text(page, encoding="utf-8")
    print(page)
    if not card:
        print(f"\n{peers}", file=sys.stderr)


if __name__ == "__main__":
    main()
