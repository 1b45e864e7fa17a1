"""Instances of flat arrays."""

import re

import numpy as np
import pytest
from conftest import ROOT

import cohort

TREE = """
type Tree = Leaf(i32, f32[2]) | Node(Tree, Tree) | Empty
fn walk(t: Tree) -> (i32, f32[2]) {
  match t {
    Leaf(k, x) => (k, x),
    Node(l, r) => { let (a, x) = walk(l); let (b, y) = walk(r); (10 * a + b, 2.0 * x + y) }
    Empty => (7, ones([2])),
  }
}
fn main(t: Tree, ks: [i32], x: f32[n, 2], s: f32) -> (i32, f32[2], [i32], f32[n, 2], f32) {
  let (k, y) = walk(t);
  (k, y, ks, x, s)
}
"""


@pytest.fixture
def tree(program):
    return program(TREE)


def arrays(**changes):
    return {
        # Node(Leaf 1, Node(Empty, Leaf 2)); Leaf 3; Empty
        "t": {
            "tags": np.array([0, 2, 0, 1, 1, 0, 2], np.uint8),
            "ends": np.array([5, 6, 7]),
            "Leaf": [np.array([1, 2, 3], np.int32), np.arange(6, dtype=np.float32).reshape(3, 2)],
        },
        "ks": (np.array([4, 5, 6]), np.array([0, 2, 2, 3])),
        "x": (np.arange(8.0).reshape(4, 2), np.array([0, 1, 4, 4])),
        "s": np.array([0.5, 1.5, np.nan]),
    } | changes


def test_flat_arrays_are_the_same_instances(tree):
    Leaf, Node, Empty = tree.types.Leaf, tree.types.Node, tree.types.Empty
    trees = [Node(Leaf(1, [0, 1]), Node(Empty(), Leaf(2, [2, 3]))), Leaf(3, [4, 5]), "Empty"]
    rows = np.arange(8.0).reshape(4, 2)
    instances = [
        {"t": t, "ks": ks, "x": x, "s": s}
        for t, ks, x, s in zip(trees, ([4, 5], [], [6]), (rows[:1], rows[1:], rows[:0]), (0.5, 1.5, float("nan")))
    ]
    flat = tree.flat(**arrays())
    assert len(flat) == 3
    for batch in (1, 2, 256):
        ours, theirs = tree(flat, batch=batch), tree(instances, batch=batch)
        assert ours.ids == theirs.ids == [1, 2, 3]
        for part in range(5):
            assert ours.tensor(part).tobytes() == theirs.tensor(part).tobytes()
            assert ours.offsets(part).tolist() == theirs.offsets(part).tolist()
    assert tree.explain()["instances"] == 3


def swapped(array):
    return array.astype(array.dtype.newbyteorder(">"))


def strided(array):
    wide = np.zeros([2 * length for length in array.shape], array.dtype)
    wide[tuple(slice(1, None, 2) for _ in array.shape)] = array
    return wide[tuple(slice(1, None, 2) for _ in array.shape)]


def reversed_(array):
    return np.ascontiguousarray(array[::-1])[::-1]


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("layout", [swapped, strided, reversed_, np.asfortranarray, read_only])
def test_flat_arrays_of_any_layout_are_read_as_their_numbers(tree, layout):
    def laid_out(value):
        match value:
            case dict():
                return {name: laid_out(part) for name, part in value.items()}
            case list() | tuple():
                return type(value)(laid_out(part) for part in value)
        return layout(value)

    expected, found = tree(tree.flat(**arrays())), tree(tree.flat(**laid_out(arrays())))
    for part in range(5):
        assert found.tensor(part).tobytes() == expected.tensor(part).tobytes()


def test_no_instances(tree):
    nothing = {
        "t": {"tags": np.empty(0, np.uint8), "ends": np.empty(0, int), "Leaf": [np.empty(0, np.int32), np.empty((0, 2))]},
        "ks": (np.empty(0, int), np.array([0])),
        "x": (np.empty((0, 2)), np.array([0])),
        "s": np.empty(0),
    }
    assert len(tree(tree.flat(**nothing))) == 0


