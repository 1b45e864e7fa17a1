"""What the compiler plans for a card, read from what tools print: launches and their tiles from `batch-opt
--emit=loops` (docs/dialect-ragged.md has the syntax), instructions of their functions from NVIDIA's assembler and
disassembler. Nothing here needs a GPU.
"""

import math
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "test" / "sass"))
from lint import count, kernels, loops_of, product_loop, reachable  # noqa: E402

# The function that runs a flush, and the one in whose place it is where a card has clusters, of so many blocks.
FLUSH = "cohort_flush"
CLUSTERS = "cohort_flush_clusters"
CLUSTER_BLOCKS = 16
WARPS = 4
THREADS = 32 * WARPS
# Terms of a buffer where warpgroups multiply.
GROUP_TERMS = 64
# Bytes of an element, and of a weight that was rounded when it was loaded.
BYTES = {"f32": 4, "i32": 4, "i1": 1}
ROUNDED = {"": 4, "tf32": 4, "bf16": 2}


@dataclass
class Size:
    """A size of a tile: rows and columns of a thread, terms of a buffer, warps side by side; warps of a block, and
    buffers, of which one is multiplied while the others are filled."""

    rows: int
    columns: int
    depth: int
    across: int
    warps: int = WARPS
    stages: int = 2
    rounded: str = ""
    held: bool = False  # Whether weights stay in shared memory, and blocks go on from rows to rows.

    @property
    def block_rows(self):
        return self.warps // self.across * 8 * self.rows if self.rounded else self.warps * self.rows

    @property
    def block_columns(self):
        return self.across * 4 * self.columns if self.rounded else 32 * self.columns


@dataclass
class Resident:
    """A size whose weights stay in shared memory: columns of a block, terms of rows in a buffer, and buffers."""

    columns: int
    terms: int
    stages: int
    held_at: int = 0  # Bytes of shared memory before the weights.
    thread_rows: int = 1  # Most rows of a thread.

    @property
    def columns_of_warp(self):
        return min(self.columns, 8)

    @property
    def rows_of_warp(self):
        return 32 // self.columns_of_warp

    @property
    def single_rows(self):
        return THREADS // self.columns

    @property
    def rows(self):
        return self.thread_rows * self.single_rows


@dataclass
class Launch:
    """A launch of a kernel: `ragged.tiles`, `ragged.blocks`, or a stage over calls."""

    name: str  # Of its function, without the size of the tile.
    kind: str  # `tiles`, `blocks` or `calls`.
    beside: bool  # Of a wave, and not its first.
    # Of tiles: sizes by the end of their functions' names, and rows of the kernel from which on each is taken, in order.
    sizes: dict = field(default_factory=dict)
    starts: dict = field(default_factory=dict)
    columns: int = 0
    sums: list = field(default_factory=list)  # Of each sum: terms, and products side by side.
    # Of blocks: rows of one, and stages with barriers between them.
    block_rows: int = 0
    stages: int = 0
    # Of calls: keys of a step. Its sum is a score's, and columns are of what is weighted.
    keys: int = 0
    row_bytes: int = 0  # What a row has in the device's memory.
    weight: int = BYTES["f32"]  # Bytes of a weight.
    row: int = BYTES["f32"]  # Bytes of an element of the rows that are multiplied.
    resident: Resident = None  # Of tiles: instead of the small size, in a flush that is one launch,
    clustered: Resident = None  # and in one whose blocks form clusters.
    wave_columns: int = 0  # Blocks of columns of all launches of its wave that go on from rows to rows.

    @property
    def goes_on(self):
        """Whether its blocks go on from rows to rows where warpgroups multiply."""
        return "_warpgroups" in self.sizes and self.sizes["_warpgroups"].held

    def column_blocks(self, end):
        return math.ceil(self.columns / self.sizes[end].block_columns)

    @property
    def terms(self):
        """Terms of all sums of a column together."""
        return sum(terms * gates for terms, gates in self.sums)

    @property
    def weight_bytes(self):
        return self.terms * self.columns * self.weight if self.kind == "tiles" else 0


@dataclass
class Kernel:
    """The launches of a kernel, and what a row of its operands and results has together."""

    launches: list = field(default_factory=list)
    row_bytes: int = 0


def numbers(text):
    return [int(part) for part in text.split(",") if part.strip()]


