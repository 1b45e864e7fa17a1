"""Tables of Arrow in and out, by pyarrow. Skipped where that is not installed."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables of Arrow are NOT tested")

import cohort  # noqa: E402

ALL = """
fn main(a: f32, k: i32, b: bool, v: f32[2, 3], x: f32[n, 2], words: [i32], pair: (f32, [f32[2]])) -> (f32, i32, bool, f32[2, 3], f32[n, 2], [i32], f32) {
  let (p, rows) = pair;
  (a + p, k, b, v + v, x + x, words, fold(rows, 0.0, |s, row| s + sum(row)))
}
"""


@pytest.fixture
def m(program):
    return program(ALL)


def instance(i):
    return {
        "a": i / 3,
        "k": -i,
        "b": i % 2 == 0,
        "v": [[i, 1, 2], [3, 4, 5]],
        "x": [[j, i] for j in range(i % 4)],
        "words": list(range(i % 3)),
        "pair": (0.5, [[1, i]] * (i % 3)),
    }


def schema(floats=pa.float32(), ints=pa.int32()):
    rows = pa.list_(floats, 2)
    return pa.schema(
        {
            "a": floats,
            "k": ints,
            "b": pa.bool_(),
            "v": pa.list_(pa.list_(floats, 3), 2),
            "x": pa.list_(rows),
            "words": pa.list_(ints),
            "pair": pa.struct({"0": floats, "1": pa.list_(rows)}),
        }
    )


def as_arrow(row):
    return row | {"pair": {"0": row["pair"][0], "1": row["pair"][1]}}


def table(count, schema=schema(), first=0):
    return pa.Table.from_pylist([as_arrow(instance(i)) for i in range(first, first + count)], schema)


def bits(out):
    return [out.tensor(part).tobytes() for part in range(7)] + [out.offsets(4).tolist(), out.offsets(5).tolist()]


def test_a_table_gives_what_its_rows_give(m):
    expected = bits(m([instance(i) for i in range(30)]))
    assert bits(m(table(30), batch=7)) == expected
    # In several batches, sliced, and without a stream.
    assert bits(m(pa.concat_tables([table(11), table(40, first=5).slice(6, 19)]))) == expected
    assert bits(m(table(30).to_batches()[0])) == expected
    assert bits(m(pa.RecordBatchReader.from_batches(schema(), table(30).to_batches(max_chunksize=4)))) == expected
    lists = pa.Table.from_pylist([as_arrow(instance(i)) for i in range(30)])
    assert bits(m(lists.set_column(0, "a", lists["a"].cast(pa.float32())))) == expected
    assert len(m(table(0))) == 0


@pytest.mark.parametrize("types", [(pa.float64(), pa.int64()), (pa.float32(), pa.uint8()), (pa.float16(), pa.int16())], ids=str)
def test_other_widths(m, types):
    floats = np.float16 if types[0] == pa.float16() else np.float32
    rows = [as_arrow(instance(0) | {"a": floats(0.25), "v": np.ones((2, 3), floats).tolist(), "k": 3})]
    rows[0]["pair"] = {"0": floats(1.5), "1": []}
    out = m(pa.Table.from_pylist(rows, schema(*types)))
    assert out[0][0] == 1.75 and out[0][1] == 3


def test_ids_and_errors_of_rows(m):
    ids = ["a", "ü", "c"]
    given = table(3).append_column("id", pa.array(ids))
    assert m(given).ids == ids
    assert m(table(3).append_column("id", pa.array([7, 8, 9], pa.uint16()))).ids == [7, 8, 9]
    wrong = {
        "k": (pa.array([0, None, 2], pa.int32()), "null"),
        "a": (pa.array([0.0, 1e300, 2.0]), "found 1e300"),
        "words": (pa.array([[1], [None], [2]], pa.list_(pa.int32())), "null"),
        "x": (pa.array([[[1.0, 2.0]], [[1.0]], [[1.0, 2.0], [3.0, 4.0]]]), "argument x"),
        "v": (pa.array([[[0.0] * 3] * 2, [[0.0] * 3], [[0.0] * 3] * 2]), "argument v"),
        "pair": (pa.array([{"0": 1.0, "1": []}, {"0": 1.0, "1": None}, {"0": 1.0, "1": []}]), "null"),
        "id": (pa.array(["a", None, "c"]), "null"),
    }
    wrong_numbers = {"k": (pa.array([0, 1 << 40, 2]), "expected an i32, found 1099511627776")}
    for name, (column, message) in [*wrong.items(), *wrong_numbers.items()]:
        at = given.schema.get_field_index(name)
        out = m(given.set_column(at, name, column), errors="return")
        assert [type(output).__name__ for output in out] == ["tuple", "InstanceError", "tuple"], (name, out.errors)
        assert message in out[1].message, (name, out[1])
        assert out[1].kind == "bad_input" and (name == "id" or out[1].id == "ü")


def test_columns_that_do_not_fit(m):
    for given, message in [
        (table(2).drop_columns("k"), 'no column "k"'),
        (table(2).append_column("other", pa.array([1, 2])), 'a column "other"'),
        (table(2).append_column("k", pa.array([1, 2])), 'two columns "k"'),
        (table(2).append_column("id", pa.array([1.0, 2.0])), "strings or integers"),
        (pa.array([1, 2]), "structs|struct"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            m(given)
    with pytest.raises(TypeError, match="table of Arrow"):
        m.run_arrow([instance(0)])


def test_results_are_a_table(m):
    given = table(9).append_column("id", pa.array([f"i{i}" for i in range(9)]))
    given = given.set_column(1, "k", pa.array([0, 1, None, *range(3, 9)], pa.int32()))
    out = m(given, errors="return")
    result = m.run_arrow(given)
    assert result.column_names == ["id", *[f"output_{part}" for part in range(7)], "error", "message"]
    result.validate(full=True)
    assert result["id"].to_pylist() == [f"i{i}" for i in range(9)]
    for i, row in enumerate(result.to_pylist()):
        if i == 2:
            assert [row[f"output_{part}"] for part in range(7)] == [None] * 7
            assert (row["error"], "null" in row["message"]) == ("bad_input", True)
            continue
        assert row["error"] is None
        for part, value in enumerate(out[i]):
            assert row[f"output_{part}"] == (value.tolist() if isinstance(value, np.ndarray) else value)
    assert result.schema.field("output_4").type == pa.list_(pa.field("item", pa.list_(pa.field("item", pa.float32(), False), 2), False))


def test_trees_are_lists_of_nodes_in_postorder(program):
    m = program(
        """
