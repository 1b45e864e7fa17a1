"""How long a launch takes on a card, by a model of it: no card was asked.

A block has steps, in each of which it copies to shared memory and multiplies (gpu_plan.py counts both). What takes the
longest of a step is what the step takes; blocks beside each other on a processor share all but latencies; and
processors take as many blocks one behind another as there are for each.
"""

import math
from dataclasses import dataclass
from types import SimpleNamespace

from gpu_plan import THREADS, WARPS

# Rows of a warpgroup.
GROUP_ROWS = 64

DATASHEET = "NVIDIA, H200 datasheet"
# As others quote them: the paper itself was not at hand.
PAPER = "Luo et al., arXiv:2501.12084, of an H800"
XLA = "of an H100, a constant of XLA's `GpuDotFusionCostModel`"
# By name: the number, its unit, what it is of, and where it is from.
FACTS = {
    "processors": (132, "", "streaming multiprocessors", "NVIDIA, H100 white paper, SXM5, for the H200 too"),
    "clock": (1.98e9, "Hz", "clock where lanes multiply", "what 67 TFLOP/s are of: 132 x 128 lanes x 2"),
    "tensor_clock": (1.83e9, "Hz", "clock where tensor cores do", "what 989 TFLOP/s are of: 132 x 4 x 512 x 2"),
    "f32": (66.9e12, "FLOP/s", "lanes", DATASHEET),
    "tf32": (494.7e12, "FLOP/s", "tensor cores, dense", f"half of that with sparsity, {DATASHEET}"),
    "bf16": (989.4e12, "FLOP/s", "tensor cores, dense", f"half of that with sparsity, {DATASHEET}"),
    "mma_share": (0.629, "", "of these that `mma.sync` reaches", f"{PAPER}, §6.2"),
    "mma_latency": (33, "cycles", "from one `mma.sync` to what adds to its sums", "assumed"),
    "group_share": (0.87, "", "the same that warpgroups reach", "assumed: nearly all, but for what limits power"),
    "group_latency": (128, "cycles", "an operation of a warpgroup of 256 columns", "assumed: its multiplications at the peak"),
    "registers": (65536, "", "of a processor", "CUDA programming guide, compute capability 9.0"),
    "shared": (233472, "B", "shared memory of a processor; a block may have 227 KB", "the same"),
    "reserved": (1024, "B", "of it that each block takes beside its own", "the same"),
    "blocks": (32, "", "blocks of a processor at most, of 64 warps", "the same"),
    "shared_latency": (29, "cycles", "a load from shared memory", f"{PAPER}, table 3"),
    "l2_latency": (336, "cycles", "a load from the second cache", f"the mean of near and far, {PAPER}, table 4"),
    "l2_bytes": (50e6, "B", "the second cache", "NVIDIA, H100 white paper"),
    "l2_rate": (6.65e12, "B/s", "of all processors from it", XLA),
    "processor_rate": (64, "B/cycle", "of one processor from it", "assumed, as on the A100"),
    "memory_rate": (4.8e12, "B/s", "the card's memory", DATASHEET),
    "memory_share": (0.91, "", "of it that is reached", f"{PAPER}, table 5"),
    "block_barrier": (30, "cycles", "a barrier of a block", "assumed"),
    "once_cycles": (2, "cycles", "an instruction in no loop, of a warp alone", "assumed"),
    "grid_barrier": (1.5e-6, "s", "a barrier of the whole grid", "assumed"),
    "cluster_barrier": (4e-7, "s", "a barrier of a cluster, with what it orders", "assumed"),
    "clusters": (8, "", "clusters of 16 blocks at once", "assumed: one for each of its parts of 16 or 18 processors"),
    "first_launch": (3e-6, "s", "the first launch of a flush", "assumed"),
    "next_launch": (1.5e-6, "s", "from the end of a launch to the beginning of the next", "assumed"),
    "copy": (2e-6, "s", "a copy to the card, however small", "assumed"),
    "copy_rate": (50e9, "B/s", "the same, of many bytes", "assumed: PCIe 5 has 64 GB/s"),
    "call": (40e-9, "s", "recording and scheduling a call, on the host", "20 to 60 ns, docs/performance.md"),
    "guess": (2e-7, "s", "guessing a decision, on the host", "of a processor with AVX-512, docs/performance.md"),
    "fetch": (1e-5, "s", "a flush's decisions or results: brought together, copied to the host, waited for", "assumed"),
    "flush": (25e-6, "s", "queueing a flush and waiting for it, on the host", "assumed"),
}
H200 = SimpleNamespace(**{name: fact[0] for name, fact in FACTS.items()})

