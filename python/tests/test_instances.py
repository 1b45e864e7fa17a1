"""Instances in all forms that Python has, good and bad."""

import json

import numpy as np
import pytest

import cohort

TREE = "type Tree = Leaf(i32) | Node(Tree, Tree) | Empty\n"
COUNT = TREE + """
fn count(t: Tree) -> i32 {
  match t { Leaf(k) => k, Node(l, r) => count(l) + count(r), Empty => 100 }
}
fn main(t: Tree) -> i32 { count(t) }
"""
ECHO = """
fn main(x: f32[n, 2], k: i32, b: bool, ks: [i32], y: f32[3]) -> (f32[n, 2], i32, bool, [i32], f32[3]) {
  (x, k, b, ks, y)
}
"""


def as_tuples(value):
    if isinstance(value, dict):
        ((name, fields),) = value.items()
        return (name, *[as_tuples(field) for field in fields])
    return value


def as_objects(types, value):
    if isinstance(value, dict):
        ((name, fields),) = value.items()
        return getattr(types, name)(*[as_objects(types, field) for field in fields])
    return value


@pytest.fixture
def count(program):
    return program(COUNT)


@pytest.fixture
def echo(program):
    return program(ECHO)


def good(**changes):
    return {"x": [[1, 2]], "k": 3, "b": True, "ks": [4, 5], "y": [6, 7, 8]} | changes


def test_every_form_gives_the_bits_of_batch_run(treelstm, trees):
    instances, records = trees
    expected = np.array([record["output"] for record in records], np.float32)
    for form in (lambda t: t, as_tuples, lambda t: as_objects(treelstm.types, t)):
        given = [{"id": one["id"], "t": form(one["t"])} for one in instances]
        for batch in (1, 7, 256):
            out = treelstm(given, batch=batch)
            assert out.numpy().dtype == np.float32
            assert out.numpy().tobytes() == expected.tobytes()
            assert out.ids == [record["id"] for record in records]


def test_threads_change_no_bit(treelstm, trees):
    instances, records = trees
    expected = np.array([record["output"] for record in records], np.float32)
    assert treelstm(instances, threads=3).numpy().tobytes() == expected.tobytes()


def test_classes_are_frozen_and_match(count):
    Node, Leaf, Empty = count.types.Node, count.types.Leaf, count.types.Empty
    tree = Node(Leaf(1), Node(Empty(), Leaf(3)))
    match tree:
        case Node(Leaf(k), Node(Empty(), _)):
            assert k == 1
        case _:
            pytest.fail("no match")
    assert tree == Node(Leaf(1), Node(Empty(), Leaf(3))) and hash(tree) == hash(tree)
    assert repr(tree) == "Node(Leaf(1), Node(Empty(), Leaf(3)))"
    with pytest.raises(AttributeError):
        tree._0 = Leaf(2)
    assert count([{"t": tree}, {"t": "Empty"}, {"t": ("Empty",)}])[:] == [104, 100, 100]


def test_depth_has_no_limit_but_the_programs(program):
    m = program(TREE + "fn main(t: Tree) -> Tree { t }", max_depth=3_000_000)
    tuples, objects, dicts = ("Leaf", 1), m.types.Leaf(1), {"Leaf": [1]}
    for _ in range(100_000):
        tuples = ("Node", "Empty", tuples)
        objects = m.types.Node(m.types.Empty(), objects)
        dicts = {"Node": ["Empty", dicts]}
    out = m([{"t": tuples}, {"t": objects}, {"t": dicts}])
    for value in out:
        depth = 0
        while not isinstance(value, m.types.Leaf):
            value, depth = value._1, depth + 1
        assert (depth, value._0) == (100_000, 1)


def test_objects_that_contain_themselves_are_errors(count):
    loop = []
    loop.extend(["Empty", {"Node": loop}])
    node = {"Node": ["Empty"]}
    node["Node"].append(node)
    out = count([{"id": "a", "t": {"Node": loop}}, {"t": node}, {"t": "Empty"}], errors="return")
    assert [error.id for error in out.errors] == ["a", 2]
    assert all("contains itself" in str(error) for error in out.errors)
    assert out[2] == 100


