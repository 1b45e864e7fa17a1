"""A program as a part of a PyTorch model. Skipped where PyTorch is not installed."""

import copy
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: cohort.torch is NOT tested")

import cohort  # noqa: E402
import cohort.torch  # noqa: E402

DENSE = """
dim N, M
param w: f32[N, M]   param b: f32[M]   param table: f32[5, M]
fn main(x: f32[N], k: i32) -> (f32[M], i32) { (tanh(x @ w + b) + table[k], k) }
"""


def weights(seed):
    rng = np.random.default_rng(seed)
    shapes = {"w": (3, 4), "b": (4,), "table": (5, 4)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def instances(count):
    return [{"x": [0.5, i / 7, -i], "k": i % 5} for i in range(count)]


@pytest.fixture
def m(program):
    return program(DENSE, weights(0))


@pytest.fixture
def module(m):
    return cohort.torch.Module(m)


@pytest.fixture
def fresh(m, tmp_path):
    """What a model gives that is loaded with the state of a module."""
    m.save(tmp_path / "model.cohort")

    def run(module, given):
        return cohort.load(tmp_path / "model.cohort", module.state_dict())(given).tensor(0).tobytes()

    return run


def bits(tensor):
    return tensor.detach().numpy().tobytes()


def test_a_module_has_the_parameters_and_gives_the_bits_of_the_model(m, module):
    assert {name: tuple(p.shape) for name, p in module.named_parameters()} == {"w": (3, 4), "b": (4,), "table": (5, 4)}
    expected = m(instances(9))
    out, k = module(instances(9))
    assert bits(out) == expected.tensor(0).tobytes() and out.requires_grad
    assert k.dtype == torch.int32 and k.tolist() == [i % 5 for i in range(9)]
    assert "main(x: f32[3], k: i32)" in repr(module)


CHANGES = {
    "in place": lambda module: module.w.detach().add_(0.25),
    "through data": lambda module: module.table.data.mul_(1.5),
    "one element": lambda module: module.table.data.__setitem__((4, 0), 7.0),
    "a state dict": lambda module: module.load_state_dict({n: torch.from_numpy(a) for n, a in weights(9).items()}),
    "another parameter": lambda module: setattr(module, "b", torch.nn.Parameter(torch.ones(4))),
    "not a number": lambda module: module.b.data.fill_(float("nan")),
    "halves": lambda module: module.half(),
    "brains": lambda module: module.to(torch.bfloat16),
    "doubles": lambda module: module.double().w.data.mul_(2),
    "strides": lambda module: setattr(module, "w", torch.nn.Parameter(torch.arange(12.0).reshape(4, 3).T)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_set_then_run_is_what_is_loaded_then_run(module, fresh, change):
    given = instances(9)
    before = bits(module(given)[0])
    for _ in range(2):
        CHANGES[change](module)
        after = bits(module(given)[0])
        assert after == fresh(module, given)
    assert after != before


def test_a_model_with_tables_kept_calls_and_computed_weights(treelstm, trees, tmp_path):
    treelstm.save(tmp_path / "model.cohort")
    m = cohort.load(tmp_path / "model.cohort", treelstm._weights)
    module = cohort.torch.Module(m, batch=7)
    for step in range(3):
        with torch.no_grad():
            for parameter in module.parameters():
                parameter += 0.01 * step
        loaded = cohort.load(tmp_path / "model.cohort", module.state_dict())
        assert bits(module(trees[0])) == loaded(trees[0]).tensor(0).tobytes()


def test_modules_that_share_a_model(m):
    one, other = cohort.torch.Module(m), cohort.torch.Module(m)
    other.load_state_dict({name: torch.from_numpy(array) for name, array in weights(4).items()})
    given = instances(5)
    expected = [bits(one(given)[0]), bits(other(given)[0])]
    assert expected[0] != expected[1]
    assert [bits(one(given)[0]), bits(other(given)[0])] == expected
    alike = copy.deepcopy(other)
    alike.w.data.zero_()
    assert bits(alike(given)[0]) != expected[1] == bits(other(given)[0])


def test_gradients_are_refused_clearly(module):
    with pytest.raises(NotImplementedError, match="compiled without gradients"):
        module(instances(2))[0].sum().backward()
    with torch.no_grad():
        assert not module(instances(2))[0].requires_grad
    module.requires_grad_(False)
    head = torch.nn.Linear(4, 1)
    head(module(instances(2))[0]).sum().backward()
    assert head.weight.grad is not None


def test_a_state_is_saved_and_loaded(module):
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    before = bits(module(instances(3))[0])
    module.w.data.zero_()
    assert bits(module(instances(3))[0]) != before
    module.load_state_dict(torch.load(file))
    assert bits(module(instances(3))[0]) == before
    with pytest.raises(RuntimeError, match="table"):
        module.load_state_dict({"w": module.w, "b": module.b})


def test_an_instance_that_fails_raises(module):
    with pytest.raises(cohort.InstanceError, match="out of range"):
        module([*instances(2), {"id": "bad", "x": [0, 0, 0], "k": 9}])
    assert module(instances(2))[0].shape == (2, 4)
    module.w.data = torch.zeros(2, 2)
    with pytest.raises(cohort.WeightsError, match="expected f32"):
        module(instances(2))


def test_results_of_other_shapes_are_lists(program):
    m = program("type Pair = P(f32, f32)\nparam w: f32[2]\nfn main(x: f32[n, 2]) -> (f32[n, 2], Pair) { (x * w, P(1.0, 2.0)) }", {"w": np.float32([2, 3])})
    rows, pairs = cohort.torch.Module(m)([{"x": [[1, 1]] * count} for count in (1, 3)])
    assert [row.tolist() for row in rows] == [[[2, 3]], [[2, 3]] * 3] and rows[0].requires_grad
    assert pairs == [m.types.P(1.0, 2.0)] * 2
