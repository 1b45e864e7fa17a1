"""Programs, artifacts and weights, good and bad."""

import concurrent.futures
import json
import os
import pathlib
import pickle

import conftest
import numpy as np
import pytest

import cohort
from cohort import _compile, _weights

DENSE = """
dim N, M
param w: f32[N, M]
param b: f32[M]
fn main(x: f32[N]) -> f32[M] { x @ w + b }
"""


@pytest.fixture
def weights():
    rng = np.random.default_rng(0)
    return {"w": rng.standard_normal((3, 2), np.float32), "b": np.ones(2, np.float32)}


def expected(weights):
    return np.float32(np.array([1, 2, 3]) @ weights["w"].astype(np.float64) + weights["b"])


INSTANCE = {"x": [1, 2, 3]}


def test_a_state_dict_and_a_file_are_the_same(program, weights, tmp_path):
    m = program(DENSE, weights)
    assert np.allclose(m([INSTANCE])[0], expected(weights), atol=1e-5)
    path = tmp_path / "w.safetensors"
    path.write_bytes(_weights.write(weights))
    again = program(DENSE, path)
    assert again([INSTANCE])[0].tobytes() == m([INSTANCE])[0].tobytes()
    renamed = program(DENSE, {"layer.weight": weights["w"], "layer.bias": weights["b"]}, rename={"layer.weight": "w", "layer.bias": "b"})
    assert renamed([INSTANCE])[0].tobytes() == m([INSTANCE])[0].tobytes()
    by_function = program(DENSE, path, rename=lambda name: name)
    assert by_function([INSTANCE])[0].tobytes() == m([INSTANCE])[0].tobytes()


def test_the_simulated_gpu_has_code_made_for_it(program, weights):
    m = program(DENSE, weights, device="gpu-sim")
    assert np.allclose(m([INSTANCE])[0], expected(weights), atol=1e-5)


def test_weights_are_kept_in_bf16(program, weights, tmp_path):
    in_f32 = program(DENSE, weights)
    kept = program(DENSE, weights, keep_weights="bf16")
    bits = weights["w"].view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)
    expected = program(DENSE, {**weights, "w": rounded})
    assert kept([INSTANCE])[0].tobytes() == expected([INSTANCE])[0].tobytes() != in_f32([INSTANCE])[0].tobytes()
    # New weights are rounded as well.
    kept.set_weights({**weights, "w": 2 * weights["w"]})
    expected.set_weights({**weights, "w": 2 * rounded})
    assert kept([INSTANCE])[0].tobytes() == expected([INSTANCE])[0].tobytes()


def test_weights_are_kept_in_bf16_on_the_processor_and_without_gradients(program, weights):
    with pytest.raises(cohort.CompileError, match="leave it out with `gradients=True`"):
        program(DENSE, weights, keep_weights="bf16", gradients=True)
    with pytest.raises(cohort.CompileError, match="`keep_weights=` is of the processor"):
        program(DENSE, weights, keep_weights="bf16", device="gpu-sim")
    with pytest.raises(cohort.CompileError, match="weights can be kept in f32 and bf16"):
        program(DENSE, weights, keep_weights="f16")


def test_an_artifact_is_saved_and_loaded_without_the_compiler(program, weights, tmp_path, monkeypatch):
    m = program(DENSE, weights)
    m.save(tmp_path / "dense.cohort")
    monkeypatch.setenv("COHORT_BATCH_OPT", "/nowhere")
    loaded = cohort.load(tmp_path / "dense.cohort", weights)
    assert loaded([INSTANCE])[0].tobytes() == m([INSTANCE])[0].tobytes()
    assert os.listdir(tmp_path).count("dense.cohort") == 1