def test_lists_that_contain_themselves_or_are_deep_where_none_is_wanted(echo):
    loop = []
    loop.append(loop)
    deep = []
    for _ in range(200_000):
        deep = [deep]
    for change in ({"ks": loop}, {"x": loop}, {"y": loop}, {"ks": deep}, {"x": deep}, {"k": deep}):
        (error,) = echo([good() | change], errors="return").errors
        assert error.kind == "bad_input" and "found a list" in str(error)


def test_an_object_that_changes_what_is_read(echo):
    class Clearing:
        def __array__(self, *args, **kwargs):
            rows.clear()
            return np.ones(2, np.float32)

    rows = [Clearing(), Clearing(), Clearing()]
    out = echo([good(x=rows), good()], errors="return")
    assert isinstance(out[0], cohort.InstanceError) or len(out[0][0]) == 1
    assert out[1][1] == 3


def test_a_shared_part_is_no_cycle(count):
    tree = ("Leaf", 1)
    for _ in range(12):
        tree = ("Node", tree, tree)
    assert count([{"t": tree}])[0] == 1 << 12


def test_values_of_all_types_arrive(echo):
    x, k, b, ks, y = echo([good()])[0]
    assert x.tolist() == [[1, 2]] and x.dtype == np.float32
    assert (k, b, ks, y.tolist()) == (3, True, [4, 5], [6, 7, 8])
    # Scalars and arrays of NumPy.
    given = good(
        x=np.arange(8, dtype=np.float32).reshape(4, 2),
        k=np.int64(-1),
        b=np.bool_(False),
        ks=np.array([1, 2, 3], np.int16),
        y=np.array([1, 2, 3], np.uint8),
    )
    x, k, b, ks, y = echo([given])[0]
    assert x.tolist() == given["x"].tolist()
    assert (k, b, ks, y.tolist()) == (-1, False, [1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1, 2], [3, 4]], ">f4"),
        np.array([[1, 2], [3, 4]], "<f8"),
        np.array([[1, 2], [3, 4]], ">f8"),
        np.array([[1, 2], [3, 4]], "f2"),
        np.array([[1, 2], [3, 4]], "i8"),
        np.array([[1, 2], [3, 4]], ">i2"),
        np.array([[1, 3], [2, 4]], "f4").T,
        np.array([[3, 4], [1, 2]], "f4")[::-1],
        np.asfortranarray(np.array([[1, 2], [3, 4]], "f4")),
        np.array([[1, 0, 2, 0], [3, 0, 4, 0]], "f4")[:, ::2],
        memoryview(np.array([[1, 2], [3, 4]], "f4")),
        np.array([[0, 1, 0, 2], [0, 3, 0, 4]], ">f8")[:, 1::2],
        np.frombuffer(b"-" + np.array([[1, 2], [3, 4]], "f4").tobytes(), "f4", offset=1).reshape(2, 2),
        np.matrix([[1, 2], [3, 4]]),
        [np.array([1, 2], "f4"), (3.0, np.float64(4))],
    ],
    ids=str,
)
def test_arrays_of_any_layout_are_read_as_their_numbers(echo, array):
    assert echo([good(x=array)])[0][0].tolist() == [[1, 2], [3, 4]]


def test_a_read_only_array_and_one_without_elements(echo):
    array = np.ones((2, 2), np.float32)
    array.flags.writeable = False
    assert echo([good(x=array)])[0][0].tolist() == [[1, 1], [1, 1]]
    assert echo([good(x=np.empty((0, 2)))])[0][0].shape == (0, 2)
    assert echo([good(x=[])])[0][0].shape == (0, 2)


def test_numbers_that_are_not_finite_go_both_ways(echo):
    for form in ([float("nan"), float("inf"), -float("inf")], ["NaN", "Infinity", "-Infinity"]):
        y = echo([good(y=form)])[0][4]
        assert np.isnan(y[0]) and y[1] == np.inf and y[2] == -np.inf


