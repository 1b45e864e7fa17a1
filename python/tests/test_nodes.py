"""Values of data types in all their forms: those that are walked the short way give what the others do."""

import enum
from collections import namedtuple

import numpy as np
import pytest

import cohort

PROGRAM = """
type Tree = Leaf(f32, bool) | Node(Tree, i32, Tree) | Empty
fn total(t: Tree) -> f32 {
  match t {
    Leaf(x, b)    => if b { x } else { x * 1000.0 },
    Node(l, k, r) => 2.0 * total(l) + f32(k) + 3.0 * total(r),
    Empty         => 0.5
  }
}
fn main(t: Tree) -> f32 { total(t) }
"""


@pytest.fixture
def m(program):
    return program(PROGRAM)


def name(text):
    """A name that is not the object that the program's is."""
    return "".join(list(text))


FORMS = {
    "tuples": lambda t: ("Node", ("Leaf", 1.5, True), 7, ("Node", "Empty", -1, ("Leaf", 2, False))),
    "other names": lambda t: (name("Node"), (name("Leaf"), 1.5, True), 7, (name("Node"), (name("Empty"),), -1, ("Leaf", 2, False))),
    "objects": lambda t: t.Node(t.Leaf(1.5, True), 7, t.Node(t.Empty(), -1, t.Leaf(2, False))),
    "JSON": lambda t: {"Node": [{"Leaf": [1.5, True]}, 7, {"Node": ["Empty", -1, {"Leaf": [2, False]}]}]},
    "mixed": lambda t: t.Node({"Leaf": (1.5, True)}, 7, ("Node", t.Empty(), -1, {"Leaf": [2, False]})),
    "scalars of NumPy": lambda t: ("Node", ("Leaf", np.float32(1.5), np.True_), np.int64(7), ("Node", "Empty", -1, ("Leaf", np.int8(2), False))),
    "a subclass": lambda t: namedtuple("Tagged", "tag l k r")("Node", ("Leaf", 1.5, True), 7, ("Node", "Empty", -1, ("Leaf", 2, False))),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_value_are_the_same_value(m, form):
    expected = 2 * 1.5 + 7 + 3 * (2 * 0.5 - 1 + 3 * 2000)
    assert m([{"t": FORMS[form](m.types)}])[0] == expected


def test_values_of_an_enum_of_ints_are_ints(m):
    class Kind(enum.IntEnum):
        SEVEN = 7

    assert m([{"t": ("Node", "Empty", Kind.SEVEN, "Empty")}])[0] == 9.5


@pytest.mark.parametrize(
    "value, message",
    [
        (("Leaf", 1.5), "end of the list"),
        (("Leaf", 1.5, True, 3), "2"),
        (("Leaf", 1e300, True), "1e+300"),
        (("Leaf", 10**400, True), "f32"),
        (("Leaf", 1.5, 1), "bool"),
        (("Node", "Empty", 2**31, "Empty"), "2147483648"),
        (("Node", "Empty", 1.0, "Empty"), "i32"),
        (("Node", "Empty", 10**30, "Empty"), "i32"),
        (("Node", "Empty", True, "Empty"), "i32"),
        (("Node", "Empty", 1, "Leaf"), "Leaf"),
        ((), "Tree"),
        ({"Node": 3}, "list"),
        ({1: []}, "Tree"),
        ("\ud800", "Tree"),
        (None, "Tree"),
    ],
)
def test_what_is_wrong_with_a_value_is_told(m, value, message):
    bad = ("Node", ("Leaf", 1.0, True), 1, value)
    out = m([{"t": "Empty"}, {"id": "b", "t": bad}, {"t": "Empty"}], errors="return")
    assert (out[0], out[2]) == (0.5, 0.5)
    assert (out[1].kind, out[1].id) == ("bad_input", "b")
    assert message in out[1].message


def test_an_object_without_its_fields_is_an_error(m):
    bare = object.__new__(m.types.Node)
    with pytest.raises(cohort.InstanceError, match="Node|_0|attribute"):
        m([{"t": bare}])


def test_a_value_that_contains_itself_is_an_error(m):
    fields = ["Empty", 1, None]
    fields[2] = {"Node": fields}
    with pytest.raises(cohort.InstanceError, match="contains itself"):
        m([{"t": {"Node": fields}}])


def test_a_value_that_shares_parts_beyond_the_memory_is_an_error(program):
    m = program(PROGRAM, max_memory=1 << 20)
    value = "Empty"
    for _ in range(60):
        value = ("Node", value, 1, value)
    with pytest.raises(cohort.InstanceError) as raised:
        m([{"t": value}])
    assert raised.value.kind == "memory_limit"


def test_a_deep_value(program):
    m = program(PROGRAM, max_depth=10**6)
    value = ("Leaf", 0.0, True)
    for _ in range(200_000):
        value = ("Node", "Empty", 0, value)
    out = m([{"t": value}], errors="return")
    assert len(out) == 1 and not out.errors
