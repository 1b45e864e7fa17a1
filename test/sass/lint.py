"""Reads the machine code of a GPU as `nvdisasm -c` prints it, and says what is wrong or slow in it.

    nvdisasm -c code.cubin | python3 test/sass/lint.py NAME TARGET --budget test/sass/budget.txt [--update]

Three things are looked at, for each kernel:

- **Convergence.** All threads of a block reach a barrier or none does. A branch is *divergent* when its condition
  can differ between the threads of a block: when it is made of the thread's number, or of what was written where
  such a branch parted them (the analysis of GPUs' compilers; see Coutinho et al., "Divergence analysis and
  optimizations", 2011). A barrier between a divergent branch and the place where all ways from it meet again, or
  behind an exit that only some threads take, is an error.
- **Local memory.** A kernel that spills loads and stores it; none may.
- **Inner loops.** How many multiply-adds there are for each load, in the innermost loop of a product that has the
  most of them.
  With a budget the ratio may not fall below the one that is stored there. Registers are ptxas' to tell, on the
  command line as `--registers KERNEL=N`, and may not rise above it.
"""

import argparse
import re
import sys
from dataclasses import dataclass, field

# Where registers lie in a set of them, an int of bits: R0 to R254, P0 to P6, UR0 to UR62, UP0 to UP6.
BASE = {"R": 0, "P": 256, "UR": 264, "UP": 328}
ALL = (1 << 340) - 1
NONE = {"RZ", "PT", "URZ", "UPT", "SRZ"}
REGISTER = re.compile(r"(?<![\w.])([!~|-]*)(UR|UP|R|P)(\d+)((?:\.\w+)*)")
# What differs between the threads of a block.
OF_A_THREAD = re.compile(r"SR_(TID|LANEID|LANEMASK|CLOCK|VIRTID|EQMASK|LTMASK|LEMASK|GTMASK|GEMASK)|^ELECT\b")
# What writes no register, by name.
STORES = {"ST", "STG", "STS", "STL", "RED", "REDG", "REDS", "BAR", "BRA", "BRX", "JMP", "EXIT", "MEMBAR", "FENCE"}
STORES |= {"BSSY", "BSYNC", "BREAK", "WARPSYNC", "LDGSTS", "LDGDEPBAR", "DEPBAR", "ERRBAR", "CGAERRBAR", "CCTL"}
# Barriers of a block, and both halves of a cluster's.
BARRIERS = {"BAR", "UCGABAR_ARV", "UCGABAR_WAIT"}
STORES |= BARRIERS
STORES |= {"NOP", "YIELD", "CALL", "RET", "UBLKCP", "NANOSLEEP"}
MULTIPLY_ADDS = re.compile(r"(FFMA|HMMA|HGMMA|IMMA)")
LOADS = re.compile(r"(LDS|LDSM|LDG|LD)$")


@dataclass
class Instruction:
    """One line: `@P0 LDS.128 R4, [R2+0x10]`."""

    place: int
    guard: int  # The registers of its predicate.
    code: str
    text: str
    reads: int = 0
    writes: int = 0
    targets: tuple = ()
    calls: str = ""

    @property
    def name(self):
        return self.code.split(".")[0]


@dataclass
class Block:
    """Instructions that run one after another, and where it goes on from them."""

    instructions: list
    next: list = field(default_factory=list)


def bit(kind, number, count=1):
    """The set of some registers that lie beside each other."""
    return ((1 << count) - 1) << (BASE[kind] + number)


def registers(text, count=1):
    """The registers that a piece of text names; those of 64 bits are two."""
    found = 0
    for _, kind, number, kinds in REGISTER.findall(text):
        wide = max(count, 2 if kind in ("R", "UR") and ".64" in kinds else 1)
        found |= bit(kind, int(number), wide if kind in ("R", "UR") else 1)
    return found


def widths(code):
    """How many registers the result of an instruction has, and how many each of its operands: the last says it for all
    that follow."""
    name, *kinds = code.split(".")
    wide = [2 if kind in ("U64", "S64", "F64") else 1 for kind in kinds]
    if name == "HMMA" or "128" in kinds or name == "LDSM" and kinds[-1] == "4":
        return 4, (4,)
    # One kind of number becomes another: `F2I.U64.F64`, where 32 bits are not written.
    if name in ("F2I", "I2F", "F2F", "I2I"):
        given, taken = {"F": "F", "I": "US"}[name[2]], {"F": "F", "I": "US"}[name[0]]
        of = [(kind[0], width) for kind, width in zip(kinds, wide, strict=True) if re.fullmatch(r"[USF]\d+", kind)]
        result = next((width for letter, width in of if letter in given), 1)
        # Where both are of a kind, the result's comes first.
        others = of[1:] if name in ("F2F", "I2I") else of
        return result, (next((width for letter, width in others if letter in taken), 1),)
    if "WIDE" in kinds:
        return 2, (1, 1, 2)
    if name in ("IMAD", "UIMAD") and "HI" in kinds:
        return 1, (1, 1, 2)
    if name == "CS2R":
        return (1 if "32" in kinds else 2), (1,)
    if re.fullmatch(r"U?[ID]SETP", name):
        return 1, (2 if name == "DSETP" or 2 in wide else 1,)
    if name in ("DADD", "DMUL", "DFMA", "DMMA", "DMNMX") or name == "FRND" and "F64" in kinds:
        return 2, (2,)
    if "64" in kinds or name == "LDSM" and kinds[-1] == "2":
        return 2, (2,)
    return 1, (1,)