class Hostile:
    def __array__(self, *args, **kwargs):
        raise ValueError("not today")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"k": 1.0}, "argument k: expected an i32, found 1.0"),
        ({"k": 1 << 31}, "argument k: expected an i32, found 2147483648"),
        ({"k": 1 << 40000}, "argument k: expected an i32, found an object of int"),
        ({"k": True}, "argument k: expected an i32, found True"),
        ({"k": None}, "argument k: expected an i32, found None"),
        ({"k": "3"}, "argument k: expected an i32, found '3'"),
        ({"k": np.float32(1)}, "found an array of float32 ()"),
        ({"b": 1}, "argument b: expected"),
        ({"y": [1, 2]}, "argument y: at [2]: expected an f32, found the end of the list"),
        ({"y": [1, 2, 3, 4]}, "argument y: at [3]: expected the end of the list after 3, found 4"),
        ({"y": [1, 2, 1e39]}, "argument y: at [2]: expected an f32, found 1e+39"),
        ({"y": np.ones(4, np.float32)}, "argument y: expected a list of 3 (f32[3]), found an array f32[4]"),
        ({"y": np.array([1, 2, 1e39])}, "with a number that does not fit"),
        ({"y": np.array([1j, 2, 3])}, "found an array of complex128 (3,)"),
        ({"y": np.array(["a", "b", "c"])}, "found an array of <U1 (3,)"),
        ({"y": np.array([{}, 2, 3])}, "found an array of object (3,)"),
        ({"y": np.array(3, "M8[s]")}, "argument y: "),
        ({"y": np.zeros(3, np.longdouble)}, "found an array of float128 (3,)"),
        ({"y": np.zeros(3, [("a", "f4"), ("b", "f4")])}, "found an array of [('a', '<f4'), ('b', '<f4')]"),
        ({"y": np.array([True, False, True])}, "found an array of bool (3,)"),
        ({"ks": (k for k in range(3))}, "argument ks: expected a list, found an object of generator"),
        ({"ks": np.array([1 << 63], np.uint64)}, "with a number that does not fit"),
        ({"id": "\ud800"}, "id: expected a str or an int"),
        ({"ks": np.array([1.5, 2])}, "found an array of float64 (2,)"),
        ({"ks": np.array([1 << 40])}, "with a number that does not fit"),
        ({"ks": np.ones((2, 2), np.int32)}, "argument ks: expected a list, found an array i32[2, 2]"),
        ({"ks": {1, 2}}, "argument ks: expected a list, found an object of set"),
        ({"ks": b"abc"}, "argument ks: expected a list, found an object of bytes"),
        ({"x": np.ones((2, 3), np.float32)}, "argument x: expected a list (f32[n, 2]), found an array f32[2, 3]"),
        ({"x": Hostile()}, "argument x: expected an array, found an object of Hostile, which raised ValueError: not today"),
        ({"y": [1, 2, np.float64(1e300)]}, "argument y: at [2]: expected an f32, found 1e300"),
        ({"z": 1}, "unknown key 'z': expected the arguments of the program (x, k, b, ks, y)"),
        ({7: 1}, "unknown key 7"),
        ({"id": 1.5}, "id: expected a str or an int, found 1.5"),
    ],
    ids=lambda _: None,
)
def test_what_is_wrong_is_told_and_harms_no_other(echo, change, message):
    out = echo([good(), good() | change, good()], errors="return")
    (error,) = out.errors
    assert isinstance(error, cohort.InstanceError) and isinstance(out[1], cohort.InstanceError)
    assert (error.kind, error.id, error.index) == ("bad_input", 2, 1)
    assert message in str(error)
    assert out[0][1] == out[2][1] == 3
    with pytest.raises(cohort.InstanceError) as raised:
        echo([good(), good() | change])
    assert raised.value.id == 2


@pytest.mark.parametrize("instance", [None, 3, "t", [], object()])
def test_an_instance_is_a_dict(count, instance):
    (error,) = count([instance], errors="return").errors
    assert "expected a dict with an instance" in str(error)


@pytest.mark.parametrize(
    "tree, message",
    [
        (("Leef", 1), "expected a Tree (Leaf, Node, Empty), found a tuple"),
        (("Leaf",), "expected an i32, found the end of the list"),
        (("Leaf", 1, 2), "expected the end of the list after 1, found 2"),
        ("Leaf", 'expected {"Leaf": […]}'),
        (("Empty", 1), '"Empty", a constructor without fields'),
        ((), "found a tuple"),
        ({}, "found a dict of 0"),
        ({"Leaf": 1}, "expected a list of the fields of Leaf, found 1"),
        ({"Leaf": [1], "Empty": []}, "found a dict of 2"),
        (("Node", "Empty", ("Node", ("Leaf", "x"), "Empty")), "at .Node[1].Node[0].Leaf[0]: expected an i32"),
    ],
    ids=str,
)
def test_values_that_are_no_tree(count, tree, message):
    (error,) = count([{"t": tree}], errors="return").errors
    assert message in str(error)