def test_a_file_that_cannot_be_written_is_named(program, tmp_path):
    m = program("fn main(k: i32) -> i32 { k }")
    path = tmp_path / "nowhere" / "model.cohort"
    with pytest.raises(FileNotFoundError) as raised:
        m.save(path)
    assert str(raised.value) == f"[Errno 2] No such file or directory: '{path}'"
    (tmp_path / "model.cohort").mkdir()
    with pytest.raises(OSError):
        m.save(tmp_path / "model.cohort")
    assert [entry.name for entry in tmp_path.iterdir() if "cohort." in entry.name] == []


def test_a_saved_artifact_takes_the_place_of_the_file_of_a_link(program, tmp_path):
    m = program("fn main(k: i32) -> i32 { k }")
    path, link = tmp_path / "model.cohort", tmp_path / "link.cohort"
    path.write_bytes(b"before")
    path.chmod(0o640)
    link.symlink_to(path)
    m.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert cohort.load(path)([{"k": 3}])[0] == 3
    queue = tmp_path / "queue"
    os.mkfifo(queue)
    with pytest.raises(OSError, match="queue"):
        m.save(queue)
    assert queue.is_fifo()
    assert not [entry.name for entry in tmp_path.iterdir() if entry.name.endswith(".unfinished")]


@pytest.mark.parametrize("convert", [np.float16, np.float64, np.asfortranarray, lambda a: a[::-1][::-1]])
def test_arrays_of_other_types_and_layouts_that_hold_the_same(program, weights, convert):
    exact = {"w": np.float32([[1, 2], [3, 4], [5, 6]]), "b": np.float32([0.5, 1])}
    m = program(DENSE, {name: convert(array) for name, array in exact.items()})
    assert m([INSTANCE])[0].tolist() == [22.5, 29]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"w": None}, "`w`"),
        ({"w": np.ones((2, 2), np.float32)}, "expected"),
        ({"w": np.array([[0.1, 1]] * 3)}, "which f32 does not hold exactly; the file has f64"),
        ({"w": np.ones((3, 2), np.int32)}, "w"),
        ({"w": np.ones((3, 2), complex)}, "weights of complex128 are not taken"),
        ({"w": "text"}, "w"),
        ({"extra": np.ones(2, np.float32)}, "extra"),
    ],
    ids=str,
)
def test_weights_that_do_not_fit(program, weights, tmp_path, change, message):
    program(DENSE, weights).save(tmp_path / "dense.cohort")
    given = {name: array for name, array in (weights | change).items() if array is not None}
    with pytest.raises(cohort.WeightsError, match=message) as raised:
        cohort.load(tmp_path / "dense.cohort", given)
    assert "--" not in str(raised.value)


def test_files_that_are_no_weights(program, weights, tmp_path):
    program(DENSE, weights).save(tmp_path / "dense.cohort")
    for text in (b"", b"x", b"\xff" * 100, b"\x08\0\0\0\0\0\0\0{\"a\": 1}"):
        path = tmp_path / "bad.safetensors"
        path.write_bytes(text)
        for rename in (None, {"a": "b"}):
            with pytest.raises(cohort.WeightsError):
                cohort.load(tmp_path / "dense.cohort", path, rename=rename)
    with pytest.raises(cohort.WeightsError, match="cannot open"):
        cohort.load(tmp_path / "dense.cohort", tmp_path / "nothing")


def test_files_that_are_no_artifacts(program, weights, tmp_path):
    program(DENSE, weights).save(tmp_path / "dense.cohort")
    good = (tmp_path / "dense.cohort").read_bytes()
    for text in (b"", b"\x7fELF", good[:-1], good[:200], good[:300] + b"\0" + good[301:]):
        (tmp_path / "bad.cohort").write_bytes(text)
        with pytest.raises(cohort.ArtifactError):
            cohort.load(tmp_path / "bad.cohort", weights)
    with pytest.raises(cohort.ArtifactError, match="cannot open"):
        cohort.load(tmp_path / "nothing")