def read_kernels(text):
    """The kernels by name of the `gpu.module` of a module at the loop level."""
    lines = iter(text.splitlines())
    if not any(line.lstrip().startswith("gpu.module") for line in lines):
        raise ValueError("there is no gpu.module")
    found, kernel, memory, kept, wave = {}, None, {}, set(), 0
    for line in lines:
        word = line.strip()
        if line.startswith("  }"):
            break
        if named := re.match(r"ragged\.kernel @([\w$.]+)", word):
            name, kernel, memory, kept = named[1], Kernel(), {}, set()
            found[name] = kernel
        elif declared := re.match(r"(%\w+) = ragged\.(operand|result|scratch)\b(.*) : memref<(.*)>", word):
            if "on_chip" not in declared[3]:
                *dims, element = declared[4].split("x")
                is_kept = " bf16" in declared[3]
                size = math.prod(int(dim) for dim in dims if dim != "?") * (2 if is_kept else BYTES[element])
                if is_kept:
                    kept.add(declared[1])
                memory[declared[1]] = size
                kernel.row_bytes += size * (declared[2] != "scratch")
        elif word.startswith("ragged.wave"):
            wave = 1
        elif word == "}":
            wave = 0
        elif begun := re.match(r"ragged\.(tiles|blocks|online_softmax)\b", word):
            body = list(block_of(line, lines))
            launch = read_launch(f"{name}${len(kernel.launches)}", begun[1], word, body, memory)
            multiplied = re.findall(r"ragged\.products (%\w+)", "\n".join(body))
            launch.row = 2 if multiplied and set(multiplied) <= kept else launch.row
            launch.beside = wave > 1
            wave += wave > 0
            kernel.launches.append(launch)
    for kernel in found.values():
        share_processors(kernel.launches)
    return found


def share_processors(launches):
    """Tells launches that go on from rows to rows with how many blocks of columns they share the card's processors."""
    waves = []
    for launch in launches:
        if launch.beside and waves:
            waves[-1].append(launch)
        else:
            waves.append([launch])
    for wave in waves:
        columns = [launch.column_blocks("_warpgroups") for launch in wave if launch.goes_on]
        for launch in wave:
            launch.wave_columns = sum(columns) if launch.goes_on else 0


def block_of(first, lines):
    """The lines up to the brace that ends what a line began."""
    indent = re.match(" *", first)[0]
    for line in lines:
        if line == f"{indent}}}":
            return
        yield line