def test_a_missing_argument_and_lengths_that_differ(program, count):
    (error,) = count([{}], errors="return").errors
    assert "argument t: expected a Tree (Leaf, Node, Empty), found no such key" in str(error)
    m = program("fn main(x: f32[n], y: f32[n]) -> f32[n] { x + y }")
    (error,) = m([{"x": np.ones(2), "y": np.ones(3)}], errors="return").errors
    assert error.kind == "shape_mismatch" and "dim n is 2 in argument x, axis 0, and 3" in str(error)


def test_ids_key_random_numbers(program):
    m = program("fn main(k: i32) -> f32 { random(k) }")
    one, two, same = m([{"id": "a", "k": 1}, {"id": "b", "k": 1}, {"id": "a", "k": 1}])
    assert one == same != two


def test_cost_grows_with_the_instance(count):
    small, large = ("Leaf", 1), ("Node", ("Leaf", 1), ("Node", ("Leaf", 1), ("Leaf", 2)))
    assert 0 < count.cost({"t": small}) < count.cost({"t": large})
    with pytest.raises(cohort.InstanceError):
        count.cost({"t": 1})


def test_json_of_a_line_is_an_instance(treelstm, trees):
    line = json.dumps(trees[0][0])
    assert np.array_equal(treelstm([json.loads(line)])[0], np.float32(trees[1][0]["output"]))


def test_fields_by_name(program):
    model = program(
        "type Tree = Leaf(word: i32) | Node(left: Tree, from: i32, right: Tree)\n"
        "fn main(t: Tree) -> Tree { t }"
    )
    Leaf, Node = model.types.Leaf, model.types.Node
    tree = Node(left=Leaf(3), from_=4, right=Leaf(word=5))
    by_name = {"Node": {"right": {"Leaf": {"word": 5}}, "left": ("Leaf", 3), "from": 4}}
    for form in (tree, by_name, ("Node", ("Leaf", 3), 4, {"Leaf": [5]})):
        out = model([{"t": form}])[0]
        assert out == tree
        assert (out.left.word, out.from_, out.right) == (3, 4, Leaf(5))
    assert repr(tree) == "Node(left=Leaf(word=3), from_=4, right=Leaf(word=5))"
    for bad, message in (
        ({"Leaf": {"words": 1}}, "a field of Leaf"),
        ({"Leaf": {}}, "no such field"),
        ({"Leaf": {1: 1}}, "a field of Leaf"),
    ):
        with pytest.raises(cohort.InstanceError, match=message):
            model([{"t": bad}])
    cycle = {}
    cycle["Node"] = {"left": cycle}
    with pytest.raises(cohort.InstanceError, match="contains itself"):
        model([{"t": cycle}])


def test_texts(program):
    model = program('fn main(s: str, xs: [(str, f32)]) -> (str, [(str, f32)], bool) { (s, xs, s == "é") }')
    out = model([{"s": "é", "xs": [("a\n\"", 1.5), ("", 2)]}, {"s": "", "xs": []}])
    assert out[0] == ("é", [("a\n\"", 1.5), ("", 2.0)], True)
    assert out[1] == ("", [], False)
    for bad in (3, None, b"x", "\ud800"):
        with pytest.raises(cohort.InstanceError, match="a string"):
            model([{"s": bad, "xs": []}])


@pytest.mark.parametrize("element, count", [("f4", 2**33), ("f4", 2**61 - 1), ("i1", 2**62), ("f8", 2 * 10**6)])
def test_an_array_above_the_limit_is_the_error_of_its_instance_before_anything_is_copied(program, element, count):
    m = program("fn main(x: f32[n], y: [i32]) -> f32 { sum(x) }", max_memory=10**6)
    large, wide = np.broadcast_to(np.zeros((), element), (count,)), np.broadcast_to(np.int8(0), (count,))
    given = [{"x": [1, 2], "y": []}, {"x": large, "y": []}, {"x": [], "y": wide}]
    out = m(given, errors="return")
    assert out[0] == 3
    assert [(error.kind, error.index) for error in out.errors] == [("memory_limit", 1), ("memory_limit", 2)]
    fixed = program("fn main(x: f32[2]) -> f32 { sum(x) }", max_memory=10**6)
    with pytest.raises(cohort.InstanceError, match="expected a list of 2"):
        fixed([{"x": large}])


