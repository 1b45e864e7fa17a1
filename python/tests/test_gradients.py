"""Gradients from Python: of a model, and of one that is a part of a PyTorch model."""

import json
import pathlib
import runpy
import subprocess

import numpy as np
import pytest
from conftest import BATCH_RUN

import cohort

torch = pytest.importorskip("torch", reason="PyTorch is not installed: cohort.torch is NOT tested")

import cohort.torch  # noqa: E402

DENSE = """
dim N, M
param w: f32[N, M]   param b: f32[M]   param table: f32[5, M]   param unused: f32[2]
fn main(x: f32[N], k: i32) -> (f32[M], i32) { (tanh(x @ w + b) + table[k] * table[k], k) }
fn loss(x: f32[N], k: i32) -> (f32, i32) { let (y, c) = main(x, k); (sum(y), c) }
"""

TREES = """
dim N
param w: f32[N, N]
type Tree = Leaf(f32[N], f32) | Node(left: Tree, right: Tree)
fn state(t: Tree) -> f32[N] {
  match t { Leaf(x, s) => x * s, Node(l, r) => tanh(state(l) @ w + state(r)) }
}
fn main(t: Tree, rows: f32[n, N], more: [f32[N]]) -> (f32[N], f32[n, N], [f32[N]]) {
  let s = state(t);
  (s, rows * s, map(more, |one| one + s))
}
"""