type Tree = Leaf(i32, f32) | Node(Tree, Tree) | Mark(f32[2], Tree) | Empty
fn total(t: Tree) -> f32 {
  match t {
    Leaf(w, x)  => f32(w) * x,
    Node(l, r)  => 2.0 * total(l) + total(r),
    Mark(v, t)  => sum(v) + total(t),
    Empty       => 0.5
  }
}
fn main(t: Tree) -> f32 { total(t) }
"""
    )
    trees = [
        {"tags": [0, 0, 1, 2], "Leaf": [{"0": 3, "1": 0.5}, {"0": 7, "1": 2.0}], "Mark": [[10.0, 20.0]]},
        {"tags": [3], "Leaf": [], "Mark": []},
        {"tags": [3, 0, 1], "Leaf": [{"0": 1, "1": 1.0}], "Mark": []},
        {"tags": [1], "Leaf": [], "Mark": []},
        {"tags": [0], "Leaf": [], "Mark": []},
        {"tags": [9], "Leaf": [], "Mark": []},
        {"tags": [3, 2], "Leaf": [], "Mark": [[1.0]]},
        None,
    ]
    out = m(pa.table({"t": pa.array(trees)}), errors="return")
    assert out[:3] == [30 + 2 * 1.5 + 14.0, 0.5, 2.0]
    for error, message in zip(out[3:], ["parts are not before", "fewer values of Leaf", "tag 9", r"f32[2]", "null"], strict=True):
        assert message in error.message


NESTED = """
type Word = Known(i32) | Spelled(str) | Gap
type Tree = Leaf(Word) | Node(left: Tree, weight: f32, right: Tree) | Many(f32[2], [Tree], (Word, [f32]))
type Box<T> = Box(T)
fn main(a: (Tree, [Word]), b: Box<Box<[Tree]>>, c: [str], d: [[(i32, bool)]], e: [f32[_, 2]], f: str)
    -> (Tree, [Word], Box<Box<[Tree]>>, [str], [[(i32, bool)]], [f32[_, 2]], str) {
  let (tree, words) = a;
  (tree, words, b, c, d, e, f)
}
"""


def nested(i):
    words = [{"Known": [i]}, {"Spelled": [f"é{i}" * (i % 3)]}, "Gap"]
    leaf = {"Leaf": [words[i % 3]]}
    tree = leaf
    for depth in range(i % 5):
        many = {"Many": [[depth, i], [leaf, tree][: depth % 3], [words[depth % 3], [0.5] * depth]]}
        tree = {"Node": [tree, float(depth), many] if depth % 2 else [many, float(depth), tree]}
    rows = [[[j, k] for k in range(j)] for j in range(i % 4)]
    return {
        "a": [tree, words[: i % 4]],
        "b": {"Box": [{"Box": [[tree] * (i % 3)]}]},
        "c": ["", "a\n", "ü"][: i % 4],
        "d": [[[j, j % 2 == 0] for j in range(k)] for k in range(i % 4)],
        "e": rows,
        "f": f"text {i}",
    }


def plain(value):
    """A result in the form of JSON."""
    match value:
        case np.ndarray():
            return value.tolist()
        case list() | tuple():
            return [plain(part) for part in value]
    if hasattr(value, "__match_args__"):
        fields = [plain(getattr(value, name)) for name in value.__match_args__]
        return {type(value).__name__: fields} if fields else type(value).__name__
    return value


def test_values_of_data_types_anywhere_go_in_and_out(program):
    m = program(NESTED)
    given = [nested(i) for i in range(40)]
    expected = [plain(output) for output in m(given)]
    assert expected == [
        [one["a"][0], one["a"][1], one["b"], one["c"], one["d"], [np.float32(rows).tolist() for rows in one["e"]], one["f"]]
        for one in given
    ]
    # Results as a table, and the table as instances.
    result = pa.table(m(given))
    result.validate(full=True)
    columns = [result[f"output_{part}"] for part in range(7)]
    pairs = pa.StructArray.from_arrays([columns[0].combine_chunks(), columns[1].combine_chunks()], ["0", "1"])
    again = pa.table({"a": pairs, **dict(zip("bcdef", columns[2:], strict=True))})
    for table in (again, pa.concat_tables([again.slice(0, 7), again.slice(7)])):
        assert [plain(output) for output in m(table)] == expected
        assert m.run_arrow(table).drop_columns("id") == result.drop_columns("id")
    # An instance that fails is null there.
    out = pa.table(m([given[1], {"a": 1}, given[2]], errors="return"))
    assert [row["output_0"] is None for row in out.to_pylist()] == [False, True, False]


def test_an_array_of_the_type_itself_is_how_many_there_are(program):
    m = program(
        "type Rose = Rose(i32, [Rose])\n"
        "fn total(t: Rose) -> i32 { match t { Rose(k, ts) => fold(ts, k, |s, t| 10 * s + total(t)) } }\n"
        "fn main(t: Rose) -> (i32, Rose) { (total(t), t) }"
    )
    roses = [
        {"tags": [0, 0, 0, 0], "Rose": [{"0": k, "1": n} for k, n in [(3, 0), (5, 0), (4, 1), (2, 2)]]},
        {"tags": [0], "Rose": [{"0": 7, "1": 0}]},
        {"tags": [0, 0], "Rose": [{"0": 7, "1": 0}] * 2},
        {"tags": [0], "Rose": [{"0": 7, "1": 1}]},
        {"tags": [0], "Rose": [{"0": 7, "1": -1}]},
        {"tags": [0], "Rose": [{"0": 7, "1": 0}] * 2},
        {"tags": [], "Rose": []},
    ]
    given = pa.table({"t": pa.array(roses)})
    out = m(given, errors="return")
    assert [total for total, _ in out[:2]] == [10 * (10 * 2 + 3) + (10 * 4 + 5), 7]
    messages = ["2 values, not one", "parts are not before it", "parts are not before it", "more values of Rose", "0 values"]
    for error, message in zip(out[2:], messages, strict=True):
        assert message in error.message, error
    assert m.run_arrow(given).to_pylist()[0]["output_1"] == roses[0]


def test_what_has_no_form(program):
    for text in (
        "type A = A(f32, B) | End\ntype B = B([A])\nfn main(t: A) -> A { t }",
        "type A = A([(i32, A)])\nfn main(t: A) -> A { t }",
    ):
        m = program(text)
        instance = {"t": "End"} if "End" in text else {"t": {"A": [[]]}}
        out = m([instance])
        with pytest.raises(TypeError, match="A contains itself by a tuple or another type"):
            pa.table(out)
        with pytest.raises(TypeError, match="the argument t: values of A have no form in Arrow.*use JSON"):
            m(pa.table({"t": pa.array([1])}))
    doubling = "type T0 = T0(i32)\n" + "".join(f"type T{i} = T{i}(T{i - 1}, T{i - 1})\n" for i in range(1, 20))
    with pytest.raises(TypeError, match="columns in .* levels of Arrow"):
        program(doubling + "fn main(t: [T19]) -> i32 { 1 }")(pa.table({"t": pa.array([1])}))


def test_a_table_that_lies_about_its_lists_is_an_error(m):
    ends = pa.py_buffer(np.array([0, 1, 900, 2], np.int32))
    values = pa.array([1, 2], pa.int32())
    lying = pa.Array.from_buffers(pa.list_(pa.int32()), 3, [None, ends], children=[values])
    with pytest.raises(ValueError):
        m(table(3).set_column(5, "words", lying))


def test_an_exception_of_the_stream_comes_back(m):
    def batches():
        yield from table(3).to_batches()
        raise KeyError("lost")

    with pytest.raises(Exception, match="lost"):
        m(pa.RecordBatchReader.from_batches(schema(), batches()))