def test_limits_are_named_as_in_python(program):
    m = program("fn go(n: i32) -> i32 { if n == 0 { 0 } else { 1 + go(n - 1) } }\nfn main(n: i32) -> i32 { go(n) }", max_depth=5)
    with pytest.raises(cohort.InstanceError, match=r"raise the limit with max_depth=$"):
        m([{"n": 9}])


def test_numbers_of_numpy_are_taken_wherever_numbers_are(program):
    m = program("dim N\nfn main(x: f32[N]) -> f32 { sum(x) }", dims={"N": np.int64(2)}, draw=np.uint64(3), max_nodes=np.int32(99))
    out = m([{"x": [1, 2], "id": np.int64(4)}], batch=np.int16(3), threads=np.uint8(2), draw=np.uint64(2**64 - 1))
    assert out.ids == [4] and out[np.int8(0)] == 3
    with pytest.raises(ValueError, match=r"draw is an integer from 0 to 2\*\*64 - 1, not -1"):
        m([], draw=-1)
    for wrong in (True, np.True_, 1.5, "3"):
        with pytest.raises(TypeError, match="batch: an int, not"):
            m([], batch=wrong)
    for wrong in (True, 1.5, np.float32(2)):
        with pytest.raises(cohort.InstanceError, match="id: expected a str or an int"):
            m([{"x": [1, 2], "id": wrong}])
    # The bound of threads is theirs alone.
    assert m([{"x": [1, 2]}], batch=1025)[0] == 3
    with pytest.raises(ValueError, match="threads: 1025 is not between 1 and 1024"):
        m([], threads=1025)


def test_tensors_of_pytorch_that_are_no_arrays_say_why(program):
    torch = pytest.importorskip("torch")
    m = program("fn main(x: f32[2], ks: [i32]) -> (f32[2], [i32]) { (x, ks) }")
    assert m([{"x": torch.tensor([1.5, -2], dtype=torch.bfloat16), "ks": torch.tensor([3, 4])}])[0][1] == [3, 4]
    with pytest.raises(cohort.InstanceError, match="argument x: expected an array, found an object of Tensor, which raised .*to_dense"):
        m([{"x": torch.eye(2).to_sparse(), "ks": []}])
    with pytest.raises(cohort.InstanceError, match="argument x: .* which raised .*meta"):
        m([{"x": torch.ones(2, device="meta"), "ks": []}])


def test_fields_whose_names_python_does_not_take_have_ones_of_their_own(program):
    m = program("type E = E(from: i32, from_: i32, class: i32)\nfn main(e: E) -> (E, i32) { match e { E(a, b, c) => (e, 100 * a + 10 * b + c) } }")
    E = m.types.E
    e = E(from__=1, from_=2, class_=3)
    assert m([{"e": e}, {"e": {"E": {"from": 4, "from_": 5, "class": 6}}}])[0:2] == [(e, 123), (E(4, 5, 6), 456)]


def test_values_of_another_model_are_taken_where_their_constructors_are_the_same(program):
    text = "type T = L(i32) | N(T, T)\nfn main(t: T) -> T {{ {} }}"
    one, other = program(text.format("t")), program(text.format("N(t, t)"))
    N, L = one.types.N, one.types.L
    assert other([{"t": L(1)}])[0] == N(L(1), L(1))
    with pytest.raises(cohort.InstanceError, match=r"expected a T \(M\), found a L of another data type"):
        program("type T = M(i32)\nfn main(t: T) -> T { t }")([{"t": L(1)}])


def test_one_instance_is_no_list_of_them(program):
    m = program("fn main(x: f32) -> f32 { x }", gradients=True)
    for call in (m, m.gradients, m.stream, m.explain):
        with pytest.raises(TypeError, match="for one instance, a list of it"):
            call({"x": 1.0})


def test_a_call_by_an_iterator_is_not_explained_as_an_older_one(program):
    m = program("fn main(x: f32) -> f32 { x }")
    m([{"x": 1.0}])
    assert m.explain()["instances"] == 1
    m({"x": float(i)} for i in range(3))
    with pytest.raises(ValueError, match="an iterator gave its instances"):
        m.explain()


def test_a_signature_has_the_name_of_its_function(program):
    text = "fn main(x: f32) -> f32 { x }\nfn loss(k: i32) -> f32 { 1.0 }"
    assert str(program(text).signature) == "main(x: f32) -> f32"
    assert str(program(text, entry="loss").signature) == "loss(k: i32) -> f32"