def instruction(place, line):
    """Reads one line of code, without its place."""
    line = line.split(";")[0].strip()
    guard = 0
    if found := re.match(r"@(!?U?P\w+)\s+(.*)", line):
        guard, line = registers(found[1]), found[2]
    branches = re.search(r"BRANCH_TARGETS ([^\"]*)\"", line)
    code, _, operands = line.partition(" ")
    operands = operands.split("(*")[0]
    made = Instruction(place, guard, code, line)
    if branches:
        made.targets = tuple(label.strip() for label in branches[1].split(","))
    elif named := re.search(r"`\(([^)]*)\)", operands):
        # Functions are called by their names; a call of a mere place is a jump, from which nothing comes back.
        if code.startswith("CALL") and not named[1].startswith(".L"):
            made.calls = named[1]
        elif code.startswith(("BRA", "CALL")):
            made.targets = (named[1],)
        operands = operands.replace(named[0], "")
    parts = [part.strip() for part in operands.split(",") if part.strip()]
    result, factors = widths(code)
    writing = made.name not in STORES
    if made.name in ("R2P", "R2UP"):  # All predicates, from bits of a register.
        made.writes, parts, writing = bit(made.name[2:], 0, 7), parts[1:], False
    elif made.name in ("P2R", "P2UR"):
        made.reads = bit("P" if made.name == "P2R" else "UP", 0, 7)
    # Results come first: a register, and predicates before or behind it. A predicate of a comparison comes in pairs, and
    # behind what a warp votes for is what each thread says: `VOTE.ANY R3, PT, P0`, `VOTE.ANY P1, P0`.
    compares = re.match(r"U?(\w?SETP|PLOP3|FCHK)", made.name)
    most = 2 if compares or made.name in ("VOTE", "VOTEU", "ELECT") else 3
    if made.name.startswith("VOTE") and re.match(r"U?P", parts[0]):
        most = 1
    done, results = False, 0
    while writing and results < min(most, len(parts)):
        part = parts[results]
        if re.fullmatch(r"U?P(\d|T)", part):
            made.writes |= registers(part)
        elif re.fullmatch(r"U?R(\d+|Z)(\.\w+)*", part) and not done and not compares:
            made.writes |= registers(part, result) if part not in NONE else 0
            done = True
        else:
            break
        results += 1
    for index, part in enumerate(parts[results:]):
        # An address says itself how wide it is.
        wide = 1 if "[" in part else factors[min(index, len(factors) - 1)]
        made.reads |= registers(part, wide)
    return made


@dataclass
class Kernel:
    """A function of the cubin: its lines, and where its labels are."""

    name: str
    lines: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)

    def blocks(self):
        """Cuts the lines into blocks by their index; -1 is behind the end."""
        starts = {0, *self.labels.values()}
        for index, line in enumerate(self.lines):
            if line.name in ("BRA", "BRX", "EXIT", "RET", "CALL"):
                starts.add(index + 1)
        starts = sorted(start for start in starts if start < len(self.lines))
        found = {}
        for start, end in zip(starts, [*starts[1:], len(self.lines)], strict=True):
            lines = self.lines[start:end]
            last, block = lines[-1], Block(lines)
            ends = last.name in ("EXIT", "RET")
            if ends or last.targets:
                block.next += [self.labels[label] for label in last.targets if label in self.labels]
                if ends:
                    block.next.append(-1)
                # `BRA.DIV` and a branch by a uniform predicate have it among their operands.
                if last.guard or last.reads and last.name == "BRA":
                    block.next.append(end)
            else:
                block.next.append(end if end < len(self.lines) else -1)
            found[start] = block
        return found


def kernels(text):
    """The functions that a text has."""
    found, pending = [], []
    for line in text.splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line):
            found.append(Kernel(section[1]))
            pending = []
        elif not found:
            continue
        elif code := re.match(r"\s+/\*([0-9a-f]+)\*/\s+(.*)", line):
            for label in pending:
                found[-1].labels[label] = len(found[-1].lines)
            pending = []
            found[-1].lines.append(instruction(int(code[1], 16), code[2]))
        elif label := re.match(r"\s*([.$\w]+):", line):
            pending.append(label[1])
    return found


