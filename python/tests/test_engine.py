"""Instances one at a time, from an event loop: cancelled, late, refused, and the bits of each alone."""

import asyncio
import gc
import subprocess
import sys
import time

import numpy as np
import pytest

import cohort

LOOP = """
fn main(x: f32[1], end: f32) -> (f32[1], i32) {
  while sum(x) < end with (x = x, steps = 0) { (x + 1.0, steps + 1) }
}
"""
FOREVER = {"x": [-1e30], "end": 0.0}


@pytest.fixture
def loop(program):
    return program(LOOP, max_steps=10**15, max_nodes=10**15)


def walk(i):
    return {"id": f"w{i}", "x": [0.25], "end": float(i % 13)}


async def until(is_so):
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        await asyncio.sleep(0.002)


def test_many_submitters_get_the_bits_of_each_instance_alone(loop, treelstm, trees):
    async def serve(m, instances, **settings):
        async with m.engine(**settings) as e:
            outputs = await asyncio.gather(*[e.submit(instance) for instance in instances])
        assert e.stats["done"] == len(instances)
        assert 0 < e.stats["launches"] < e.stats["rows"], "what is there is computed together"
        return outputs

    walks = [walk(i) for i in range(300)]
    for output, instance in zip(asyncio.run(serve(loop, walks, in_flight=8, max_queued=16)), walks, strict=True):
        expected = loop([instance])[0]
        assert (output[0].tobytes(), output[1]) == (expected[0].tobytes(), expected[1])
    for output, instance in zip(asyncio.run(serve(treelstm, trees[0])), trees[0], strict=True):
        assert output.tobytes() == treelstm([instance])[0].tobytes()


def test_an_instance_that_fails_raises_and_harms_nobody(loop):
    async def main():
        async with loop.engine() as e:
            good = asyncio.ensure_future(e.submit(walk(5)))
            with pytest.raises(cohort.InstanceError) as raised:
                await e.submit({"id": "b", "x": "no", "end": 1.0})
            assert (raised.value.kind, raised.value.id) == ("bad_input", "b")
            with pytest.raises(cohort.InstanceError) as raised:
                await e.submit({"id": 7, "x": [float("nan")], "end": 1.0})
            assert (raised.value.kind, raised.value.id) == ("nan_decision", 7)
            with pytest.raises(cohort.InstanceError, match="dict"):
                await e.submit(3)
            assert (await good)[1] == 5

    asyncio.run(main())


def test_deadlines(loop):
    async def main():
        async with loop.engine(in_flight=2) as e:
            begin = time.monotonic()
            late = [e.submit({"id": i, **FOREVER}, deadline=0.05) for i in range(5)]
            for error in await asyncio.gather(*late, return_exceptions=True):
                assert isinstance(error, cohort.InstanceError) and error.kind == "deadline"
            assert time.monotonic() - begin < 10
            assert (await e.submit(walk(3), deadline=30))[1] == 3
            with pytest.raises(cohort.InstanceError, match="deadline"):
                await e.submit(walk(3), deadline=0)
            for deadline, error in [("soon", TypeError), (-1, ValueError), (float("nan"), ValueError)]:
                with pytest.raises(error):
                    await e.submit(walk(3), deadline=deadline)

    asyncio.run(main())


def test_a_deadline_does_not_wait_for_a_batch(program):
    m = program("fn main(k: i32) -> f32[64] { fold(range(k), ones([64]), |a, i| sin(a + ones([64]))) }", max_nodes=10**9)

    async def main():
        async with m.engine() as e:
            with pytest.raises(cohort.InstanceError, match="deadline"):
                await e.submit({"k": 1_000_000}, deadline=0.02)
            assert e.stats["running"] == 1, "it is still computed"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


def test_a_task_that_is_cancelled_gives_its_instance_up(loop):
    async def main():
        async with loop.engine(in_flight=1) as e:
            tasks = [asyncio.ensure_future(e.submit(FOREVER)) for _ in range(3)]
            await until(lambda: e.stats["running"] == 1 and e.stats["queued"] == 2)
            for task in tasks:
                task.cancel()
            for task in tasks:
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert (await e.submit(walk(2)))[1] == 2
            assert e.stats["cancelled"] == 3
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(e.submit(FOREVER), 0.05)
            await until(lambda: e.stats["running"] == 0)

    asyncio.run(main())


def test_submissions_wait_for_room_in_order_or_are_refused(loop):
    async def main():
        order = []

        async def submit(e, i):
            await e.submit(walk(i))
            order.append(i)

        async with loop.engine(in_flight=1, max_queued=2) as e:
            blocking = asyncio.ensure_future(e.submit(FOREVER))
            await until(lambda: e.stats["running"] == 1)
            tasks = [asyncio.ensure_future(submit(e, i)) for i in range(30)]
            await until(lambda: e.stats["queued"] == 2)
            with pytest.raises(cohort.QueueFull):
                await e.try_submit(walk(1))
            # Who waits for room and leaves takes nobody's turn.
            tasks.pop(10).cancel()
            blocking.cancel()
            await asyncio.gather(*tasks)
            assert order == [i for i in range(30) if i != 10]
            assert (await e.try_submit(walk(1)))[1] == 1

    asyncio.run(main())


