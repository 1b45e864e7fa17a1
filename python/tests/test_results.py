"""Results of every type, one by one and together."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import cohort


def test_tensors_of_one_shape_are_one_array(program):
    m = program("fn main(x: f32[2], k: i32) -> (f32[2], i32, bool, f32) { (x * 2.0, k + 1, k > 0, 0.5) }")
    out = m([{"x": [i, 1], "k": i} for i in range(-5, 300)])
    doubled, next_, positive, half = out.numpy()
    assert doubled.shape == (305, 2) and doubled.dtype == np.float32
    assert next_.tolist() == list(range(-4, 301)) and next_.dtype == np.int32
    assert positive.dtype == bool and positive.sum() == 299
    assert half.tolist() == [0.5] * 305
    assert out[-1][1:] == (300, True, 0.5) and out[0][0].tolist() == [-10, 2]
    assert np.array_equal(np.from_dlpack(out.tensor(0)), doubled)
    assert out.offsets(0).tolist() == list(range(306))
    with pytest.raises(IndexError):
        out[305]
    with pytest.raises(IndexError):
        out.tensor(4)


def test_tensors_whose_lengths_differ_are_values_and_offsets(program):
    m = program("fn main(x: f32[n, 2], y: f32[m]) -> (f32[n, 2], f32[n, m]) { (x, reshape(x[.., 0], [n, 1]) + y) }")
    sizes = [(3, 2), (0, 4), (1, 1), (2, 0)]
    instances = [{"x": np.full((n, 2), n), "y": np.arange(k)} for n, k in sizes]
    out = m(instances, batch=3)
    assert out.offsets(0).tolist() == [0, 3, 3, 4, 6]
    assert out.tensor(0).tolist() == [[3, 3]] * 3 + [[1, 1]] + [[2, 2]] * 2
    assert out.offsets(1).tolist() == [0, 6, 6, 7, 7]
    assert [value[1].shape for value in out] == sizes
    with pytest.raises(ValueError, match="shapes of part 0 differ"):
        out.numpy()
    same = m(instances[:1] * 2)
    assert same.numpy()[1].shape == (2, 3, 2)


def test_arrays_tuples_and_data_types_come_back(program):
    m = program(
        """
        type List<T> = Nil | Cons(T, List<T>)
        fn make(k: i32) -> List<(i32, f32)> { if k == 0 { Nil } else { Cons((k, f32(k)), make(k - 1)) } }
        fn main(k: i32, x: f32[2]) -> ([i32], [f32[2]], List<(i32, f32)>, ((i32, i32), [[i32]])) {
          (range(k), map(range(k), |i| x * f32(i)), make(k), ((k, 0), map(range(k), |i| range(i))))
        }
        """
    )
    out = m([{"k": 2, "x": [1, 2]}, {"k": 0, "x": [0, 0]}])
    numbers, tensors, made, rest = out[0]
    assert numbers == [0, 1] and [tensor.tolist() for tensor in tensors] == [[0, 0], [1, 2]]
    Cons, Nil = m.types.Cons, m.types.Nil
    assert made == Cons((2, 2.0), Cons((1, 1.0), Nil()))
    assert rest == ((2, 0), [[], [0]])
    assert out[1] == ([], [], Nil(), ((0, 0), []))
    assert out.offsets(0).tolist() == [0, 2, 2] and out.tensor(0).tolist() == [0, 1]
    assert out.tensor(1).tolist() == [[0, 0], [1, 2]]
    with pytest.raises(TypeError, match="not a tensor"):
        out.tensor(2)


def test_failed_instances_are_in_their_places(program):
    m = program("fn main(ks: [i32], i: i32) -> i32 { ks[i] }")
    out = m([{"ks": [1, 2], "i": i} for i in (0, 2, 1)], errors="return")
    assert (out[0], out[2]) == (1, 2)
    assert out[1] is out.errors[0] and (out[1].kind, out[1].id) == ("index_out_of_range", 2)
    with pytest.raises(ValueError, match="1 of 3 instances have no output"):
        out.numpy()


def test_no_instances_give_no_outputs(program):
    m = program("fn main(x: f32[2]) -> f32[2] { x }")
    out = m([])
    assert len(out) == 0 and list(out) == [] and out.errors == []
    assert out.numpy().shape == (0, 2)


def test_results_are_given_in_the_order_of_the_instances_whoever_ends_first(program):
    m = program(
        """
        fn main(x: f32[1], k: i32) -> (f32[1], i32) {
          let (y, steps) = while sum(y) < 10.0 with (y = x, steps = 0) { (y + 1.0, steps + 1) };
          (y, k)
        }
        """
    )
    instances = [{"x": [float(i % 11)], "k": i} for i in range(500)]
    for batch in (1, 10, 500):
        out = m(iter(instances), batch=batch)
        assert out.numpy()[1].tolist() == list(range(500))
        assert out.numpy()[0].tobytes() == np.full((500, 1), 10, np.float32).tobytes()


def test_signature_stats_and_explanation(treelstm, trees):
    assert str(treelstm.signature) == "main(t: Tree) -> f32[5]"
    assert treelstm.signature.types == {"Tree": "Leaf(i32) | Node(Tree, Tree)"}
    treelstm(trees[0])
    assert treelstm.stats["instances"] == len(trees[0]) and treelstm.stats["failed"] == 0
    explanation = treelstm.explain()
    assert explanation["instances"] == len(trees[0]) and explanation["blocks"]
    assert treelstm.explain(trees[0][:3])["instances"] == 3


def test_arguments_of_a_call_are_checked(treelstm):
    for options in ({"batch": 0}, {"threads": 0}, {"errors": "ignore"}, {"threads": 10**9}):
        with pytest.raises(ValueError):
            treelstm([], **options)
    with pytest.raises(TypeError):
        treelstm([], batch=1.5)
    with pytest.raises(TypeError, match="a list of dicts"):
        treelstm({"t": ("Leaf", 1)})
    with pytest.raises(TypeError):
        treelstm(3)
    assert isinstance(cohort.Error(), Exception)


def test_values_and_outputs_are_pickled(program):
    m = program('type T = L(f32) | N(left: T, from: T)\nfn main(t: T, k: i32) -> (T, f32[2], str) { (t, ones([2]) / f32(k), "é") }')
    L, N = m.types.L, m.types.N
    tree = N(L(1.5), from_=N(L(2.5), L(3.5)))
    assert pickle.loads(pickle.dumps(tree)) == tree and copy.deepcopy(tree) == tree
    out = m([{"t": tree, "k": 1, "id": "a"}, {"t": 3, "k": 1}, {"t": L(7.5), "k": 4}], errors="return")
    again = pickle.loads(pickle.dumps(out))
    assert repr(again) == repr(out) and again.ids == out.ids == ["a", 2, 3]
    assert [str(error) for error in again.errors] == [str(out[1])] and again.errors[0].index == 1
    assert repr(again[0]) == repr(out[0]) and repr(again[2]) == repr(out[2])
    assert again[0][0] == out[0][0] == tree
    with pytest.raises(TypeError, match="make it where they were computed"):
        again.__arrow_c_stream__()


def test_values_are_unpickled_where_no_model_is(program):
    m = program("type T = L(i32) | N(left: T, from: T)\nfn main(t: T) -> T { t }")
    value = m([{"t": ("N", ("L", 1), ("L", 2))}])[0]
    script = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()))"
    done = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(value), capture_output=True, check=True)
    assert done.stdout == b"N(left=L(1), from_=L(2))\n"
    assert m([{"t": pickle.loads(pickle.dumps(value))}])[0] == value


def test_an_output_is_taken_by_its_place(program):
    out = program("fn main(x: f32) -> f32 { x }")([{"x": 1.0}])
    with pytest.raises(TypeError, match="by its place, from 0, not by str"):
        out["a"]
