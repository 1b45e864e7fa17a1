"""The model of a card on plans and code so small that its numbers are found by hand; run by test/python.sh."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest
from gpu_card import (
    H200,
    PANEL_INSTRUCTIONS,
    held_seconds,
    launch_seconds,
    panels_seconds,
    tile_of,
    together,
    with_memory,
    work_of_resident,
    work_of_tiles,
)
from gpu_model import FIGURES, PAGE, Case, comparison, deciding_table, section, whole
from gpu_plan import (
    Code,
    Kernel,
    Launch,
    Resident,
    Size,
    read_code,
    read_kernels,
    read_resident,
    read_shared,
    share_processors,
    waits_outside,
)
from gpu_predict import Counts, in_clusters, predict, read_counts
from lint import kernels, loops_of
from tables import replace_section

PLAN = """module {
  gpu.module @cohort_gpu {
    ragged.kernel @main_0 attributes {sym_visibility = "private"} {
      %0 = ragged.operand row : memref<?x32xf32>
      %1 = ragged.result : memref<?x8x8xf32>
      %2 = ragged.param @w : memref<32x128xf32>
      %3 = ragged.scratch on_chip : memref<?x16xf32>
      ragged.wave {
        ragged.tiles over [64] small [2, 1, 16, 1] large [8, 1, 16, 1] from 512 {
          %5:2 = ragged.products %0 () -> (0) with %2 (d0, d1) -> (d0 * 128 + d1) k 32 columns 128 gates [0, 64]
          ragged.store %5#0, %1 (d0) -> (d0) : memref<?x8x8xf32>
        }
        ragged.tiles over [64] small [2, 2, 32, 4] large [4, 8, 32, 2] from 64 largest [8, 16, 16, 4, 8, 4] from 512 rounded bf16 weights {
          %5 = ragged.products %0 () -> (0) with %2 (d0, d1) -> (d0 * 128 + d1) k 32 columns 128 gates [0]
        }
      }
      ragged.blocks of 2 tile 1 {
        ragged.fold over [64] folding [0] into %3 () -> (0) lanes 0 : memref<?x16xf32> from {
        } by {
          %6 = ragged.load %1 (d0) -> (d0) : memref<?x8x8xf32>
        }
        ragged.nest over [] by 1 {
        }
      }
    }
  }
  ragged.kernel @main_0 {
  }
}
"""


def test_a_plan_is_read():
    (kernel,) = read_kernels(PLAN).values()
    assert kernel.row_bytes == 4 * (32 + 64)
    lanes, tensor, rows = kernel.launches
    assert [launch.name for launch in kernel.launches] == ["main_0$0", "main_0$1", "main_0$2"]
    assert [launch.beside for launch in kernel.launches] == [False, True, False]
    assert (lanes.sums, lanes.terms, lanes.columns, lanes.row_bytes) == ([(32, 2)], 64, 64, 384)
    assert (lanes.weight_bytes, tensor.weight_bytes) == (64 * 64 * 4, 32 * 64 * 2)
    sizes = [size for launch in (lanes, tensor) for size in launch.sizes.values()]
    blocks = [(size.block_rows, size.block_columns) for size in sizes]
    assert blocks == [(8, 32), (32, 32), (16, 32), (64, 64), (128, 256)]
    assert tensor.starts == {"_small": 0, "_large": 64, "_largest": 512}
    ends = [tile_of(tensor, rows)[0] for rows in (1, 63, 64, 511, 512, 10**6)]
    assert ends == ["_small", "_small", "_large", "_large", "_largest", "_largest"]
    assert (rows.kind, rows.block_rows, rows.stages, rows.row_bytes) == ("blocks", 2, 2, 256)


def code_text(*parts):
    """Lines as `nvdisasm` prints them; what begins with a point is a label."""
    lines = (part if part.startswith(".L") else f"        /*0000*/ {part} ;" for part in parts)
    return "\n".join(["        .section .text.one,", *lines])


def test_code_is_counted_by_rounds_and_steps():
    of_round = ["LDS R4, [R5]", "LDS.128 R8, [R5]", "FFMA R0, R1, R2, R0", "FFMA R0, R1, R2, R0", "@P0 BRA `(.L_2)"]
    step = [".L_1:", "BAR.SYNC 0x0", "LDGSTS.E [R6], [R2.64]", ".L_2:", *of_round, "@P1 BRA `(.L_1)"]
    stored = [".L_3:", "MUFU.EX2 R3, R3", "@P2 BRA `(.L_3)"]
    (kernel,) = kernels(code_text("MOV R1, R2", *step, *stored, "EXIT"))
    code = read_code(kernel, 40, 1024)
    assert (code.instructions, code.adds, code.macs, code.loads) == (5, 2, 32, [4, 16])
    assert (code.of_step, code.stored, code.once) == (3, 2, 2)
    of_round = ["HMMA.16816.F32.BF16 R0, R4, R8, R0", "FFMA R0, R1, R2, R0", "FFMA R3, R1, R2, R3"]
    (kernel,) = kernels(code_text(".L_1:", *of_round, "@P0 BRA `(.L_1)"))
    code = read_code(kernel, 40, 1024)
    assert (code.adds, code.macs) == (1, 16 * 8 * 16)


LAUNCH = Launch("k$0", "tiles", False, {"_small": Size(2, 1, 16, 1)}, {"_small": 0}, 64, [(32, 1)], row_bytes=384)
# Of four terms a round: two rows of one column; 100 instructions once, 40 for what is stored.
CODE = Code(64, 8192, 20, 8, 32, [16, 16, 4, 4, 4, 4], 10, 100, 40, 3)
SMALL = {"processors": 2, "clock": 1e9, "shared_latency": 2, "block_barrier": 6, "l2_latency": 50, "l2_rate": 256e9}
CARD = SimpleNamespace(**vars(H200) | SMALL)


def test_a_tile_has_rounds_steps_and_blocks():
    work = work_of_tiles(LAUNCH, LAUNCH.sizes["_small"], 16, CODE)
    # 8 x 32 sums of 32 terms a block, 8 multiply-adds of 32 lanes a round of each of four warps.
    assert (work.blocks, work.rounds, work.steps, work.stored) == (4, 8, 2, 1)
    # Two loads of a row's four terms, and one of 32 columns for each term.
    assert work.passes == 2 + 4
    assert work.step_bytes == 16 * 4 * (8 + 32)


def test_what_takes_longest_of_a_step_is_what_it_takes():
    work = work_of_tiles(LAUNCH, LAUNCH.sizes["_small"], 16, CODE)
    # Two blocks for each processor, one at a time: 4 rounds of 24 cycles, 10 instructions and a barrier a step.
    spent = launch_seconds(CARD, LAUNCH, CODE, work, 1, "f32")
    assert spent == pytest.approx({"shared memory": 2 * 2 * 112e-9, "beginnings and ends": 2 * 430e-9})
    # Side by side a round takes 48 cycles, and what each waits for is waited for once.
    spent = launch_seconds(CARD, LAUNCH, CODE, work, 2, "f32", 2)
    assert spent == pytest.approx({"shared memory": 2 * 218e-9, "beginnings and ends": 430e-9})
    # One behind another in a flush, the second waits for two loads more.
    spent = launch_seconds(CARD, LAUNCH, CODE, work, 1, "f32", 2)
    assert spent == pytest.approx({"shared memory": 2 * 2 * 112e-9, "beginnings and ends": 2 * 430e-9 + 2 * 50e-9})
    # A slow second cache: 2560 bytes at 4 a cycle and processor.
    slow = SimpleNamespace(**vars(CARD) | {"l2_rate": 8e9})
    spent = launch_seconds(slow, LAUNCH, CODE, work, 2, "f32")
    assert spent["second cache"] == pytest.approx(2 * 2 * 640e-9)


def test_the_largest_tiles_have_more_warps_and_copies_on_their_way():
    size = Size(8, 16, 16, 4, 8, 4, rounded="bf16")
    launch = Launch("k$0", "tiles", False, {"_largest": size}, {"_largest": 0}, 512, [(512, 1)], weight=2)
    # A round is of 16 terms: 32 products of a warp of 16 x 8 sums.
    code = Code(200, 0, 100, 32, 16 * 8 * 16, [8] * 16 + [4] * 16, 40, 1000, 100, 3)
    work = work_of_tiles(launch, size, 256, code)
    assert (work.blocks, work.steps, work.rounds, work.ahead, work.of_scheduler) == (4, 32, 32, 3, 2)
    assert work.step_bytes == 16 * (4 * 128 + 2 * 256)
    assert together(H200, code, work.warps) == 1
    mma = code.macs / (989.4e12 / (2 * 132 * 4 * 1.83e9)) / 0.629
    spent = launch_seconds(H200, launch, code, work, 1, "bf16")
    # Two warps of a scheduler, of each 32 products a step, and 40 instructions.
    assert spent["tensor cores"] == pytest.approx(32 * (2 * 32 * mma + 2 * 40 + 30) / 1.83e9)


def test_warpgroups_have_a_size_of_their_own_and_read_shared_memory_themselves():
    kept = "%4 = ragged.scratch bf16 : memref<?x32xf32>\n"
    plan = PLAN.replace("      %3 = ragged.scratch", f"      {kept}      %3 = ragged.scratch")
    plan = plan.replace("from 512 rounded", "from 512 warpgroups [3, 256, 4] from 900 rounded")
    plan = plan.replace("%5 = ragged.products %0", "%5 = ragged.products %4")
    lanes, launch, _ = next(iter(read_kernels(plan).values())).launches
    # Rows that are kept in bf16 have two bytes a number.
    assert (lanes.row, launch.row, launch.row_bytes) == (4, 2, 32 * 2)
    size = launch.sizes["_warpgroups"]
    assert (size.block_rows, size.block_columns, size.depth, size.warps, size.stages) == (192, 256, 64, 12, 4)
    assert [tile_of(launch, rows)[0] for rows in (899, 900)] == ["_largest", "_warpgroups"]
    of_round = ["BAR.SYNC 0x0", *["HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24"] * 4, "FFMA R0, R1, R2, R0"]
    (kernel,) = kernels(code_text(".L_1:", *of_round, "@P0 BRA `(.L_1)"))
    code = read_code(kernel, 168, 0)
    # Four warps share an operation, and a step is a round.
    assert (code.adds, code.macs, code.is_grouped, code.of_step) == (4, 64 * 256 * 16 // 4, True, 0)
    launch.columns, launch.sums = 512, [(512, 1)]
    work = work_of_tiles(launch, size, 400, code)
    assert (work.blocks, work.rounds, work.steps, work.ahead, work.of_scheduler) == (6, 8, 8, 3, 3)
    assert work.step_bytes == 64 * (2 * 192 + 2 * 256)
    # 64 rows and 256 columns of 16 terms for each of four operations, by four warps.
    assert work.passes == 4 * (64 + 256) * 16 * 2 / 128 / 4
    spent = launch_seconds(H200, launch, code, work, 1, "bf16")
    mma = code.macs / (989.4e12 / (2 * 132 * 4 * 1.83e9)) / 0.87
    assert spent["tensor cores"] == pytest.approx(8 * (3 * 4 * mma + 30) / 1.83e9)


def test_halves_of_a_block_take_turns_where_weights_stay():
    size = Size(2, 32, 64, 1, 16, 3, "bf16", held=True)
    assert (size.block_rows, size.block_columns) == (256, 128)
    launches = [
        Launch(f"k${at}", "tiles", at > 0, {"_warpgroups": size}, {"_warpgroups": 0}, 512, [(512, 1)], weight=2, row=2)
        for at in range(2)
    ]
    share_processors(launches)
    first, second = launches
    assert (first.wave_columns, second.wave_columns) == (8, 8)
    # Of 132 processors 16 for each block of columns, which 40 tiles of 64 rows have 10 of; a tile for each warpgroup.
    code = Code(120, 0, 90, 4, 64 * 128 * 16 // 4, [], 0, 700, 100, 2, True, 250)
    blocks, spent = held_seconds(H200, first, size, 2560, code, "bf16")
    assert blocks == 4 * 10
    # Half a turn has two tiles of 8 steps. Shared memory gives each operation 64 rows and 128 columns, takes the rows, and takes and
    # gives the sums of the other half; but the instructions of both halves take longer.
    rate = min(H200.processor_rate, H200.l2_rate / 80 / 1.83e9)
    memory = 2 * (8 * (4 * 2 * 16 * (64 + 128) + 64 * 64 * 2) + 2 * 4 * 64 * 128) / 128
    of_tile = 16 * 100 + 250
    alone = max(2 * of_tile, 8 * (4 * 64 + 90 + 29 + 30))
    instructions = 2 * (8 * 90 + of_tile)
    assert max(memory, instructions, alone) == instructions
    ends = 2 * 336 + 512 * 128 * 2 / rate + 2 * 2 * 30 + 2 * of_tile
    # Both launches of the wave are beside each other, so each takes half of the time.
    assert spent["instructions"] == pytest.approx(2 * instructions / 1.83e9 / 2)
    assert spent["beginnings and ends"] == pytest.approx(ends / 1.83e9 / 2)


STAYS = Launch(**vars(LAUNCH) | {"resident": Resident(8, 16, 3)})


def test_weights_that_stay_have_larger_rounds_and_copies_of_rows_alone():
    (kernel,) = read_kernels(PLAN.replace("from 512 {", "from 512 resident [8, 16, 3] {")).values()
    assert [launch.resident for launch in kernel.launches] == [Resident(8, 16, 3), None, None]
    # 16 rows and 8 columns a block, in two steps of a round each; a load of a row's and of a column's four terms.
    work = work_of_resident(STAYS, STAYS.resident, 17)
    assert (work.blocks, work.rounds, work.steps, work.step_bytes, work.ahead) == (16, 2, 2, 1024, 2)
    assert work.passes == 4 * (1 + 1)
    # A block has 256 words, two for each thread.
    beside = 2 * max(1024 / 64, PANEL_INSTRUCTIONS * 256 / 128)
    assert panels_seconds(CARD, STAYS, STAYS.resident, work, 2) == pytest.approx((50 + beside) * 1e-9)


def test_blocks_of_clusters_have_sizes_of_their_own():
    text = PLAN.replace("from 512 {", "from 512 resident [8, 16, 3] clustered [16, 16, 3, 4096] {")
    (kernel,) = read_kernels(text).values()
    assert kernel.launches[0].clustered == Resident(16, 16, 3, 4096)
    # 8 rows and 16 columns a block, of which a warp has 8: its loads take as many passes as with 8 columns a block.
    work = work_of_resident(STAYS, Resident(16, 16, 3), 17)
    assert (work.blocks, work.step_bytes, work.passes) == (12, 512, 8)


def test_code_is_read_where_weights_stay():
    weights = [".L_0:", "LDGSTS.E [R6], [R2.64]", "@P0 BRA `(.L_0)", "BRA `(.L_3)"]
    again = [".L_3:", "LDGSTS.E [R6], [R2.64]", "@P0 BRA `(.L_3)"]
    other = [".L_1:", "BAR.SYNC 0x0", "FFMA R0, R1, R2, R0", "@P0 BRA `(.L_1)"]
    own = [".L_2:", "BAR.SYNC 0x0", "LDS.128 R4, [R5]", *["FFMA R0, R1, R2, R0"] * 16, "@P0 BRA `(.L_2)"]
    (kernel,) = kernels(code_text("MOV R1, R2", *weights, *again, *other, "MOV R3, R2", *own, "EXIT"))
    code = read_resident(kernel, STAYS.resident, STAYS, 40, 1024)
    assert (code.instructions, code.adds, code.loads, code.of_step) == (19, 16, [16], 0)
    assert (code.registers, code.shared, code.once, code.stored) == (40, 1024, 3, 0)
    with pytest.raises(ValueError, match="no loop of 16 multiply-adds for k"):
        read_resident(kernels(code_text(*other, "EXIT"))[0], STAYS.resident, STAYS, 40, 1024)


def test_loads_that_wait_for_each_other_are_counted_outside_of_steps():
    step = [".L_1:", "BAR.SYNC 0x0", "LDGSTS.E [R6], [R2.64]", "@P0 BRA `(.L_1)"]
    again = [".L_2:", "BAR.SYNC 0x0", "@P0 BRA `(.L_2)"]
    # An index, the row that it names, and a copy of it; beside, a load that waits for none. All are there behind a step.
    before = ["LDG.E R2, [R8.64]", "IADD3 R4, R2, R3, RZ", "LDG.E R5, [R4.64]", "LDG.E R9, [R8.64]", "LDGSTS.E [R6], [R5.64]"]
    behind = ["LDG.E R7, [R2.64]", "IADD3 R7, R7, R5, RZ", "STG.E [R8.64], R7"]
    (kernel,) = kernels(code_text(*before, *step, *again, *behind, "EXIT"))
    loops = [(start, end, None) for start, end in loops_of(kernel)]
    assert waits_outside(kernel, loops) == 3 + 1
    # Copies of weights that stay are none.
    assert waits_outside(kernel, loops, panels=5) == 2 + 1


def test_threads_with_two_rows_have_code_of_their_own():
    size = Resident(8, 16, 3, 0, 2)
    assert (size.rows, size.single_rows) == (32, 16)
    work = work_of_resident(STAYS, size, 33, 2)
    assert (work.blocks, work.step_bytes, work.passes) == (16, 2048, 4 * (2 + 1))
    one = [".L_1:", "BAR.SYNC 0x0", *["FFMA R0, R1, R2, R0"] * 16, "@P0 BRA `(.L_1)", "STG.E [R8.64], R0", "EXIT"]
    two = [".L_2:", "BAR.SYNC 0x0", *["FFMA R0, R1, R2, R0"] * 32, "@P0 BRA `(.L_2)", *["STG.E [R8.64], R0"] * 2, "EXIT"]
    begin = ["LDG.E R2, [R8.64]", "@P1 BRA `(.L_3)"]
    (kernel,) = kernels(code_text(*begin, *one, ".L_3:", "MOV R3, R2", "MOV R4, R2", *two))
    code = [read_resident(kernel, size, STAYS, 40, 1024, rows) for rows in (1, 2)]
    assert [(each.adds, each.once, each.begins) for each in code] == [(16, 4, 1), (32, 7, 1)]


def test_registers_and_shared_memory_say_how_many_blocks_fit():
    assert together(H200, CODE) == 65536 // (64 * 32 * 4)
    assert together(H200, Code(168, 43008, 1, 1, 32, [], 0, 0, 0, 0)) == 3
    assert together(H200, Code(32, 100000, 1, 1, 32, [], 0, 0, 0, 0)) == 2
    assert together(H200, Code(16, 0, 1, 1, 32, [], 0, 0, 0, 0)) == 16


def test_the_memory_counts_where_the_second_cache_is_too_small():
    rows = 10**6
    seconds = (rows * 384 + 32 * 64 * 4) / (4.8e12 * 0.91)
    assert with_memory(H200, LAUNCH, rows, {"instructions": 1e-6}) == pytest.approx({"memory": seconds})
    assert with_memory(H200, LAUNCH, 1000, {"instructions": 1e-9}) == {"instructions": 1e-9}


def counted(steps=3):
    """One flush of three launches of 16 rows."""
    return Counts(4, 1, steps, 100, 2, 10**6, {"k": 0}, {"k": Counter({(16, 16): 3})})


CASE = Case("treelstm", 16, 4, "f32", 4, 16)
KERNELS = {"k": Kernel([LAUNCH], 384)}


def test_a_prediction_is_its_launches_and_what_lies_between():
    flush = Code(64, 8192, 1, 1, 32, [], 0, 0, 0, 0)
    codes = {"k$0_small": CODE, "cohort_flush": flush}
    found = predict(CARD, CASE, KERNELS, codes, counted())
    launch = 436e-9 + 430e-9
    copies = 2 * 2e-6 + 1e6 / 50e9
    # Of one launch: three loads more before the first step, and two barriers.
    whole = 3 * launch + 3 * 50e-9 + 2 * 1.5e-6 + 3e-6 + copies
    assert found["stats"]["device"] == {"seconds": pytest.approx(whole), "launches": 1, "steps": 3}
    assert found["plain_seconds"] == pytest.approx(3 * launch + 2 * 1.5e-6 + 3e-6 + copies)
    (kernel,) = found["stats"]["kernels"]
    flops = 3 * 16 * 2 * 32 * 64
    assert kernel["seconds"] == pytest.approx(3 * (launch + 1.5e-6))
    assert (kernel["launches"], kernel["rows"], kernel["flops"]) == (3, 48, flops)
    moved = 48 * 384 + 32 * 64 * 4
    assert found["bound_seconds"] == pytest.approx(max(flops / 66.9e12, moved / 4.8e12) + 2 * 1.5e-6)
    assert found["stats"]["host_seconds"] == pytest.approx(100 * 40e-9 + 25e-6)
    assert sum(found["reasons"].values()) == pytest.approx(whole)


def test_a_flush_is_launch_by_launch_where_its_steps_are_large():
    codes = {"k$0_small": CODE, "cohort_flush": CODE}
    many = counted()
    many.launches["k"] = Counter({(8 * 1024, 8 * 1024): 3})
    found = predict(CARD, CASE, KERNELS, codes, many)
    assert found["stats"]["device"]["launches"] == 3
    assert found["stats"]["device"]["seconds"] == pytest.approx(found["plain_seconds"])


def test_what_is_divided_takes_what_the_longest_part_does():
    kernels = {"k": Kernel([Launch(**vars(STAYS) | {"clustered": Resident(16, 16, 3)})], 384)}
    codes = {"k$0_small": CODE, "k$0_resident": CODE, "k$0_clustered": CODE}
    codes |= {"cohort_flush": CODE, "cohort_flush_clusters": CODE}
    of_kernel = [{"kernel": "k", "rows": 8, "times": 6}]
    clusters = {"flushes": 3, "divided": 2, "longest": {"steps": 6, "launches": of_kernel}}
    clusters |= {"undivided": {"steps": 0, "launches": []}, "shared": {"steps": 2, "launches": []}}
    card = SimpleNamespace(**vars(CARD) | {"clusters": 2, "cluster_barrier": 1e-7})
    spent = in_clusters(card, CASE, kernels, codes, clusters)
    # The undivided flush has no step, and one barrier less than steps; each shared step has one of the grid.
    assert spent["waits between steps"] == pytest.approx((0 - 1 + 2) * 1.5e-6 + (6 - 2) * 1e-7)
    one = SimpleNamespace(**vars(card) | {"processors": 16, "l2_rate": card.l2_rate / 2})
    work = work_of_resident(kernels["k"].launches[0], Resident(16, 16, 3), 8)
    alone = launch_seconds(one, kernels["k"].launches[0], CODE, work, together(card, CODE), "f32", 2)
    found = sum(seconds for reason, seconds in spent.items() if reason not in ("waits between steps", "weights that stay"))
    assert found == pytest.approx(6 * sum(alone.values()))


def stats_of(found, times):
    """What a card would have written that took so many times as long."""
    stats = found["stats"]
    device = {**stats["device"], "seconds": times * stats["device"]["seconds"]}
    host = {"record_seconds": times * stats["host_seconds"], "schedule_seconds": 0.0}
    return {**stats, **host, "device": device}


def test_a_run_is_compared_with_its_prediction_alone():
    found = predict(CARD, CASE, KERNELS, {"k$0_small": CODE}, counted())
    page = comparison(found, CASE.name, stats_of(found, 2))
    assert page.count("2.00x") == 2 and page.count("1.00x") == 2
    timed = stats_of(found, 1)
    timed["device"]["list_seconds"] = 1e-6
    assert "`k`, ms" in comparison(found, CASE.name, timed)
    with pytest.raises(ValueError, match="5 instances, where 4 were counted"):
        comparison(found, CASE.name, {**timed, "instances": 5})


def test_what_the_benchmark_wrote_is_compared_too():
    found = predict(CARD, CASE, KERNELS, {"k$0_small": CODE}, counted())
    ours = stats_of(found, 2)
    ours |= {"calls": ours.pop("kernel_launches"), "timed_device": {**ours["device"], "list_seconds": 1e-6}}
    ceilings = {"queued_launch_seconds": 3e-6, "multiply_add_flops": 66.9e12, "copy_bytes": 4.8e12}
    rows = [{"model": "treelstm", "size": 16, "batch": batch} for batch in (1, 4)]
    rows[1]["ours"] = ours
    page = comparison(found, CASE.name, {"ceilings": ceilings, "rows": rows})
    assert page.count("2.00x") == 3 and "`k`, ms" in page and "`next_launch`, s" in page
    with pytest.raises(ValueError, match="no treelstm-16-1-f32"):
        comparison(found, "treelstm-16-1-f32", {"ceilings": ceilings, "rows": rows})


def test_counts_are_read_from_what_a_run_wrote():
    copies = {"to_device": 2, "bytes_to_device": 10}
    stats = {"instances": 4, "flushes": 1, "shared_calls": 4, "device": {"steps": 2, "copies": copies}}
    events = [{"cat": "launch", "name": "k", "args": {"rows": rows, "calls": 2}} for rows in (2, 2, 3)]
    profile = {"traceEvents": [{"cat": "phase", "name": "record"}, *events]}
    found = read_counts({**stats, "kernels": [{"name": "k", "flops": 5}]}, profile)
    assert found == Counts(4, 1, 2, 10, 2, 10, {"k": 5}, {"k": Counter({(2, 2): 2, (3, 2): 1})})


def test_shared_memory_that_a_launch_gives_counts():
    text = r'''cfb.gpu_flush = "{\22symbol\22:\22cohort_flush\22,\22threads\22:128,\22shared_bytes\22:99328,\22functions\22:[]}",
    k = "{\22launches\22:[{\22functions\22:[{\22symbol\22:\22k$0_small\22,\22threads\22:128,\22shared_bytes\22:512}]}]}"'''
    assert read_shared(text) == {"cohort_flush": 99328, "k$0_small": 512}


def test_guesses_are_compared_with_waits():
    stats = {"instances": 4, "flushes": 1, "shared_calls": 0, "speculation": {"guesses": 3}, "kernels": []}
    stats["device"] = {"steps": 2, "copies": {"to_device": 2, "bytes_to_device": 10}}
    guessing = read_counts(stats, {"traceEvents": []})
    assert guessing.guesses == 3
    waiting = Counts(**{**vars(guessing), "flushes": 4, "guesses": 0})
    found = predict(CARD, CASE, KERNELS, {}, guessing)
    assert found["stats"]["host_seconds"] == 3 * CARD.guess + CARD.flush
    found["waiting"] = predict(CARD, CASE, KERNELS, {}, waiting)
    rows = deciding_table({"k-16-4-f32": found, "other": predict(CARD, CASE, KERNELS, {}, waiting)}).splitlines()[2:]
    assert [row.split("|")[2].strip() for row in rows] == ["waits", "guesses"]
    assert "1.00x" in rows[0] and f"{whole(found['waiting']) / whole(found):.2f}x" in rows[1]


def test_the_page_is_of_the_figures():
    page = PAGE.read_text(encoding="utf-8")
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    assert replace_section(page, "gpu-time", section(figures)) == page