def test_devices(program, weights, tmp_path):
    program(DENSE, weights).save(tmp_path / "dense.cohort")
    with pytest.raises(ValueError, match="unknown device"):
        cohort.load(tmp_path / "dense.cohort", weights, device="tpu")
    with pytest.raises(cohort.DeviceError):
        cohort.load(tmp_path / "dense.cohort", weights, device="cuda")


def test_limits_are_numbers_from_1_on(program, weights, tmp_path):
    program(DENSE, weights).save(tmp_path / "dense.cohort")
    for name in ("max_depth", "max_nodes", "max_memory", "max_steps"):
        for limit, error in ((-1, ValueError), (0, ValueError), (1 << 64, ValueError), (1.5, TypeError), ("3", TypeError)):
            with pytest.raises(error, match=name):
                cohort.load(tmp_path / "dense.cohort", weights, **{name: limit})


def test_a_mistake_in_a_program_has_a_code_and_a_place(program):
    with pytest.raises(cohort.CompileError) as raised:
        program("fn main(x: f32[2]) -> f32[3] {\n  x\n}")
    error = raised.value
    assert error.code.startswith("E0")
    assert error.span.file.endswith("program.coh") and error.span.line in (1, 2)
    assert "error[" in str(error)
    with pytest.raises(cohort.CompileError) as raised:
        program(DENSE)
    assert raised.value.code == "E0701" and 'or a number: `dims={"N": 256}`' in str(raised.value)
    with pytest.raises(cohort.CompileError, match="cannot read"):
        cohort.compile("/nowhere/model.coh")


def test_dims_are_bound(program):
    m = program("dim N\nfn main(x: f32[N]) -> f32 { sum(x) }", dims={"N": 3})
    assert m([{"x": [1, 2, 3]}])[0] == 6


def test_what_was_compiled_is_kept_by_its_content(program, weights, tmp_path, monkeypatch):
    monkeypatch.setenv("COHORT_CACHE", os.fspath(tmp_path / "cache"))
    compiled = []
    run = _compile._run
    monkeypatch.setattr(_compile, "_run", lambda *given: compiled.append(1) or run(*given))
    program(DENSE, weights)
    program(DENSE, {"w": weights["w"] + 1, "b": weights["b"]})
    assert len(compiled) == 1
    program(DENSE, {"w": np.ones((3, 4), np.float32), "b": np.ones(4, np.float32)})
    program(DENSE + "\n// Another text.", weights)
    program(DENSE, weights, cache=False)
    assert len(compiled) == 4
    # What programs have in common is kept beside them. One that is damaged is made anew.
    kept = sorted((tmp_path / "cache").iterdir())
    assert {path.suffix for path in kept} <= {".cohort", ".code"}
    assert sum(path.suffix == ".cohort" for path in kept) == 3
    for path in kept:
        path.write_bytes(path.read_bytes()[:100])
    assert np.allclose(program(DENSE, weights)([INSTANCE])[0], expected(weights), atol=1e-5)
    assert len(compiled) == 5


def test_several_compile_the_same_at_once(weights, tmp_path, monkeypatch):
    monkeypatch.setenv("COHORT_CACHE", os.fspath(tmp_path / "cache"))
    path = tmp_path / "dense.coh"
    path.write_text(DENSE)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: cohort.compile(path, weights), range(4)))
    assert len({m([INSTANCE])[0].tobytes() for m in models}) == 1
    assert len(list((tmp_path / "cache").glob("*.cohort"))) == 1
    assert all(path.suffix in (".cohort", ".code") for path in (tmp_path / "cache").iterdir())