def reachable(blocks, start, without=None):
    """The blocks that some are followed by, themselves included, on ways that avoid one."""
    found, open_ = set(), [block for block in start if block != without]
    while open_:
        at = open_.pop()
        if at == -1 or at in found:
            continue
        found.add(at)
        open_ += [after for after in blocks[at].next if after != without]
    return found


def meeting_places(blocks):
    """For each block the first one that all ways from it come to: its immediate post-dominator."""
    order, seen = [], set()
    before = {at: [] for at in (*blocks, -1)}
    for at, block in blocks.items():
        for after in block.next:
            before[after].append(at)
    stack = [(-1, iter(before[-1]))]
    seen.add(-1)
    while stack:  # Depth first over the reversed graph.
        at, others = stack[-1]
        other = next((one for one in others if one not in seen), None)
        if other is None:
            order.append(at)
            stack.pop()
        else:
            seen.add(other)
            stack.append((other, iter(before[other])))
    rank = {at: index for index, at in enumerate(order)}
    meets, changed = {-1: -1}, True
    while changed:  # Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm", 2001.
        changed = False
        for at in reversed(order[:-1]):
            new = None
            for after in blocks[at].next:
                if after not in meets:
                    continue
                other = after
                while new is not None and new != other:
                    while rank[new] < rank[other]:
                        new = meets[new]
                    while rank[other] < rank[new]:
                        other = meets[other]
                new = other
            if new is not None and meets.get(at) != new:
                meets[at], changed = new, True
    return meets


class Divergence:
    """Which registers can differ between the threads of a block, at each place of a function."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.blocks = kernel.blocks()
        self.meets = meeting_places(self.blocks)
        # Of functions that are called: the registers that they use and write, and what differs behind them by what did
        # before.
        self.touched, self.results = {}, {}

    def step(self, line, differs):
        """What differs behind an instruction."""
        if line.calls:
            return self.of_call(line.calls, differs)
        made = bool((line.reads | line.guard) & differs) or bool(OF_A_THREAD.search(line.text))
        # Other threads may write meanwhile what is read so, and an atomic gives each thread another result.
        made = made or ".STRONG" in line.code or line.name.startswith("ATOM")
        if made:
            return differs | line.writes
        # Where it does not run, what was there stays.
        return differs if line.guard else differs & ~line.writes

    def registers_of(self, label):
        """The registers that the function at a label and those that it calls use, and those that they write."""
        start = self.kernel.labels.get(label)
        if start is None:
            return ALL, ALL
        if label not in self.touched:
            self.touched[label] = used, written = 0, 0  # For one that calls itself.
            for at in reachable(self.blocks, [start]):
                for line in self.blocks[at].instructions:
                    inner = self.registers_of(line.calls) if line.calls else (0, 0)
                    used |= line.reads | line.guard | line.writes | inner[0]
                    written |= line.writes | inner[1]
            self.touched[label] = used, written
        return self.touched[label]

    def of_call(self, label, differs):
        """What differs behind the function at a label, which is called with that."""
        start = self.kernel.labels.get(label)
        if start is None:
            return ALL
        used, _ = self.registers_of(label)
        key = start, differs & used
        if key not in self.results:
            self.results[key] = differs & used  # For one that calls itself.
            self.results[key] = self.run(*key)[1].get(-1, differs & used)
        return self.results[key] | differs & ~used

    def run(self, start, differs):
        """The blocks that end by a divergent branch, and what differs where blocks begin, from a start on."""
        states, divergent, regions = {start: differs}, set(), {}
        open_ = {start}
        while open_:
            at = min(open_)  # In the order of the code few blocks are looked at twice.
            open_.remove(at)
            if at == -1:
                continue
            block, state = self.blocks[at], states[at]
            for line in block.instructions[:-1]:
                state = self.step(line, state)
            last = block.instructions[-1]
            after = self.step(last, state)
            goes = dict.fromkeys(block.next)
            asked = last.guard | (last.reads if last.name in ("BRA", "BRX") else 0)
            if len(goes) > 1 and asked & state and at not in divergent:
                divergent.add(at)
                meet = self.meets.get(at, -1)
                region = reachable(self.blocks, goes, meet)
                written = 0
                for inner in region:
                    for line in self.blocks[inner].instructions:
                        written |= self.registers_of(line.calls)[1] if line.calls else line.writes
                regions[meet] = regions.get(meet, 0) | written
                if meet in states:
                    states[meet] |= written
                    open_.add(meet)
            for to in goes:
                new = states.get(to, 0) | after | regions.get(to, 0)
                if to not in states or new != states[to]:
                    states[to] = new
                    open_.add(to)
        return divergent, states

    def faults(self):
        """Barriers that only some threads of a block may come to."""
        divergent, states = self.run(0, 0)
        for at in sorted(divergent):
            meet = self.meets.get(at, -1)
            last = self.blocks[at].instructions[-1]
            # Where ways meet at the end only, what some threads leave out is all that follows.
            for inner in sorted(reachable(self.blocks, self.blocks[at].next, meet)):
                for line in self.blocks[inner].instructions:
                    if line.name in BARRIERS:
                        yield f"barrier at {line.place:#x} behind a divergent branch at {last.place:#x}: {last.text}"
        for at, state in states.items():
            if at == -1:
                continue
            for line in self.blocks[at].instructions:
                if line.name in BARRIERS and line.guard & state:
                    yield f"barrier at {line.place:#x} runs for some threads: {line.text}"
                state = self.step(line, state)


def loops_of(kernel):
    """The first and the last line of each loop."""
    found = []
    for index, line in enumerate(kernel.lines):
        for label in line.targets:
            start = kernel.labels.get(label)
            if line.name == "BRA" and start is not None and start <= index:
                found.append((start, index))
    return found


def product_loop(kernel):
    """The lines of the innermost loop with the most multiply-adds; none where no loop has any.

    A loop of activations has many of them too, for polynomials, and asks the unit of special functions beside, or
    stores in global memory what it computes: it counts only where there is no other.
    """
    loops = loops_of(kernel)
    best, found = (False, 0, 0), []
    for start, end in loops:
        if any((start, end) != other and start <= other[0] and other[1] <= end for other in loops):
            continue
        lines = kernel.lines[start : end + 1]
        adds, loads = count(lines)
        is_product = adds > 0 and not any(line.name in ("MUFU", "STG") for line in lines)
        if (is_product, adds, loads) > best:
            best, found = (is_product, adds, loads), lines
    return found


def count(lines):
    """Multiply-adds and loads among some lines."""
    adds = sum(bool(MULTIPLY_ADDS.match(line.name)) and "HFMA2" not in line.name for line in lines)
    return adds, sum(bool(LOADS.match(line.name)) for line in lines)


def inner_loop(kernel):
    """Multiply-adds and loads of the loop of the product."""
    return count(product_loop(kernel))


def read_budget(path):
    """What each kernel may use, by program, target and kernel."""
    budget = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                program, target, kernel, used, ratio = line.split()
                budget[program, target, kernel] = (int(used), float(ratio))
    return budget


HEAD = """\
# What the kernels of two programs of a serious size use, by target: at most so many registers, and at least so many
# multiply-adds a load in the inner loop. `test/gpu-code.sh --update` writes it anew, which a change has to justify.
"""


def write_budget(path, budget):
    """Writes it in a fixed order."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD)
        for (program, target, kernel), (used, ratio) in sorted(budget.items()):
            file.write(f"{program} {target} {kernel} {used} {ratio:.2f}\n")