def test_priorities(loop):
    async def main():
        order = []

        async def submit(e, name, priority):
            await e.submit(walk(4), priority=priority)
            order.append(name)

        async with loop.engine(in_flight=1) as e:
            blocking = asyncio.ensure_future(e.submit(FOREVER))
            await until(lambda: e.stats["running"] == 1)
            tasks = [submit(e, "first", 0), submit(e, "last", -9999), submit(e, "before", 9999)]
            tasks = [asyncio.ensure_future(task) for task in tasks]
            await until(lambda: e.stats["queued"] == 3)
            blocking.cancel()
            await asyncio.gather(*tasks)
        assert order == ["before", "first", "last"]
        with pytest.raises(RuntimeError, match="not open"):
            await e.submit(walk(1))

    asyncio.run(main())


def test_an_exception_cancels_what_is_left(loop):
    async def main():
        with pytest.raises(KeyError):
            async with loop.engine() as e:
                task = asyncio.ensure_future(e.submit(FOREVER))
                await until(lambda: e.stats["running"] == 1)
                raise KeyError
        with pytest.raises(cohort.InstanceError, match="cancelled"):
            await task
        assert e.stats["cancelled"] <= 1

    asyncio.run(main())


def test_leaving_waits_for_what_was_submitted(loop):
    async def main():
        async with loop.engine(in_flight=2, max_queued=2) as e:
            tasks = [asyncio.ensure_future(e.submit(walk(i))) for i in range(40)]
            await asyncio.sleep(0)
        return [(await task)[1] for task in tasks]

    assert asyncio.run(main()) == [i % 13 for i in range(40)]


def test_a_map_over_instances(loop):
    async def main():
        async def arriving():
            for i in range(50):
                await asyncio.sleep(0)
                yield walk(i)

        async with loop.engine(in_flight=4, max_queued=4) as e:
            in_order = [output[1] async for output in e.map(arriving())]
            any_order = [output[1] async for output in e.map([walk(i) for i in range(50)], ordered=False)]
            async for _ in e.map([walk(1), FOREVER]):
                break
        return in_order, any_order

    in_order, any_order = asyncio.run(asyncio.wait_for(main(), 60))
    assert in_order == [i % 13 for i in range(50)]
    assert sorted(any_order) == sorted(in_order)


def test_an_exception_of_what_gives_instances_to_a_map_comes_back(loop):
    async def main():
        async def failing():
            yield walk(1)
            yield walk(2)
            raise KeyError("lost")

        async with loop.engine(in_flight=1) as e:
            for instances in (failing(), (walk(1 // (1 - i)) for i in range(3))):
                with pytest.raises((KeyError, ZeroDivisionError)):
                    async for _ in e.map(instances):
                        pass
            with pytest.raises(TypeError):
                async for _ in e.map(3):
                    pass
            assert (await e.submit(walk(4)))[1] == 4

    asyncio.run(asyncio.wait_for(main(), 60))


def test_an_engine_belongs_to_its_event_loop(loop):
    async def main():
        async with loop.engine() as e:
            other = asyncio.to_thread(lambda: asyncio.run(e.submit(walk(1))))
            with pytest.raises(RuntimeError, match="loop"):
                await other
            assert (await e.submit(walk(4)))[1] == 4

    asyncio.run(asyncio.wait_for(main(), 60))


def test_engines_beside_each_other_and_a_call(loop):
    async def main():
        async with loop.engine() as one, loop.engine() as other:
            answers = await asyncio.gather(*[e.submit(walk(i)) for i in range(20) for e in (one, other)])
            assert loop([walk(3)])[0][1] == 3
            return [answer[1] for answer in answers]

    assert asyncio.run(main()) == [i % 13 for i in range(20) for _ in range(2)]


def script_of(text, tmp_path):
    path = tmp_path / "program.coh"
    path.write_text(LOOP)
    return f"""
import asyncio, cohort
m = cohort.compile({str(path)!r}, max_steps=10**15, max_nodes=10**15)
FOREVER = {FOREVER!r}
{text}
"""


def run_script(text, tmp_path):
    command = [sys.executable, "-c", script_of(text, tmp_path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_ends_an_engine(tmp_path, interrupt):
    script = script_of(
        """
async def main():
    async with m.engine() as e:
        print("begun", flush=True)
        await asyncio.gather(*[e.submit(FOREVER) for _ in range(10)])
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
""",
        tmp_path,
    )
    assert interrupt(script) == "interrupted\n"


def test_an_interpreter_ends_with_an_engine_alive(tmp_path):
    process = run_script(
        """
loop = asyncio.new_event_loop()
async def main():
    e = await m.engine().__aenter__()
    tasks = [asyncio.ensure_future(e.submit(FOREVER)) for _ in range(100)]
    await asyncio.sleep(0.2)
    return e, tasks
kept = loop.run_until_complete(main())
print("end")
""",
        tmp_path,
    )
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("end\n", 0), err


def test_an_engine_that_is_forgotten_ends(loop):
    async def main():
        e = await loop.engine().__aenter__()
        task = asyncio.ensure_future(e.submit(FOREVER))
        await until(lambda: e.stats["running"] == 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for _ in range(3):
        asyncio.run(main())
        gc.collect()
    assert np.isfinite(loop([walk(1)])[0][0]).all()