def weights(seed):
    rng = np.random.default_rng(seed)
    shapes = {"w": (3, 4), "b": (4,), "table": (5, 4), "unused": (2,)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def instances(count):
    return [{"x": [0.5, i / 7, -i / 3], "k": i % 5} for i in range(count)]


@pytest.fixture
def m(program):
    return program(DENSE, weights(0), gradients=True)


@pytest.fixture
def module(m):
    return cohort.torch.Module(m)


def reference(params, given):
    """The same in PyTorch."""
    x = torch.stack([torch.as_tensor(one["x"]) for one in given])
    k = torch.tensor([one["k"] for one in given])
    return torch.tanh(x @ params["w"] + params["b"]) + params["table"][k] ** 2


def close(left, right):
    np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


def test_a_model_gives_the_gradients_that_batch_run_writes(program, tmp_path):
    m = program(DENSE, weights(0), entry="loss", gradients=True)
    cohort_weights = tmp_path / "weights.safetensors"
    cohort_weights.write_bytes(m._weights)
    command = [BATCH_RUN, tmp_path / "program.coh", "--entry", "loss", "--weights", cohort_weights, "--quiet"]
    command += ["--gradients", tmp_path / "g", "--input-gradients", tmp_path / "inputs"]
    lines = "".join(json.dumps(one) + "\n" for one in instances(9))
    subprocess.run(command, input=lines, text=True, check=True, stdout=subprocess.DEVNULL)
    from cohort import _weights

    expected = _weights.read(str(tmp_path / "g"))
    for batch, threads in [(256, 1), (2, 2)]:
        given = m.gradients(instances(9), inputs=True, batch=batch, threads=threads)
        assert {name: array.tobytes() for name, array in given.params.items()} == {
            name: tensor.data.tobytes() for name, tensor in expected.items()
        }
        records = [json.loads(line) for line in (tmp_path / "inputs").read_text().splitlines()]
        assert [own[0].tolist() for own in given.inputs] == [
            np.float32(record["gradient"]["x"]).tolist() for record in records
        ]
        assert [output[1] for output in given.outputs] == [i % 5 for i in range(9)]
    assert given.params["unused"].tolist() == [0, 0]


def test_cotangents_weigh_outputs(m):
    given = instances(4)
    seeds = [np.float32([i, 1, 0, -1]) for i in range(4)]
    params = {name: torch.tensor(array, requires_grad=True) for name, array in weights(0).items()}
    (reference(params, given) * torch.tensor(np.stack(seeds))).sum().backward()
    gradients = m.gradients(given, [(seed, None) for seed in seeds])
    for name in ("w", "b", "table"):
        close(gradients.params[name], params[name].grad)
    assert gradients.inputs is None
    # What is wrong with one is its instance's error.
    wrong = m.gradients(given, [(seeds[0], None), (np.zeros(3), None), (seeds[2], None), (None, None)], errors="return")
    assert [error.index for error in wrong.outputs.errors] == [1]
    assert "not of the output's form" in str(wrong.outputs.errors[0])
    two = m.gradients([given[0], given[2]], [(seeds[0], None), (seeds[2], None)])
    assert wrong.params["w"].tobytes() == two.params["w"].tobytes()
    with pytest.raises(cohort.InstanceError, match="not of the output's form"):
        m.gradients(given[:1], [(np.zeros(5), None)])
    with pytest.raises(ValueError, match="3 cotangents for 4"):
        m.gradients(given, [(None, None)] * 3)
    with pytest.raises(ValueError, match="a tuple of as many"):
        m.gradients(given, seeds)
    with pytest.raises(ValueError, match="there is no loss"):
        m.gradients(given)


def test_a_program_without_gradients_says_how_to_get_them(program):
    with pytest.raises(ValueError, match="gradients=True"):
        program(DENSE, weights(0)).gradients(instances(1))


def test_weights_that_are_set_are_differentiated_by(m):
    seeds = [(np.ones(4), None)] * 3
    m.gradients(instances(3), seeds)
    m.set_weights(weights(1))
    params = {name: torch.tensor(array, requires_grad=True) for name, array in weights(1).items()}
    reference(params, instances(3)).sum().backward()
    close(m.gradients(instances(3), seeds).params["w"], params["w"].grad)


def test_a_draw_gives_other_random_numbers(program):
    text = "param w: f32[8]\nfn main(x: f32) -> f32[8] { dropout(w * x, 0.5, 1) }"
    ones = {"w": np.ones(8, np.float32)}
    m = program(text, ones, gradients=True)
    given = [{"id": i, "x": 1.0} for i in range(5)]
    first, other = m(given).numpy(), m(given, draw=7).numpy()
    assert (first != other).any() and (m(given, draw=7).numpy() == other).all()
    assert (program(text, ones, draw=7)(given).numpy() == other).all()
    gradients = m.gradients(given, [np.ones(8)] * 5, draw=7)
    close(gradients.params["w"], other.sum(0))
    module = cohort.torch.Module(m, draw=7)
    module(given).sum().backward()
    close(module.w.grad, other.sum(0))
    for draw in (-1, 1 << 64, 0.5, True):
        with pytest.raises(ValueError, match="draw is"):
            m(given, draw=draw)


def test_a_module_has_the_gradients_of_the_same_model_in_pytorch(module):
    given = instances(7)
    head = torch.nn.Linear(4, 2)
    out, _ = module(given)
    loss = head(out).pow(2).mean()
    loss.backward()
    params = {name: torch.tensor(array, requires_grad=True) for name, array in weights(0).items()}
    expected = torch.nn.Linear(4, 2)
    expected.load_state_dict(head.state_dict())
    expected(reference(params, given)).pow(2).mean().backward()
    for name in ("w", "b", "table"):
        close(getattr(module, name).grad, params[name].grad)
    assert module.unused.grad.tolist() == [0, 0]
    close(head.weight.grad, expected.weight.grad)


def test_gradients_reach_the_tensors_of_instances(module):
    encoder = torch.nn.Linear(2, 3)
    raw = torch.arange(10.0).reshape(5, 2) / 10
    shared = encoder(raw[0])
    given = [{"x": encoder(row), "k": 1} for row in raw] + [{"x": shared, "k": 2}, {"x": shared, "k": 3}]
    module(given)[0].pow(2).sum().backward()
    found = encoder.weight.grad.clone()
    params = {name: torch.tensor(array) for name, array in weights(0).items()}
    encoder.zero_grad()
    shared = encoder(raw[0])
    given = [{"x": encoder(row), "k": 1} for row in raw] + [{"x": shared, "k": 2}, {"x": shared, "k": 3}]
    reference(params, given).pow(2).sum().backward()
    close(found, encoder.weight.grad)
    frozen = torch.ones(3, requires_grad=True)
    module.zero_grad()
    module.requires_grad_(False)
    module([{"x": frozen, "k": 0}])[0].sum().backward()
    assert module.w.grad is None and frozen.grad.shape == (3,)
    with pytest.raises(TypeError, match="torch.stack"):
        module([{"x": [torch.ones((), requires_grad=True)] * 3, "k": 0}])


def test_gradients_reach_trees_lengths_and_arrays(program):
    m = program(TREES, {"w": np.float32([[0.5, -1], [0.25, 2]])}, gradients=True)
    module = cohort.torch.Module(m)
    rng = np.random.default_rng(3)

    def tensor(*shape):
        return torch.tensor(rng.standard_normal(shape), dtype=torch.float32, requires_grad=True)

    def state(tree, w):
        return tree[1] * tree[2] if tree[0] == "Leaf" else torch.tanh(state(tree[1], w) @ w + state(tree[2], w))

    def trees(a, b, s):
        tree = ("Node", ("Leaf", a, s), ("Node", ("Leaf", b, 0.5), ("Leaf", a, 2.0)))
        yield tree
        yield {"Node": {"right": {"Leaf": [b, 0.5]}, "left": {"Leaf": [a, s]}}}
        yield m.types.Node(m.types.Leaf(a, s), m.types.Leaf(b, 0.5))

    both = (("Node", ("Leaf", "a", "s"), ("Leaf", "b", 0.5)),) * 2
    for number in range(3):
        a, b, s, rows, one = tensor(2), tensor(2), tensor(), tensor(3, 2), tensor(2)
        leaves = [a, b, s, rows, one, module.w]
        given = [{"t": list(trees(a, b, s))[number], "rows": rows, "more": [one, [1.0, 2.0]]}]
        top, of_rows, more = module(given)
        weights_of = torch.tensor([1.0, -2.0])
        loss = (top * weights_of).sum() + of_rows[0].pow(2).sum()
        found = torch.autograd.grad(loss, leaves, allow_unused=True)
        w = torch.tensor([[0.5, -1], [0.25, 2]], requires_grad=True)
        plain = {"a": a, "b": b, "s": s, 0.5: 0.5}
        tree = list(trees(a, b, s))[0] if number == 0 else None
        if tree is None:
            spec = both[0]
            tree = ("Node", ("Leaf", plain[spec[1][1]], plain[spec[1][2]]), ("Leaf", plain[spec[2][1]], 0.5))
        expected_top = state(tree, w)
        expected = (expected_top * weights_of).sum() + (rows * expected_top).pow(2).sum()
        of = torch.autograd.grad(expected, [a, b, s, rows, w])
        for left, right in zip([found[0], found[1], found[2], found[3], found[5]], of):
            close(left, right)
        assert found[4].tolist() == [0, 0]
        assert isinstance(more[0][0], np.ndarray)


def test_what_is_changed_before_backward_is_told(module):
    out, _ = module(instances(3))
    with torch.no_grad():
        module.w += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_backward_twice(module):
    out, _ = module(instances(3))
    out.sum().backward(retain_graph=True)
    once = module.w.grad.clone()
    out.sum().backward()
    assert torch.equal(module.w.grad, 2 * once)
    with pytest.raises(RuntimeError, match="second time"):
        out.sum().backward()
    out, _ = module(instances(3))
    with pytest.raises(RuntimeError, match="no gradients of gradients"):
        torch.autograd.grad(out.sum(), module.w, create_graph=True)


def test_any_optimiser_trains_it_and_states_are_followed(module):
    given, target = instances(10), torch.zeros(10, 4)
    for make in (torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW):
        module.load_state_dict({name: torch.from_numpy(array) for name, array in weights(5).items()})
        optimiser = make(module.parameters(), lr=0.02)
        losses = []
        for _ in range(12):
            optimiser.zero_grad()
            loss = (module(given)[0] - target).pow(2).mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
    halves = cohort.torch.Module(module.model).half()
    halves(given)[0].sum().backward()
    assert halves.w.grad.dtype == torch.float16


def test_an_instance_that_fails_in_backward_raises(program):
    m = program("param w: f32[2]\nfn main(x: f32[2]) -> f32[2] { log(x) * w }", {"w": np.float32([1, 2])}, gradients=True)
    module = cohort.torch.Module(m)
    out = module([{"x": [1.0, 0.0]}])
    with pytest.raises(cohort.InstanceError, match="has no gradient"):
        out.sum().backward()


def test_the_example_learns():
    path = pathlib.Path(__file__).parents[1] / "examples/train_in_pytorch.py"
    trained = runpy.run_path(str(path))["train"](epochs=8, count=240)
    assert trained["accuracy"] > 0.85, trained


def test_a_cotangent_has_the_shape_of_its_output(program):
    m = program("param w: f32[3, 3]\nfn main(x: f32[n, 3]) -> (f32[n, 3], f32) { (x @ w, sum(x)) }", {"w": np.eye(3, dtype="f4")}, gradients=True)
    given = [{"x": np.ones((2, 3))}]
    good = (np.arange(6).reshape(2, 3), 1.0)
    assert m.gradients(given, [good]).params["w"].shape == (3, 3)
    for cotangent in ((good[0].T, 1.0), (good[0].reshape(-1), 1.0), (good[0], [1.0])):
        with pytest.raises(cohort.InstanceError, match="it should be of shape .* and not"):
            m.gradients(given, [cotangent])


def test_gradients_are_pickled(m):
    import pickle

    gradients = m.gradients(instances(3), [np.ones(4)] * 3 if "tuple" not in m._manifest["result"] else [(np.ones(4), None)] * 3, inputs=True)
    again = pickle.loads(pickle.dumps(gradients))
    assert all(np.array_equal(again.params[name], own) for name, own in gradients.params.items())
    assert np.array_equal(again.inputs[2][0], gradients.inputs[2][0]) and np.array_equal(again.outputs[1][0], gradients.outputs[1][0])


def test_a_program_with_gradients_takes_the_tensors_that_others_take(program):
    text = "dim D\nparam w: f32[D]\nfn main(x: [f32[D]], ks: [f32]) -> f32 { fold(x, 0.0, |s, one| s + sum(one * w)) + fold(ks, 0.0, |s, k| s + k) }"
    ones = {"w": np.float32([1, 2])}
    m, plain = program(text, ones, gradients=True), program(text, ones)
    array, numbers = np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([7, 8])
    for x, ks in ((array, numbers), (torch.tensor(array), torch.tensor(numbers))):
        assert m([{"x": x, "ks": ks}])[0] == plain([{"x": x, "ks": ks}])[0] == 48
    x, ks = torch.tensor(array, requires_grad=True), torch.tensor(numbers, requires_grad=True)
    cohort.torch.Module(m)([{"x": x, "ks": ks}]).sum().backward()
    assert x.grad.tolist() == [[1, 2]] * 3 and ks.grad.tolist() == [1, 1]
