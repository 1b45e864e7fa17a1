"""Programs, artifacts and weights, good and bad."""

import concurrent.futures
import json
import os
import pathlib

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
    with pytest.raises(cohort.CompileError, match="leave it out with `--gradients`"):
        program(DENSE, weights, keep_weights="bf16", gradients=True)
    with pytest.raises(cohort.CompileError, match="`--keep-weights` is of the processor"):
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
    assert raised.value.filename == str(path)
    (tmp_path / "model.cohort").mkdir()
    with pytest.raises(OSError):
        m.save(tmp_path / "model.cohort")
    assert [entry.name for entry in tmp_path.iterdir() if "cohort." in entry.name] == []


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
    with pytest.raises(cohort.WeightsError, match=message):
        cohort.load(tmp_path / "dense.cohort", given)


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
    assert raised.value.code == "E0701"
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
