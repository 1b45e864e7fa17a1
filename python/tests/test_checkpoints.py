"""Checkpoints with names and layouts of their own: `from` of a program, and `rename=`."""

import importlib.util

import numpy as np
import pytest
from conftest import ROOT

import cohort

BERT = ROOT / "examples/huggingface"


def script():
    spec = importlib.util.spec_from_file_location("make_checkpoint", BERT / "make_checkpoint.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """The script, its tensors, and the folder that has them in several files."""
    made = script()
    folder = tmp_path_factory.mktemp("checkpoint")
    tensors = made.checkpoint()
    made.write(str(folder), tensors, files=3)
    return made, tensors, folder


def test_a_checkpoint_laid_out_as_huggingfaces_gives_what_the_model_does(checkpoint):
    made, tensors, folder = checkpoint
    model = cohort.compile(BERT / "bert.coh", folder, allow_unused_weights=True)
    texts = made.instances(12)
    for text, (rows, pooled) in zip(texts, model(texts, batch=5)):
        expected_rows, expected_pooled, _ = made.reference(tensors, text)
        assert np.abs(rows - expected_rows).max() < 1e-4
        assert np.abs(pooled - expected_pooled).max() < 1e-4


def test_the_same_from_a_dict_has_the_same_bits(checkpoint):
    made, tensors, folder = checkpoint
    texts = made.instances(5)
    one = cohort.compile(BERT / "bert.coh", folder, allow_unused_weights=True)(texts)
    del tensors["exit.weight"]
    other = cohort.compile(BERT / "bert.coh", tensors)(texts)
    for (rows, pooled), (same_rows, same_pooled) in zip(one, other):
        assert rows.tobytes() == same_rows.tobytes() and pooled.tobytes() == same_pooled.tobytes()


def test_texts_leave_at_the_layer_where_the_reference_does(checkpoint):
    made, _, folder = checkpoint
    tensors = made.checkpoint()
    model = cohort.compile(BERT / "early_exit.coh", folder)
    texts = made.instances(16)
    layers = set()
    for text, (rows, pooled, count) in zip(texts, model(texts)):
        expected_rows, expected_pooled, expected = made.reference(tensors, text, leave=True)
        assert count == expected
        assert np.abs(rows - expected_rows).max() < 1e-4 and np.abs(pooled - expected_pooled).max() < 1e-4
        layers.add(count)
    assert len(layers) > 1, "all leave at one layer, which tests nothing"


def test_transformers_agrees(checkpoint):
    pytest.importorskip("transformers")
    pytest.importorskip("torch")
    made, _, _ = checkpoint
    assert made.check() < 1e-4


LAYERS = """dim L, D
param w: f32[L, D, D] from "layer.{}.weight".T
fn main(x: f32[D]) -> f32[D] { for i in range(L) with (x = x) { x @ w[i] } }
"""


def layers(*shapes):
    random = np.random.default_rng(3)
    return {f"layer.{i}.weight": random.standard_normal(shape).astype(np.float32) for i, shape in enumerate(shapes)}


def test_what_a_checkpoint_lacks_is_said_with_its_name(program):
    wrong = layers((3, 3), (3, 3), (3, 3))
    wrong["layer.4.weight"] = wrong.pop("layer.1.weight")
    with pytest.raises(cohort.WeightsError, match="there is `layer.4.weight`, and no `layer.1.weight`"):
        program(LAYERS, wrong)
    with pytest.raises(cohort.WeightsError, match=r"`layer.1.weight` is f32\[3, 4\]"):
        program(LAYERS, layers((3, 3), (3, 4)))
    model = program(LAYERS, layers((3, 3), (3, 3)))
    with pytest.raises(cohort.WeightsError, match=r"`layer.1.weight`, for `w`: expected f32\[3, 3\], found f32\[4, 3\]"):
        model.set_weights(layers((3, 3), (4, 3)))
    with pytest.raises(cohort.WeightsError, match="the program has no such parameter"):
        model.set_weights(layers((3, 3), (3, 3), (3, 3)))


def test_rename_and_from_go_together(program):
    weights = {f"model.{name}": tensor for name, tensor in layers((3, 3), (3, 3)).items()}
    model = program(LAYERS, weights, rename=lambda name: name.removeprefix("model."))
    x = np.array([1, 2, 3], np.float32)
    expected = x @ weights["model.layer.0.weight"].T @ weights["model.layer.1.weight"].T
    assert np.allclose(model([{"x": x}])[0], expected, atol=1e-5)


def test_parameters_of_a_module_are_as_the_program_declares_them(program):
    torch = pytest.importorskip("torch")
    import cohort.torch

    weights = layers((3, 3), (3, 3))
    module = cohort.torch.Module(program(LAYERS, weights))
    expected = np.stack([tensor.T for tensor in weights.values()])
    assert np.array_equal(module.w.detach().numpy(), expected)
    x = {"x": np.ones(3, np.float32)}
    before = module([x]).detach()
    with torch.no_grad():
        module.w *= 2
    assert torch.allclose(module([x]).detach(), before * 4)


def test_what_is_kept_is_made_anew_when_an_imported_file_changes(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "p.coh").write_text('import // items\n "deep/a.coh" fn main(x: f32) -> f32 { f(x) }')
    (tmp_path / "deep/a.coh").write_text('import "b.coh" fn f(x: f32) -> f32 { g(x) + 1 }')
    for factor in (2, 3):
        (tmp_path / "deep/b.coh").write_text(f'import "a.coh" fn g(x: f32) -> f32 {{ x * {factor}.0 }}')
        assert cohort.compile(tmp_path / "p.coh")([{"x": 5.0}])[0] == 5 * factor + 1