# Loads from the second cache that a block over whole rows begins with, each of which needs the one before: an index, the row
# that it names, and what it is for. Of tiles, code says how many there are.
BEGINS = 3
# The same before these, of a flush that is one launch: its step, its launch and its arguments. They are looked up while the
# block waits for others; of a step's further blocks the launch and the arguments are, with nothing else to do.
LOOKED_UP, LOOKED_UP_AGAIN = 3, 2
# Instructions for a word of weights that stay, of the thread that copies it.
PANEL_INSTRUCTIONS = 12


@dataclass
class Work:
    """What a launch has to do: blocks, and of each its rounds and steps."""

    blocks: float
    rounds: float
    passes: float  # Of a round: times that a warp takes shared memory, which gives 128 bytes at a time.
    steps: float
    step_bytes: float
    stored: float  # Rounds of the loop over what is stored.
    ahead: int = 1  # Steps whose copies are on their way.
    warps: int = WARPS  # Of a block.

    @property
    def of_scheduler(self):
        """Warps of a block that each of a processor's four schedulers has."""
        return self.warps / 4


def turns_of_held(card, launch, size, rows):
    """Blocks of columns and of rows of a launch whose weights stay, and how many tiles each of a block's warpgroups goes over."""
    columns = launch.column_blocks("_warpgroups")
    at_once = max(1, card.processors * columns // launch.wave_columns // columns)
    row_blocks = min(math.ceil(rows / size.block_rows), at_once)
    groups = size.warps // WARPS
    return columns, row_blocks, math.ceil(math.ceil(rows / GROUP_ROWS) / (row_blocks * groups))


def held_seconds(card, launch, size, rows, code, precision):
    """The seconds by reason of a launch whose weights stay, and its blocks. Half of a block's warpgroups multiply while the other
    half stores; what takes longer is what the half of a turn takes. Behind the last products a half stores by itself. Launches of a
    wave share the processors, so each takes its share of the time."""
    columns, row_blocks, turns = turns_of_held(card, launch, size, rows)
    half = size.warps // WARPS // 2
    busy = min(card.processors, row_blocks * launch.wave_columns)
    rate = min(card.processor_rate, card.l2_rate / busy / card.tensor_clock)
    peak = getattr(card, precision) / (2 * card.processors * 4 * card.tensor_clock)
    steps = sum(math.ceil(terms / size.depth) for terms, _ in launch.sums)
    of_operation = WARPS * code.macs // (GROUP_ROWS * 16)  # Columns.
    row_bytes = GROUP_ROWS * size.depth * launch.row
    factors = code.adds * 2 * 16 * (GROUP_ROWS + of_operation)
    gates = launch.sums[0][1]
    sums = 2 * 4 * GROUP_ROWS * size.block_columns * gates
    stored = max(1, GROUP_ROWS * size.block_columns / (4 * 32 * WARPS)) * code.stored + code.of_tile
    latency = code.adds * card.group_latency * of_operation / 256 + code.instructions + card.shared_latency
    options = {
        "tensor cores": half * steps * code.adds * code.macs / peak / card.group_share,
        "instructions": half * (steps * code.instructions + stored),
        "shared memory": half * (steps * (factors + row_bytes) + sums) / 128,
        "latency": steps * (latency + card.block_barrier),
        "second cache": half * steps * row_bytes / rate,
        "copies": steps * (card.l2_latency + half * row_bytes / rate) / (size.stages - 1),
    }
    reason = max(options, key=options.get)
    end = max(half, card.once_cycles) * stored
    weights = launch.terms * size.block_columns * launch.weight
    begin = code.begins * card.l2_latency + weights / rate
    cycles = {reason: 2 * turns * max(options[reason], end)}
    if end > options[reason]:
        cycles = {"beginnings and ends": 2 * turns * end}
    # The barrier at which halves change places, and that of the first step behind it.
    change = 2 * turns * 2 * card.block_barrier
    cycles["beginnings and ends"] = cycles.get("beginnings and ends", 0) + begin + change + end
    # One behind another, where the card has not as many processors as there are blocks of columns.
    share = columns / launch.wave_columns * math.ceil(row_blocks * launch.wave_columns / card.processors)
    spent = {reason: share * of_it / card.tensor_clock for reason, of_it in cycles.items()}
    return columns * row_blocks, spent


def tile_of(launch, rows):
    """The end of the function's name, and the size of its tile, for so many rows."""
    end = [end for end, start in launch.starts.items() if rows >= start][-1]
    return end, launch.sizes[end]


def work_of_tiles(launch, size, rows, code):
    """Of `ragged.tiles`, for so many rows."""
    each_row, each_column = size.block_rows, size.block_columns
    blocks = math.ceil(rows / each_row) * math.ceil(launch.columns / each_column)
    rounds = each_row * each_column * launch.terms / size.warps / (code.adds * code.macs)
    steps = sum(math.ceil(terms / size.depth) for terms, _ in launch.sums)
    copied = sum(terms * (launch.row * each_row + launch.weight * gates * each_column) for terms, gates in launch.sums)
    if code.is_grouped:
        # A warpgroup's operation reads both sides, 16 terms of bf16, from shared memory.
        columns = WARPS * code.macs // (64 * 16)
        passes = code.adds * 2 * 16 * (64 + columns) / 128 / WARPS
    elif size.rounded:
        passes = sum(code.loads) / 4
    else:
        # Lanes load four terms of a row at once, all of them the same ones, and columns that lie beside each other.
        gates = launch.sums[0][1]
        passes = code.adds / (4 * size.columns * gates) + code.adds / size.rows
    stored = max(1, each_row * each_column / (4 * 32 * size.warps))
    return Work(blocks, rounds, passes, steps, copied / steps, stored, size.stages - 1, size.warps)


def work_of_resident(launch, size, rows, thread_rows=1):
    """Of `ragged.tiles` whose weights stay in shared memory, in blocks of a size, with `thread_rows` rows per thread."""
    gates = launch.sums[0][1]
    block_rows = thread_rows * size.single_rows
    blocks = math.ceil(rows / block_rows) * (launch.columns // size.columns)
    steps = sum(terms for terms, _ in launch.sums) / size.terms
    # Lanes load four terms of a row or a column at once.
    passes = thread_rows * max(1, size.rows_of_warp / 8) + gates * max(1, size.columns_of_warp / 8)
    return Work(blocks, steps, size.terms / 4 * passes, steps, 4 * block_rows * size.terms, 1, size.stages - 1)


def panels_seconds(card, launch, size, work, slots):
    """What it takes once a flush until all blocks have their weights."""
    beside = min(math.ceil(work.blocks / card.processors), slots)
    words = size.columns * launch.terms
    rate = min(card.processor_rate, card.l2_rate / min(card.processors, work.blocks) / card.clock)
    cycles = max(4 * words / rate, PANEL_INSTRUCTIONS * words / THREADS)
    return (card.l2_latency + beside * cycles) / card.clock


def work_of_calls(launch, code, rows, calls, mean_keys):
    """Of a softmax between products; blocks and steps are half of one more on average than would be full."""
    blocks = rows / launch.block_rows + calls / 2
    columns = min(launch.columns, 64)
    parts = math.ceil(launch.columns / columns)
    each = launch.sums[0][0] + columns
    steps = mean_keys / launch.keys + 0.5
    rounds = steps * launch.block_rows * launch.keys * each / WARPS / (code.adds * code.macs)
    passes = len(code.loads) if code.macs == 32 else sum(code.loads) / 4
    return Work(parts * blocks, rounds, passes, steps, 4 * launch.keys * each, 1)


def together(card, code, warps=WARPS):
    """Blocks of so many warps that are on a processor at once: registers are given to warps by 256, shared memory to
    blocks."""
    of_warp = math.ceil(code.registers * 32 / 256) * 256
    by_registers = card.registers // of_warp // warps
    return min(card.blocks, 64 // warps, by_registers, card.shared // (code.shared + card.reserved))


def round_cycles(card, code, work, beside, mma):
    """What a round takes where so many blocks are beside each other, and why."""
    alone = code.instructions + card.shared_latency
    latency = card.mma_latency if code.macs > 32 else 0
    if code.is_grouped:
        # The operations of a step are one behind another.
        latency = code.adds * card.group_latency
    options = {
        "instructions": beside * work.of_scheduler * code.instructions,
        "shared memory": beside * work.warps * work.passes,
        "latency": alone + latency,
        "tensor cores": beside * work.of_scheduler * code.adds * mma,
    }
    reason = max(options, key=options.get)
    return options[reason], reason


def block_cycles(card, work, code, beside, rate, mma, looked_up):
    """What blocks beside each other take from their beginning to their end, by reason; `rate` is the bytes a cycle that
    come to the processor, `mma` the cycles of an operation of tensor cores, `looked_up` the loads before a block begins."""
    of_round, reason = round_cycles(card, code, work, beside, mma)
    of_step = beside * work.of_scheduler * code.of_step
    options = {
        reason: work.rounds / work.steps * of_round + of_step + card.block_barrier,
        "second cache": beside * work.step_bytes / rate,
        "copies": (card.l2_latency + work.step_bytes / rate) / work.ahead,
    }
    reason = max(options, key=options.get)
    once = max(beside * work.of_scheduler, card.once_cycles) * (code.once + work.stored * code.stored)
    return {reason: work.steps * options[reason], "beginnings and ends": (looked_up + code.begins) * card.l2_latency + once}


def launch_seconds(card, launch, code, work, slots, precision, again=0, looked_up=0):
    """The seconds of a launch of tiles or calls by reason, where so many blocks fit on a processor; without what its
    beginning costs. Blocks behind the first ones wait for so many loads `again` before they begin, the first for those
    that are `looked_up`."""
    clock = card.clock if code.macs == 32 else card.tensor_clock
    busy = min(card.processors, work.blocks)
    rate = min(card.processor_rate, card.l2_rate / busy / clock)
    peak = getattr(card, precision) / (2 * card.processors * 4 * clock)
    reached = card.group_share if code.is_grouped else card.mma_share
    mma = 0 if code.macs == 32 else code.macs / peak / reached
    left, spent = math.ceil(work.blocks / card.processors), {}
    while left > 0:
        beside = min(left, slots)
        # All that are full take as long, but for the first.
        times = max(1, left // slots) if looked_up or not again else 1
        for reason, cycles in block_cycles(card, work, code, beside, rate, mma, looked_up).items():
            spent[reason] = spent.get(reason, 0) + times * cycles / clock
        left -= times * beside
        looked_up = again
    return spent


def rows_seconds(card, launch, code, rows, slots, again=0):
    """The same of a launch over whole rows, whose stages wait for each other."""
    blocks = math.ceil(rows / launch.block_rows)
    turns = math.ceil(blocks / card.processors / slots)
    stages = launch.stages * (card.l2_latency + card.block_barrier)
    cycles = turns * (BEGINS * card.l2_latency + stages + card.once_cycles * (code.once + code.stored))
    cycles += (turns - 1) * again * card.l2_latency
    bytes_seconds = rows * launch.row_bytes / card.l2_rate
    reason = "second cache" if bytes_seconds > cycles / card.clock else "beginnings and ends"
    return {reason: max(bytes_seconds, cycles / card.clock)}


def with_memory(card, launch, rows, spent):
    """The seconds of a launch, or of the card's memory where rows and weights are more than the second cache holds."""
    moved = rows * launch.row_bytes + launch.weight_bytes
    seconds = moved / (card.memory_rate * card.memory_share)
    return {"memory": seconds} if moved > card.l2_bytes and seconds > sum(spent.values()) else spent