@pytest.mark.parametrize(
    "change, message",
    [
        ({"s": np.ones(2)}, "s is of 2 instances, another argument of 3"),
        ({"s": np.ones((3, 1))}, "expected rows of shape"),
        ({"s": ["a", "b", "c"]}, "expected an array of f32, found an array of <U1"),
        ({"s": [[1, 2], [3]]}, "s: expected an array of f32, found ValueError"),
        ({"s": 3}, "expected an array of f32, found 3"),
        ({"x": np.ones((3, 2))}, "expected the rows of all instances and their offsets"),
        ({"ks": (np.array([4, 5, 6]), np.array([0, 2, 1, 3]))}, "offsets rise"),
        ({"ks": (np.array([4, 5, 6]), np.array([0, 2, 2, 4]))}, "offsets begin with 0"),
        ({"ks": (np.array([4, 5, 6]), np.array([0, -2, 2, 3]))}, "not negative"),
        ({"t": 3}, "expected a dict"),
        ({"t": arrays()["t"] | {"tags": np.array([0, 2, 0, 1, 1, 0, 3])}}, "the tag 3, which no constructor"),
        ({"t": arrays()["t"] | {"ends": np.array([6, 5, 7])}}, "ends rise"),
        ({"t": arrays()["t"] | {"Leaf": [np.ones(3, np.int32)]}}, "expected a list of 2 arrays for Leaf, found 1"),
        ({"t": arrays()["t"] | {"Leaf": [np.ones(4, np.int32), np.ones((4, 2))]}}, "t: Leaf: 4 rows for 3 nodes"),
        ({"t": arrays()["t"] | {"Leafs": []}}, "'Leafs' is neither `tags` nor `ends` nor a constructor of Tree"),
        ({"t": arrays()["t"] | {"tags": np.zeros(8, int)}}, "ends rise up to the number of nodes, 8"),
        ({"z": 1}, "an argument z that the program does not have"),
    ],
    ids=lambda _: None,
)
def test_arrays_that_do_not_fit(tree, change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        tree.flat(**(arrays() | change))


@pytest.mark.parametrize(
    "tags, message",
    [
        ([1, 2, 0, 1, 1, 0, 2], "whose parts are not before it"),
        ([0, 2, 0, 2, 1, 0, 2], "make 3 values, not one"),
        ([0, 2, 0, 1, 1, 1, 2], "whose parts are not before it"),
    ],
)
def test_nodes_that_make_no_value_are_the_error_of_their_instance(tree, tags, message):
    leaves = [column[: tags.count(0)] for column in arrays()["t"]["Leaf"]]
    out = tree(tree.flat(**arrays(t=arrays()["t"] | {"tags": tags, "Leaf": leaves})), errors="return")
    (error,) = out.errors
    assert message in str(error) and error.id in (1, 2)
    assert out[2][0] == 7


def test_too_few_fields_are_the_error_of_the_instances_that_miss_them(tree):
    leaf = [np.array([1], np.int32), np.ones((3, 2))]
    out = tree(tree.flat(**arrays(t=arrays()["t"] | {"Leaf": leaf})), errors="return")
    assert [error.id for error in out.errors] == [1, 2]
    assert "fewer elements than there are nodes" in str(out.errors[0])


def test_lists_and_tensors_are_taken_as_arrays_are(tree):
    def listed(value):
        match value:
            case dict():
                return {name: listed(part) for name, part in value.items()}
            case list() | tuple():
                return type(value)(listed(part) for part in value)
        return value.tolist()

    expected = tree(tree.flat(**arrays()))
    found = tree(tree.flat(**listed(arrays())))
    assert [found.tensor(part).tobytes() for part in range(5)] == [expected.tensor(part).tobytes() for part in range(5)]
    assert len(tree(tree.flat(t={"tags": [], "ends": [], "Leaf": [[], np.empty((0, 2))]}, ks=([], [0]), x=(np.empty((0, 2)), [0]), s=[]))) == 0
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16):
        s = torch.tensor([0.5, 1.5, float("nan")], dtype=dtype, requires_grad=True)
        assert tree(tree.flat(**arrays(s=s))).tensor(4).tobytes() == expected.tensor(4).tobytes()


def test_the_page_on_python_has_instances_that_are_taken(treelstm):
    page = (ROOT / "docs/python.md").read_text()
    (snippet,) = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "m.flat(" in text]
    names = {"m": treelstm, "np": np}
    exec(snippet, names)
    assert names["out"].numpy().shape == (2, 5)


def test_they_are_taken_by_any_model_that_takes_the_same_arguments_and_by_no_other(program, tree):
    assert len(program(TREE + "// Another text.")(tree.flat(**arrays()))) == 3
    lo_hi = program("fn main(lo: f32, hi: f32) -> f32 { hi - lo }")
    flat = lo_hi.flat(lo=[1.0], hi=[5.0])
    assert lo_hi(flat)[0] == 4
    for other in ("fn main(hi: f32, lo: f32) -> f32 { hi - lo }", "fn main(lo: f32) -> f32 { lo }"):
        with pytest.raises(TypeError, match=r"of another program: it takes \(lo: f32, hi: f32\), and this one takes"):
            program(other)(flat)
    text = "type T = {} | {}\nfn main(t: T) -> f32 {{ match t {{ Neg(x) => -x, Pos(x) => x }} }}"
    signs = program(text.format("Neg(f32)", "Pos(f32)"))
    flat = signs.flat(t={"tags": [0], "ends": [1], "Neg": [[3.0]], "Pos": [[]]})
    assert signs(flat)[0] == -3
    with pytest.raises(TypeError, match=r"T = Neg\(f32\) \| Pos\(f32\), and this one takes \(t: T\); T = Pos"):
        program(text.format("Pos(f32)", "Neg(f32)"))(flat)


@pytest.mark.parametrize(
    "arguments",
    [
        {"x": (np.broadcast_to(np.float32(0), (2**31 - 1,)), [0, 5, 2**31 - 1]), "t": {"tags": [0, 0], "ends": [1, 2]}},
        {"x": ([0, 0], [0, 1, 2]), "t": {"tags": np.broadcast_to(np.int8(0), (2**31 - 1,)), "ends": [1, 2**31 - 1]}},
    ],
    ids=["rows", "nodes"],
)
def test_an_instance_above_the_limit_is_refused_before_anything_is_copied(program, arguments):
    m = program("type T = A | B(T)\nfn main(x: f32[n], t: T) -> f32 { sum(x) }", max_memory=10**6)
    with pytest.raises(cohort.InstanceError) as raised:
        m.flat(**arguments)
    assert (raised.value.kind, raised.value.id, raised.value.index) == ("memory_limit", 2, 1)
    assert "raise the limit with max_memory=" in str(raised.value)
