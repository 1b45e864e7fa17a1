"""What a run takes on a card, by the model (gpu_card.py): launches as the simulator counts them, and what is between."""

import math
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace

import gpu_card
from gpu_plan import CLUSTER_BLOCKS, CLUSTERS, FLUSH

# Blocks of a step on average up to which a flush is one launch, as runtime/src/device/schedule.rs has it.
MOST_BLOCKS_A_STEP = 1024


@dataclass
class Counts:
    """What a run launched."""

    instances: int
    flushes: int
    steps: int
    calls: int  # That were recorded, those that an equal one answered included.
    copies: int
    copied: int  # Bytes, to the card.
    flops: dict  # Of each kernel, at the size that was counted.
    launches: dict = field(default_factory=dict)  # Of each kernel: how often with so many rows and calls.
    guesses: int = 0  # Decisions that instances did not wait for.
    clusters: dict = None  # What flushes were where blocks form clusters, as `--stats` has it.

    def rows(self, name):
        """Rows of all launches of a kernel."""
        return sum(rows * times for (rows, _), times in self.launches.get(name, {}).items())


def read_counts(stats, profile):
    """From what `--stats` and `--profile` wrote."""
    device = stats["device"]
    found = Counts(
        stats["instances"],
        stats["flushes"],
        device["steps"],
        stats["shared_calls"],
        device["copies"]["to_device"],
        device["copies"]["bytes_to_device"],
        {kernel["name"]: kernel["flops"] for kernel in stats["kernels"]},
        guesses=stats.get("speculation", {}).get("guesses", 0),
        clusters=device.get("clusters"),
    )
    for event in profile["traceEvents"]:
        if event.get("cat") == "launch":
            of_kernel = found.launches.setdefault(event["name"], Counter())
            of_kernel[event["args"]["rows"], event["args"]["calls"]] += 1
            found.calls += event["args"]["calls"]
    return found


def held_by(launch, held):
    """The size of a launch's blocks that keep their weights, and their code: in clusters, or not."""
    return (launch.clustered, "_clustered") if held == CLUSTERS else (launch.resident, "_resident")


def of_launch(card, launch, codes, precision, rows, calls, keys, slots=None, held=FLUSH):
    """Blocks of a launch and its seconds by reason. With `slots`, as many blocks as these fit on a processor, and it is
    part of a flush that is one launch of the function `held`; without, as many as its own registers and shared memory let."""
    again = gpu_card.LOOKED_UP_AGAIN if slots else 0
    if launch.kind == "blocks":
        code = codes[launch.name]
        blocks = math.ceil(rows / launch.block_rows)
        spent = gpu_card.rows_seconds(card, launch, code, rows, slots or gpu_card.together(card, code), again)
        return blocks, gpu_card.with_memory(card, launch, rows, spent)
    if launch.kind == "tiles":
        end, size = gpu_card.tile_of(launch, rows)
        resident, of_resident = held_by(launch, held)
        if slots and resident and end == "_small":
            blocks, spent = of_resident_launch(card, launch, resident, launch.name + of_resident, codes, precision, rows, slots)
            return blocks, gpu_card.with_memory(card, launch, rows, spent)
        code = codes[launch.name + end]
        if size.held:
            blocks, spent = gpu_card.held_seconds(card, launch, size, rows, code, precision)
            return blocks, gpu_card.with_memory(card, launch, rows, spent)
        work = gpu_card.work_of_tiles(launch, size, rows, code)
    else:
        code = codes[launch.name]
        work = gpu_card.work_of_calls(launch, code, rows, calls, keys)
    slots = slots or gpu_card.together(card, code, work.warps)
    spent = gpu_card.launch_seconds(card, launch, code, work, slots, precision, again)
    return work.blocks, gpu_card.with_memory(card, launch, rows, spent)


def of_resident_launch(card, launch, size, name, codes, precision, rows, slots):
    """The same of a launch whose weights stay: as many tiles as can be have the most rows of a thread, and the last may have one."""
    again, blocks, spent = gpu_card.LOOKED_UP_AGAIN, 0, Counter()
    last = rows % size.rows if size.thread_rows > 1 else 0
    last = last if last <= size.single_rows else 0
    for thread_rows, part in ((size.thread_rows, rows - last), (1, last)):
        if part:
            work = gpu_card.work_of_resident(launch, size, part, thread_rows)
            code = codes[name + "_twice" * (thread_rows - 1)]
            of_part = gpu_card.launch_seconds(card, launch, code, work, slots, precision, again, again if blocks else 0)
            add(spent, of_part, 1)
            blocks += work.blocks
    return blocks, spent


def flops_of(kernel, name, counts, grown):
    """Operations of a kernel's products; of a softmax as they were counted, times as many terms as it has now."""
    tiles = sum(2 * launch.terms * launch.columns for launch in kernel.launches if launch.kind == "tiles")
    is_softmax = any(launch.kind == "calls" for launch in kernel.launches)
    return tiles * counts.rows(name) + (counts.flops[name] * grown if is_softmax else 0)


def mean_keys(kernel, rows, flops):
    """Keys of a row on average, from the operations of a softmax between products."""
    terms = sum(launch.terms + launch.columns for launch in kernel.launches if launch.kind == "calls")
    return flops / (2 * rows * terms) if terms else 0