def read_launch(name, kind, head, body, memory):
    """A launch from its first line and those within it."""
    touched = set(re.findall(r"%\w+", "\n".join([head, *body]))) & set(memory)
    row_bytes = sum(memory[one] for one in touched)
    if kind == "blocks":
        stages = sum(bool(re.match(r"\s*ragged\.(nest|fold|loops)", line)) for line in body)
        rows = int(re.search(r"blocks of (\d+)", head)[1])
        return Launch(name, kind, False, block_rows=rows, stages=stages, row_bytes=row_bytes)
    if kind == "online_softmax":
        found = re.search(r"(\d+)\] keys \[@[\w.]+\] depth (\d+) blocks \[(\d+), (\d+)\]", head)
        columns, depth, rows, keys = (int(number) for number in found.groups())
        sizes = {"columns": columns, "sums": [(depth, 1)], "block_rows": rows, "keys": keys}
        return Launch(name, "calls", False, row_bytes=row_bytes, **sizes)
    rounded = found[1] if (found := re.search(r" rounded (\w+)", head)) else ""
    sizes, starts = {}, {}
    for of, size, start in re.findall(r" (small|large|largest) \[([\d, ]+)\](?: from (\d+))?", head):
        sizes[f"_{of}"] = Size(*numbers(size), rounded=rounded)
        starts[f"_{of}"] = int(start or 0)
    if found := re.search(r" warpgroups \[([\d, ]+)\] from (\d+)", head):
        groups, columns, stages = numbers(found[1])
        held = bool(re.search(r" from \d+ held", head))
        sizes["_warpgroups"] = Size(2, columns // 4, GROUP_TERMS, 1, WARPS * groups, stages, rounded, held)
        starts["_warpgroups"] = int(found[2])
    columns = numbers(re.search(r"over \[([\d, ]*)\]", head)[1])[-1]
    sums = [
        (int(terms), len(numbers(gates)))
        for terms, gates in re.findall(r"ragged\.products .* k (\d+) columns \d+ gates \[([\d, ]+)\]", "\n".join(body))
    ]
    weight = ROUNDED[rounded if "weights" in head else ""]
    held = {name: re.search(rf" {name} \[([\d, ]+)\]", head) for name in ("resident", "clustered")}
    held = {name: Resident(*numbers(found[1])) if found else None for name, found in held.items()}
    if held["clustered"] and 2 * columns > CLUSTER_BLOCKS * held["clustered"].columns:
        held["clustered"].thread_rows = 2
    about = {"row_bytes": row_bytes, "weight": weight, **held}
    return Launch(name, kind, False, sizes, starts, columns, sums, **about)


@dataclass
class Code:
    """A function's instructions. A *round* is one of its product's innermost loop, a *step* copies to shared memory
    and has some rounds; what is in no step runs once, or in a loop over what is stored."""

    registers: int
    shared: int  # Bytes a block.
    instructions: int  # Of a round.
    adds: int  # Multiply-adds of a round, of a warp.
    macs: int  # Multiply-adds of numbers that one of these makes: 32 for a warp's lanes.
    loads: list  # Bytes that each load of a round gives a lane.
    of_step: int  # Instructions of a step beside its rounds; 0 where a step is a round.
    once: int
    stored: int  # Of the largest loop that is no step.
    begins: int  # Loads from the device's memory outside of steps that wait for each other.
    is_grouped: bool = False  # Whether warpgroups multiply.
    of_tile: int = 0  # Of the loop over tiles that the steps are in, beside the loops in it.


def width(code):
    """Bytes that a load gives a lane."""
    return int(found[1]) // 8 if (found := re.search(r"\.(64|128)\b", code)) else 4


def macs_of(lines):
    """Multiply-adds of numbers that an instruction of a warp makes."""
    shapes = (re.match(r"HG?MMA\.(16|64x)(8|\d+x)(8|16)\b", line.code) for line in lines)
    shape = next((shape for shape in shapes if shape), None)
    rows, columns, terms = (int(size.strip("x")) for size in shape.groups()) if shape else (32, 1, 1)
    return rows * columns * terms // (WARPS if rows == 64 else 1)


def read_code(kernel, registers, shared):
    """A function's instructions as the model counts them."""
    lines = product_loop(kernel)
    # Beside tensor cores, lanes compute what is made of sums.
    adds = sum(line.name in ("HMMA", "HGMMA") for line in lines) or count(lines)[0]
    loads = [width(line.code) for line in lines if line.name in ("LDS", "LDSM") and "RZ, [RZ]" not in line.text]
    is_grouped = any(line.name == "HGMMA" for line in lines)
    loops = [(start, end, kernel.lines[start : end + 1]) for start, end in loops_of(kernel)]
    steps = [loop for loop in loops if any(line.name == "BAR" for line in loop[2])]
    # The innermost ones: attention goes over its keys again where some are masked.
    steps = [one for one in steps if not any(other != one and within(other, one) for other in steps)]
    around = next((step for step in steps if lines and lines[0] in step[2]), None)
    inside = [loop for loop in loops if around and loop != around and within(loop, around)]
    of_step = len(around[2]) - sum(len(loop[2]) for loop in inside) if inside else 0
    rest = [loop for loop in loops if not any(within(loop, step) or within(step, loop) for step in steps)]
    tiles = [loop for loop in loops if around and loop != around and within(around, loop)]
    tiles = min(tiles, key=lambda loop: len(loop[2]), default=None)
    if tiles:
        # What is stored of a tile.
        rest = [loop for loop in loops if loop != tiles and within(loop, tiles) and not within(around, loop)]
        rest = [loop for loop in rest if not any(other != loop and within(loop, other) for other in rest)]
    of_tile = len(tiles[2]) - len(around[2]) - sum(len(loop[2]) for loop in rest) if tiles else 0
    stored = max((len(loop[2]) for loop in rest), default=0)
    once = len(kernel.lines) - sum(len(step[2]) for step in steps) - stored
    begins = waits_outside(kernel, steps)
    macs = macs_of(lines)
    return Code(registers, shared, len(lines), adds, macs, loads, of_step, once, stored, begins, is_grouped, of_tile)


def waits_outside(kernel, loops, panels=0, run=None):
    """Loads from the device's memory that wait for each other, as addresses are loaded too, in what is outside of these loops:
    before the first, between two, and behind the last, where all that was loaded before is there. What the first instructions,
    so many, copy are weights that stay. If they are given, only some instructions are `run`."""
    inside = {at for start, end, _ in loops for at in range(start, end + 1)}
    waits, behind, longest = 0, {}, 0
    for at, line in enumerate(kernel.lines):
        if run is not None and at not in run:
            continue
        if at in inside:
            waits, behind, longest = waits + longest, {}, 0
            continue
        depth = max((behind.get(register, 0) for register in bits_of(line.reads)), default=0)
        if line.name == "LDG" or line.name == "LDGSTS" and at >= panels:
            depth += 1
            longest = max(longest, depth)
        for register in bits_of(line.writes):
            behind[register] = depth
    return waits + longest


def bits_of(registers):
    """The numbers of a set's bits."""
    while registers:
        yield (registers & -registers).bit_length() - 1
        registers &= registers - 1


def read_resident(kernel, size, launch, registers, shared, thread_rows=1):
    """A function whose weights stay, where its threads have so many rows: a step is a round. What loads the weights, in loops
    before the first step, is no part of what runs once: that is once a flush."""
    adds = size.terms * launch.sums[0][1] * thread_rows
    loops = [(start, end, kernel.lines[start : end + 1]) for start, end in loops_of(kernel)]
    steps = [loop for loop in loops if any(line.name == "BAR" for line in loop[2])]
    own = [step for step in steps if count(step[2])[0] == adds]
    if not own:
        raise ValueError(f"there is no loop of {adds} multiply-adds for {launch.name}")
    first = min(start for start, _, _ in steps)
    weights = [loop for loop in loops if loop[1] < first and any(line.name == "LDGSTS" for line in loop[2])]
    panels = range(weights[0][0], weights[-1][1] + 1) if weights else range(0)
    run = lines_with(kernel, own)
    inside = {at for start, end, _ in steps for at in range(start, end + 1)}
    once = len(run - inside - set(panels))
    lines = own[0][2]
    loads = [width(line.code) for line in lines if line.name == "LDS"]
    begins = waits_outside(kernel, steps, panels.stop, run)
    return Code(registers, shared, len(lines), adds, 32, loads, 0, once, 0, begins)


def lines_with(kernel, loops):
    """The places of all lines that may run when some of these loops do: before, in or behind them."""
    blocks = kernel.blocks()
    inside = {at for at in blocks if any(start <= at <= end for start, end, _ in loops)}
    run = reachable(blocks, inside) | {at for at in blocks if reachable(blocks, [at]) & inside}
    return {place for at in run for place in range(at, at + len(blocks[at].instructions))}


def within(inner, outer):
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def read_shared(text):
    """Shared memory of each function's blocks, of a module with GPU code: what a launch gives is not in the assembler's log."""
    found = re.findall(r'"symbol":"([^"]*)"[^{}]*?"shared_bytes":(\d+)', text.replace(r"\22", '"'))
    return {symbol: int(shared) for symbol, shared in found}


def read_codes(disassembly, log, launches=(), shared=None):
    """The instructions of each function, from `nvdisasm -c` and what `ptxas -v` said, and its shared memory, where that is
    known."""
    used = re.findall(
        r"Compiling entry function '([^']*)'.*?Used (\d+) registers(?:[^\n]*?(\d+) bytes smem)?", log, re.DOTALL
    )
    uses = {name: (int(registers), int(shared or 0)) for name, registers, shared in used}
    found = kernels(disassembly)
    codes = {kernel.name: read_code(kernel, *uses[kernel.name]) for kernel in found}
    for name, code in codes.items():
        code.shared = max(code.shared, (shared or {}).get(name, 0))
    by_name = {kernel.name: kernel for kernel in found}
    for launch in launches:
        for size, end in ((launch.resident, "_resident"), (launch.clustered, "_clustered")):
            name = launch.name + end
            if size and name in by_name:
                for rows in range(1, size.thread_rows + 1):
                    codes[name + "_twice" * (rows - 1)] = read_resident(by_name[name], size, launch, *uses[name], rows)
    return codes