def test_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.delenv("COHORT_BATCH_OPT", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    path = pathlib.Path(tmp_path / "a.coh")
    path.write_text("fn main(x: i32) -> i32 { x }")
    with pytest.raises(cohort.CompileError, match="install `cohort-lang`"):
        cohort.compile(path)


def test_weights_are_replaced_as_by_a_load(treelstm, trees, tmp_path):
    treelstm.save(tmp_path / "model.cohort")
    given = _weights.read(treelstm._weights)
    rng = np.random.default_rng(3)
    other = {
        name: rng.standard_normal(tensor.shape).astype(np.float32)
        for name, tensor in given.items()
    }
    m = cohort.load(tmp_path / "model.cohort", given)
    before = m(trees[0]).tensor(0).tobytes()
    begun = m.stream(trees[0], in_flight=4, ordered=True)
    first = next(begun)
    m.set_weights(other)
    expected = cohort.load(tmp_path / "model.cohort", other)(trees[0]).tensor(0).tobytes()
    assert m(trees[0], batch=5).tensor(0).tobytes() == expected != before
    # What had begun goes on with what it had.
    kept = [first, *begun]
    assert b"".join(result.output.tobytes() for result in kept) == before
    streamed = m.stream(trees[0], ordered=True)
    assert b"".join(result.output.tobytes() for result in streamed) == expected
    with pytest.raises(cohort.WeightsError):
        m.set_weights({name: array for name, array in list(other.items())[1:]})
    assert m(trees[0]).tensor(0).tobytes() == expected
    m.set_weights(given)
    assert m(trees[0]).tensor(0).tobytes() == before


def test_weights_of_several_files(program, weights, tmp_path):
    m = program(DENSE, weights)
    folder = tmp_path / "sharded"
    folder.mkdir()
    for number, name in enumerate("wb"):
        (folder / f"model-{number}.safetensors").write_bytes(_weights.write({name: weights[name], "other": np.ones(3)}))
    places = {"w": "model-0.safetensors", "b": "model-1.safetensors"}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    for path in (folder, index):
        assert program(DENSE, path)([INSTANCE])[0].tobytes() == m([INSTANCE])[0].tobytes()
    renamed = program(DENSE.replace("w", "v"), folder, rename={"w": "v"})
    assert renamed([INSTANCE])[0].tobytes() == m([INSTANCE])[0].tobytes()
    for text, message in [
        ("{", "not a usable index"),
        ('{"weight_map": 3}', "not a usable index"),
        ('{"weight_map": {"w": "../model-0.safetensors"}}', "outside"),
        ('{"weight_map": {"w": "gone.safetensors"}}', "cannot open"),
        ('{"weight_map": {"w": "model-1.safetensors"}}', "is not in"),
    ]:
        index.write_text(text)
        with pytest.raises(cohort.WeightsError, match=message):
            program(DENSE, folder)


def test_brain_floats_are_widened(program):
    wide = np.float32([[1, -2], [3, 0.5], [5, 6]])
    narrow = _weights.Tensor("BF16", [3, 2], (wide.view("<u4") >> 16).astype("<u2").reshape(-1).view(np.uint8))
    m = program(DENSE, {"w": narrow, "b": np.float16([0.5, 1])})
    assert m([INSTANCE])[0].tolist() == [1 + 6 + 15 + 0.5, -2 + 1 + 18 + 1]


def with_header(header, data=b"\0" * 24):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    "change, message",
    [
        ({"w": np.ones((3, 2, 1), np.float32)}, r"`w` has 3 dims, not 2"),
        ({"w": np.ones((3, 2), bool)}, "`w` holds bool"),
        ({"b": np.ones(3, np.float32)}, "does not have the declared shape"),
    ],
    ids=lambda _: None,
)
def test_weights_that_the_compiler_refuses(program, weights, change, message):
    with pytest.raises(cohort.WeightsError, match=message) as raised:
        program(DENSE, weights | change)
    assert isinstance(raised.value, cohort.CompileError)
    assert raised.value.code in ("E0702", "E0703") and raised.value.span.file.endswith("program.coh")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 100,
        with_header([]),
        with_header({"w": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 10**18]}}),
        with_header({"w": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}}, b"\0" * 23),
        with_header({"w": {"dtype": "F32", "shape": [3, 3], "data_offsets": [0, 24]}}),
    ],
    ids=["empty", "noise", "list", "too far", "cut", "wrong shape"],
)
def test_damaged_weights_are_named(program, weights, tmp_path, content):
    (tmp_path / "damaged.safetensors").write_bytes(content)
    program(DENSE, weights).save(tmp_path / "dense.cohort")
    for load in (lambda given: cohort.load(tmp_path / "dense.cohort", given), lambda given: program(DENSE, given)):
        with pytest.raises(cohort.WeightsError, match="damaged.safetensors is not a usable safetensors file"):
            load(tmp_path / "damaged.safetensors")
        with pytest.raises(cohort.WeightsError, match="weights (are|is) not a usable safetensors file"):
            load(content)


