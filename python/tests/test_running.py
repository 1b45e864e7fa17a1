"""Streams, threads, processes and interrupts."""

import itertools
import multiprocessing
import os
import queue
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import cohort

LOOP = """
fn main(x: f32[1], k: i32) -> (f32[1], i32) {
  let (y, steps) = while sum(y) < 10.0 with (y = x, steps = 0) { (y + 1.0, steps + 1) };
  (y, k)
}
"""


@pytest.fixture
def loop(program):
    return program(LOOP)


def instances(count):
    return [{"id": f"i{i}", "x": [float(i % 11)], "k": i} for i in range(count)]


@pytest.mark.parametrize("in_flight", [1, 3, 64])
def test_a_stream_gives_each_result_once(loop, treelstm, trees, in_flight):
    results = list(loop.stream(iter(instances(300)), in_flight=in_flight))
    assert sorted(result.index for result in results) == list(range(300))
    assert all(result.output[1] == result.index and result.id == f"i{result.index}" for result in results)
    ordered = list(loop.stream(instances(300), in_flight=in_flight, ordered=True))
    assert [result.index for result in ordered] == list(range(300))
    expected = treelstm(trees[0])
    for result, output in zip(treelstm.stream(trees[0], in_flight=in_flight, ordered=True), expected, strict=True):
        assert result.output.tobytes() == output.tobytes()


def test_a_stream_answers_before_more_is_asked_for(loop):
    given = []

    def endless():
        for i in itertools.count():
            given.append(i)
            yield {"x": [0.0], "k": i}

    stream = loop.stream(endless(), in_flight=8)
    for _ in range(100):
        next(stream)
        assert len(given) <= 100 + 16
    stream.close()


def test_other_calls_within_a_stream(loop):
    for result in itertools.islice(loop.stream(instances(50), in_flight=4), 20):
        assert loop([{"x": [0.0], "k": 7}])[0][1] == 7
        assert [other.output[1] for other in loop.stream(instances(3), ordered=True)] == [0, 1, 2]
        assert result.error is None


def test_errors_of_a_stream(loop):
    given = [*instances(3), {"id": "bad", "x": 1, "k": 2}, *instances(2)]
    results = list(loop.stream(given, ordered=True, errors="return"))
    assert [result.error is not None for result in results] == [False] * 3 + [True] + [False] * 2
    assert (results[3].id, results[3].error.index) == ("bad", 3)
    with pytest.raises(cohort.InstanceError, match="bad"):
        list(loop.stream(given))


def test_an_exception_in_the_iterator_comes_back_with_the_instance(loop):
    def failing():
        yield from instances(5)
        raise KeyError("lost")

    for run in (lambda: loop(failing()), lambda: list(loop.stream(failing(), in_flight=2))):
        with pytest.raises(KeyError, match="lost") as raised:
            run()
        assert "instance 6" in "".join(raised.value.__notes__)
    assert len(loop(instances(3))) == 3


def test_calls_within_the_iterator_of_a_call(loop):
    def given():
        for i in range(5):
            assert loop([{"x": [0.0], "k": 7}])[0][1] == 7
            assert len(loop({"x": [0.0], "k": loop([{"x": [0.0], "k": j}])[0][1]} for j in range(2))) == 2
            with pytest.raises(RuntimeError, match="within a call"):
                loop.set_weights(None)
            yield {"x": [0.0], "k": i}

    assert [k for _, k in loop(given())] == list(range(5))
    loop.set_weights(None)


def test_a_model_is_used_by_many_threads(loop):
    expected = loop(instances(200)).numpy()[0].tobytes()
    wrong = []

    def use():
        for _ in range(5):
            if loop(instances(200), batch=16).numpy()[0].tobytes() != expected:
                wrong.append(1)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_stream_that_threads_share_gives_each_result_once(loop):
    stream, lock, seen = loop.stream(instances(400), in_flight=8), threading.Lock(), []

    def take():
        while True:
            with lock:
                result = next(stream, None)
            if result is None:
                return
            seen.append(result.index)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(400))


def test_other_threads_of_python_go_on_meanwhile(program):
    m = program("fn main(k: i32) -> f32[64] { fold(range(k), ones([64]), |a, i| sin(a + ones([64]))) }", max_nodes=10**9)
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    m([{"k": 300_000}])
    done.set()
    thread.join()
    assert counted[0] > 1000


def run_script(text, tmp_path, timeout=60):
    path = tmp_path / "program.coh"
    path.write_text(LOOP)
    script = f"import cohort, os, sys\nm = cohort.compile({str(path)!r})\n{text}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=timeout)


def test_a_fork_after_load_is_an_exception(tmp_path):
    done = run_script(
        """
m([{"x": [0.0], "k": 1}])
child = os.fork()
if child == 0:
    try:
        m([{"x": [0.0], "k": 1}])
    except RuntimeError as error:
        print(error)
        sys.stdout.flush()
        os._exit(7 if "before the process forked" in str(error) else 1)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
        tmp_path,
    )
    assert done.returncode == 0 and done.stdout.endswith("7\n"), done.stderr


def test_a_forked_process_with_a_stream_goes_on_with_a_model_of_its_own(tmp_path):
    saved = os.fspath(tmp_path / "loop.cohort")
    done = run_script(
        f"saved = {saved!r}"
        """
m.save(saved)
stream = m.stream(({"x": [0.0], "k": i} for i in range(10**9)), in_flight=4)
next(stream)
child = os.fork()
if child == 0:
    try:
        for _ in stream:
            pass
    except RuntimeError as error:
        print("before the process forked" in str(error))
    print(cohort.load(saved)([{"x": [0.0], "k": 5}])[0][1])
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), next(stream).output[1])
""",
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "True\n5\n0 1\n"), done.stderr


def test_a_pool_of_forked_processes_tells_what_to_do(tmp_path):
    done = run_script(
        """