def predict(card, case, kernels, codes, counts):
    """What `--stats` should say on the card, what no order of the same work can beat, and what takes the time."""
    grown = case.size / case.counted
    has_clusters = CLUSTERS in codes and counts.clusters
    slots = gpu_card.together(card, codes[FLUSH]) if FLUSH in codes else None
    blocks, launches, moved, of_kernels = 0, 0, 0, []
    # The seconds by reason where each launch is one, and where a flush is one.
    plain, whole = Counter(), Counter()
    for name, counted in counts.launches.items():
        kernel, rows, calls = kernels[name], counts.rows(name), sum(counted.values())
        flops = flops_of(kernel, name, counts, grown)
        keys, before = mean_keys(kernel, rows, flops), plain.total()
        for (of_call, entries), times in counted.items():
            for launch in kernel.launches:
                about = (card, launch, codes, case.precision, of_call, entries, keys)
                found, spent = of_launch(*about)
                blocks += times * found
                add(plain, spent, times)
                add(whole, of_launch(*about, slots)[1], times)
        if slots:
            rows_of_each = [rows for rows, _ in counted]
            add(whole, panels(card, kernel, codes, rows_of_each, slots), counts.flushes)
        of_it = calls * len(kernel.launches)
        seconds = plain.total() - before + of_it * card.next_launch
        of_kernels.append({"name": name, "launches": calls, "rows": rows, "seconds": seconds, "flops": flops})
        launches += of_it
        weights = sum(launch.weight_bytes for launch in kernel.launches)
        moved += rows * kernel.row_bytes + counts.flushes * weights
    if has_clusters:
        whole = in_clusters(card, case, kernels, codes, counts.clusters)
    whole["first launches"] = gpu_card.LOOKED_UP * card.l2_latency / card.clock * counts.flushes
    is_whole = slots and blocks <= MOST_BLOCKS_A_STEP * counts.steps and launches > counts.flushes
    wider = counts.rows(case.inputs) * (case.size - case.counted)
    waits = counts.steps - counts.flushes
    plain["waits between steps"] = card.next_launch * waits
    if not has_clusters:
        whole["waits between steps"] = card.grid_barrier * waits
    for spent in (plain, whole):
        spent["first launches"] += card.first_launch * counts.flushes
        spent["copies to the card"] = counts.copies * card.copy + (counts.copied + 4 * wider) / card.copy_rate
    reasons = whole if is_whole else plain
    flops = sum(kernel["flops"] for kernel in of_kernels)
    bound = max(flops / getattr(card, case.precision), moved / card.memory_rate) + card.grid_barrier * waits
    device = {"seconds": reasons.total(), "launches": counts.flushes if is_whole else launches, "steps": counts.steps}
    return {
        "stats": {
            "instances": counts.instances,
            "flushes": counts.flushes,
            "kernel_launches": sum(kernel["launches"] for kernel in of_kernels),
            "host_seconds": card.call * counts.calls + card.guess * counts.guesses + card.flush * counts.flushes,
            "device": device,
            "kernels": of_kernels,
        },
        "batches": math.ceil(counts.instances / case.batch),
        "bound_seconds": bound,
        "fetch_seconds": card.fetch * counts.flushes,
        "plain_seconds": plain.total(),
        "reasons": dict(reasons.most_common()),
    }


def in_clusters(card, case, kernels, codes, clusters):
    """The seconds by reason of flushes that can be divided between clusters, as `--stats` counted them: of those that are not, of
    what all clusters compute together, and of the part that takes longest, whose cluster has its share of the second cache."""
    shared = {name: getattr(card, name) / card.clusters for name in ("l2_rate", "memory_rate", "l2_bytes")}
    one = SimpleNamespace(**vars(card) | shared | {"processors": CLUSTER_BLOCKS})
    together = SimpleNamespace(**vars(card) | {"processors": card.clusters * CLUSTER_BLOCKS})
    divided = clusters["divided"]
    undivided = clusters["flushes"] - divided
    spent = Counter()
    for part, processors, held, flushes in (
        ("undivided", card, FLUSH, undivided),
        ("shared", together, CLUSTERS, divided),
        ("longest", one, CLUSTERS, divided),
    ):
        slots, of_kernels = gpu_card.together(card, codes[held]), {}
        for each in clusters[part]["launches"]:
            name, rows = each["kernel"], each["rows"]
            of_kernels.setdefault(name, []).append(rows)
            for launch in kernels[name].launches:
                about = (processors, launch, codes, case.precision, rows, rows, 0, slots, held)
                add(spent, of_launch(*about)[1], each["times"])
        for name, rows in of_kernels.items():
            add(spent, panels(processors, kernels[name], codes, rows, slots, held), flushes)
    waits = card.grid_barrier * (clusters["undivided"]["steps"] - undivided + clusters["shared"]["steps"])
    spent["waits between steps"] = waits + card.cluster_barrier * (clusters["longest"]["steps"] - divided)
    return spent


def panels(card, kernel, codes, counted, slots, held=FLUSH):
    """The seconds for weights that stay, by reason, of a flush whose launches have at most so many rows."""
    spent = Counter()
    for launch in kernel.launches:
        size, end = held_by(launch, held)
        if size:
            rows = [rows for rows in counted if rows < launch.starts.get("_large", math.inf)]
            if rows:
                work = gpu_card.work_of_resident(launch, size, max(rows), size.thread_rows)
                spent["weights that stay"] += gpu_card.panels_seconds(card, launch, size, work, slots)
    return spent


def add(to, spent, times):
    for reason, seconds in spent.items():
        to[reason] += times * seconds
