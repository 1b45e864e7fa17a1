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
        "a": (pa.array([0.0, 1e300, 2.0]), "a value of Float64"),
        "words": (pa.array([[1], [None], [2]], pa.list_(pa.int32())), "null"),
        "x": (pa.array([[[1.0, 2.0]], [[1.0]], [[1.0, 2.0], [3.0, 4.0]]]), "argument x"),
        "v": (pa.array([[[0.0] * 3] * 2, [[0.0] * 3], [[0.0] * 3] * 2]), "argument v"),
        "pair": (pa.array([{"0": 1.0, "1": []}, {"0": 1.0, "1": None}, {"0": 1.0, "1": []}]), "null"),
        "id": (pa.array(["a", None, "c"]), "null"),
    }
    for name, (column, message) in wrong.items():
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
    for error, message in zip(out[3:], ["parts are not before", "fewer elements", "tag 9", r"f32[2]", "null"], strict=True):
        assert message in error.message


def test_what_has_no_form(program):
    m = program("type P = P(f32)\nfn main(x: [(f32, P)]) -> P { P(1.0) }")
    out = m([{"x": []}])
    with pytest.raises(TypeError, match="no form in Arrow"):
        pa.table(out)
    given = pa.table({"x": pa.array([[{"0": 1.0, "1": 2.0}]])})
    with pytest.raises(cohort.InstanceError, match="no form in Arrow"):
        m(given)


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