import multiprocessing
def use(i):
    try:
        return m([{"x": [0.0], "k": i}])[0][1]
    except RuntimeError as error:
        return "spawn" in str(error)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(use, range(3)))
""",
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "[True, True, True]\n"), done.stderr


def test_an_interpreter_ends_with_instances_alive(tmp_path):
    done = run_script(
        """
stream = m.stream(({"x": [0.0], "k": i} for i in range(10**9)), in_flight=8)
next(stream)
m.kept = stream
import threading
threading.Thread(target=lambda: list(m.stream({"x": [0.0], "k": i} for i in range(10**9))), daemon=True).start()
print("end")
""",
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


NEVER_ENDS = '{"x": [-1e30], "k": 1}'


@pytest.mark.parametrize(
    "call",
    [
        f"m({NEVER_ENDS} for _ in range(10**9))",
        f"list(m.stream({NEVER_ENDS} for _ in range(10**9)))",
        # While an instance is built of what Python has, and while there is none.
        "m([{'x': [0.0], 'k': 1}] * 10**8)",
        "m(iter(lambda: time.sleep(60), 1))",
        # While another thread has the model.
        f"threading.Thread(target=lambda: m([{NEVER_ENDS}]), daemon=True).start(); time.sleep(0.2); m([{NEVER_ENDS}])",
        f"threading.Thread(target=lambda: m([{NEVER_ENDS}]), daemon=True).start(); time.sleep(0.2); m.set_weights({{}})",
        "[cohort.compile(path, cache=False) for _ in range(10**6)]",
    ],
    ids=["call", "stream", "building", "iterator", "waiting", "replacing", "compiling"],
)
def test_ctrl_c_ends_whatever_takes_long(tmp_path, call, interrupt):
    path = tmp_path / "program.coh"
    path.write_text(LOOP)
    script = f"""
import cohort, threading, time
path = {str(path)!r}
m = cohort.compile(path, max_steps=10**15, max_nodes=10**15)
print("begun", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted")
"""
    assert interrupt(script) == "interrupted\n"


WORK = """
param w: f32[1024, 1024]
fn go(n: i32) -> i32 { if n == 0 { 0 } else { go(n - 1) + go(n - 1) } }
fn layers(x: f32[n, 1024], k: i32) -> f32[n, 1024] {
  for _ in range(k) with (y = x) { tanh(y @ w) }
}
fn attend(x: f32[n, 1024]) -> f32[n, 1024] { x @ (transpose(x) @ x) }
"""


@pytest.mark.parametrize(
    "main, instance",
    [
        ("fn main(k: i32) -> i32 { go(k) }", "{'k': k}"),
        ("fn main(k: i32) -> f32[n, 1024] { layers(ones([16 * k, 1024]), 16 * k) }", "{'k': k}"),
        ("fn main(k: i32) -> f32[n, 1024] { attend(ones([1024 * k, 1024])) }", "{'k': k}"),
    ],
    ids=["control", "launches", "a launch"],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_ctrl_c_ends_is_computed_no_more(tmp_path, main, instance, threads, interrupt):
    path = tmp_path / "program.coh"
    path.write_text(WORK + main.replace("[n,", "[_,"))
    script = f"""
import cohort, numpy as np, time
m = cohort.compile({str(path)!r}, {{"w": np.eye(1024, dtype="f4")}}, max_steps=10**15, max_nodes=10**15, max_memory=10**12)
expected = m([{{"k": 1}}])[0]
print("begun", flush=True)
try:
    m([{{"k": 60}}], threads={threads})
except KeyboardInterrupt:
    begin = time.monotonic()
assert np.array_equal(m([{{"k": 1}}], threads={threads})[0], expected)
print(time.monotonic() - begin < 2)
"""
    assert interrupt(script) == "True\n"


def test_a_call_that_waits_for_its_iterator_keeps_no_other_waiting(loop):
    """The iterator waits for instances that another thread computes by the same model."""
    given, expected = queue.Queue(), [loop([one])[0] for one in instances(3)]

    def produce():
        for one in instances(3):
            x, steps = loop([one])[0]
            given.put({"x": x, "k": steps})
        given.put(None)

    producer = threading.Thread(target=produce, daemon=True)
    found = []
    consumer = threading.Thread(target=lambda: found.extend(loop(iter(given.get, None))), daemon=True)
    consumer.start()
    while not consumer.is_alive():
        pass
    time.sleep(0.2)
    producer.start()
    consumer.join(20)
    assert [one[0].tolist() for one in found] == [x.tolist() for x, _ in expected]


def test_spawned_processes_load_their_own(tmp_path, loop):
    loop.save(tmp_path / "loop.cohort")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_in_process, [os.fspath(tmp_path / "loop.cohort")] * 3) == [10.0] * 3


def _in_process(path):
    return float(cohort.load(path)([{"x": [0.0], "k": 1}])[0][0][0])


def test_a_model_is_not_pickled(loop):
    import pickle

    with pytest.raises(TypeError, match="save it"):
        pickle.dumps(loop)


def test_many_results_take_no_memory_that_stays(loop):
    for _ in range(3):
        assert len(loop(instances(2000)).numpy()[0]) == 2000
    assert np.isfinite(loop.stats["wall_seconds"])