def test_what_the_compiler_warns_of_is_a_warning_also_where_the_artifact_was_kept(program, tmp_path, monkeypatch):
    monkeypatch.setenv("COHORT_CACHE", os.fspath(tmp_path / "cache"))
    for options in ({}, {}, {"cache": False}):
        with pytest.warns(cohort.CompileWarning, match="nothing uses `y`") as warned:
            program("fn main(x: [f32]) -> f32 { let y = x[3]; 1.0 }", **options)
        assert [warning.filename for warning in warned] == [conftest.__file__]


def test_a_folder_where_others_may_write_is_no_cache(program, tmp_path, monkeypatch):
    compiled = []
    run = _compile._run
    monkeypatch.setattr(_compile, "_run", lambda *given: compiled.append(1) or run(*given))
    folder = tmp_path / "cache"
    monkeypatch.setenv("COHORT_CACHE", os.fspath(folder))
    text = "fn main(k: i32) -> i32 { k }"
    program(text)
    assert folder.stat().st_mode & 0o777 == 0o700
    program(text)
    assert len(compiled) == 1
    folder.chmod(0o770)
    program(text)
    assert len(compiled) == 2
    kept = len(list(folder.iterdir()))
    program(text + "// Another text.")
    assert len(compiled) == 3 and len(list(folder.iterdir())) == kept
    monkeypatch.chdir(tmp_path)
    for unused in ("", "relative"):
        monkeypatch.setenv("COHORT_CACHE", unused)
        program(text)
    assert len(compiled) == 5 and not (tmp_path / "relative").exists()


def test_what_a_process_that_died_left_in_the_cache_is_removed(program, tmp_path, monkeypatch):
    monkeypatch.setenv("COHORT_CACHE", os.fspath(tmp_path))
    old, new = tmp_path / "old.unfinished", tmp_path / "new.unfinished"
    tmp_path.chmod(0o700)
    old.write_bytes(b"")
    new.write_bytes(b"")
    os.utime(old, (0, 0))
    # Without what the compiler keeps, which removes it too.
    _compile._keep(os.fspath(tmp_path), {"a.cohort": b"a"})
    assert not old.exists() and new.exists() and (tmp_path / "a.cohort").read_bytes() == b"a"


def test_weights_that_ctrl_c_stops_from_being_replaced_are_not_replaced_later(tmp_path, interrupt):
    (tmp_path / "program.coh").write_text("param w: f32[1]\nfn main(x: f32[1]) -> f32[1] { x * w }")
    script = f"""
import cohort, numpy as np, threading
m = cohort.compile({str(tmp_path / "program.coh")!r}, {{"w": np.float32([2])}})
has_begun, may_end = threading.Event(), threading.Event()
def instances():
    has_begun.set()
    may_end.wait()
    yield {{"x": [1.0]}}
# Until this call ends, what replaces weights waits.
call = threading.Thread(target=lambda: m(instances()))
call.start()
has_begun.wait()
print("begun", flush=True)
try:
    m.set_weights({{"w": np.float32([3])}})
except KeyboardInterrupt:
    may_end.set()
    call.join()
    print(m([{{"x": [1.0]}}])[0].tolist())
"""
    assert interrupt(script) == "[2.0]\n"