def main():
    """Prints what is wrong, a line each, and ends with 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the name of the program")
    parser.add_argument("target", help="the architecture and precision, sm_90:f32")
    parser.add_argument("--budget", help="the file with what kernels may use; without, they may use anything")
    parser.add_argument("--registers", nargs="*", default=[], help="how many a kernel uses, KERNEL=N")
    parser.add_argument("--update", action="store_true", help="store what is used as the budget")
    options = parser.parse_args()
    used = {name: int(count) for name, count in (pair.rsplit("=", 1) for pair in options.registers)}
    budget = read_budget(options.budget) if options.budget else {}
    found = kernels(sys.stdin.read())
    wrong = [] if found else ["no code"]
    for kernel in found:
        wrong += [f"{kernel.name}: {fault}" for fault in Divergence(kernel).faults()]
        local = [line for line in kernel.lines if line.name in ("LDL", "STL")]
        wrong += [f"{kernel.name}: local memory at {line.place:#x}: {line.text}" for line in local[:1]]
        if not options.budget:
            continue
        adds, loads = inner_loop(kernel)
        ratio = round(adds / max(loads, 1), 2)
        key = (options.program, options.target, kernel.name)
        if options.update:
            budget[key] = (used[kernel.name], ratio)
        elif key not in budget:
            wrong.append(f"{kernel.name}: has no budget")
        else:
            most, least = budget[key]
            if used[kernel.name] > most:
                wrong.append(f"{kernel.name}: {used[kernel.name]} registers, more than {most}")
            if ratio < least:
                wrong.append(f"{kernel.name}: {ratio} multiply-adds a load in the inner loop, fewer than {least}")
    if options.update:
        gone = (options.program, options.target)
        names = {kernel.name for kernel in found}
        budget = {key: value for key, value in budget.items() if key[:2] != gone or key[2] in names}
        write_budget(options.budget, budget)
    print("\n".join(wrong), end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
