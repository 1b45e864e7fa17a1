"""Models under a local Ray: `Predictor` over datasets, `Deployment` behind Ray Serve."""

import json
import os
import urllib.error
import urllib.request

import numpy as np
import pytest

# A busy machine starts processes slowly.
os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
serve = pytest.importorskip("ray.serve")
pa = pytest.importorskip("pyarrow")

import cohort  # noqa: E402
import cohort.ray  # noqa: E402

STEPS = """dim H
param w: f32[H, H]
fn main(x: f32[n, H], k: i32) -> (f32[H], i32) {
  let (h, steps) = while sum(h) < f32(k) with (h = sum(x, axis = 0), steps = 0) { (tanh(h @ w) + h + 0.1, steps + 1) };
  (h, steps)
}
"""
TREES = """type Tree = Leaf(f32) | Node(left: Tree, right: Tree)
fn main(t: Tree) -> Tree { match t { Leaf(x) => Leaf(x * 2), Node(l, r) => Node(r, l) } }
"""


@pytest.fixture(scope="module")
def local():
    ray.init(num_cpus=4, include_dashboard=False, configure_logging=False, log_to_driver=False)
    yield
    serve.shutdown()
    ray.shutdown()


@pytest.fixture
def steps(program, tmp_path):
    """The model, and what actors load it from."""
    weights = {"w": np.full((3, 3), 0.4, np.float32)}
    model = program(STEPS, weights)
    model.save(tmp_path / "steps.cohort")
    return model, {"model": str(tmp_path / "steps.cohort"), "weights": weights}


def rows(count):
    random = np.random.default_rng(7)
    return [
        {"x": random.uniform(0, 1, (int(n), 3)).astype(np.float32), "k": int(random.integers(0, 9)), "label": f"r{i}"}
        for i, n in enumerate(random.integers(0, 6, count))
    ]


def predicted(dataset, arguments, **options):
    return dataset.map_batches(
        cohort.ray.Predictor,
        fn_constructor_kwargs={**arguments, **options},
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=2),
        num_cpus=1,
    )


def test_a_dataset_gives_the_bits_of_a_call(local, steps):
    model, arguments = steps
    given = rows(60)
    # Lists, as files of Parquet have them.
    table = pa.table(
        {
            "x": pa.array([row["x"].tolist() for row in given], pa.list_(pa.list_(pa.float32(), 3))),
            "k": [row["k"] for row in given],
            "label": [row["label"] for row in given],
        }
    )
    dataset = ray.data.from_arrow(table).repartition(5)
    found = {row["label"]: row for row in predicted(dataset, arguments, batch=7).take_all()}
    assert len(found) == 60 and set(found["r0"]) == {"label", "output_0", "output_1", "error", "message"}
    expected = model([{"x": row["x"], "k": row["k"]} for row in given])
    for row, (h, count) in zip(given, expected):
        one = found[row["label"]]
        assert np.asarray(one["output_0"], np.float32).tobytes() == h.tobytes() and one["output_1"] == count


def test_tensors_of_datasets_are_taken(local, program, tmp_path):
    model = program("fn main(x: f32[2, 3], y: f32[n, 3]) -> f32[3] { sum(x, axis = 0) + sum(y, axis = 0) }")
    model.save(tmp_path / "p.cohort")
    random = np.random.default_rng(3)
    given = [
        {"x": random.random((2, 3), np.float32), "y": random.random((1 + i % 4, 3), np.float32), "i": i} for i in range(9)
    ]
    found = predicted(ray.data.from_items(given), {"model": str(tmp_path / "p.cohort")}).take_all()
    found.sort(key=lambda row: row["i"])
    for row, output in zip(found, model([{"x": row["x"], "y": row["y"]} for row in given])):
        assert np.asarray(row["output"], np.float32).tobytes() == output.tobytes()


def test_a_row_that_fails_has_its_error_and_the_others_their_results(local, steps):
    _, arguments = steps
    table = pa.table({"x": [[[1.0, 2.0, 3.0]], [[1.0, 2.0]], []], "k": [1, 1, 0], "id": ["a", "b", "c"]})
    found = {row["id"]: row for row in predicted(ray.data.from_arrow(table), arguments).take_all()}
    assert found["b"]["error"] == "bad_input" and found["b"]["output_0"] is None
    assert found["a"]["error"] is None and found["c"]["error"] is None
    with pytest.raises(Exception, match="bad_input"):
        predicted(ray.data.from_arrow(table), arguments, errors="raise").take_all()


def test_columns_that_cannot_be_are_refused(steps):
    _, arguments = steps
    predictor = cohort.ray.Predictor(**arguments)
    with pytest.raises(ValueError, match="no column that is an argument"):
        predictor(pa.table({"z": [1]}))
    with pytest.raises(ValueError, match="'error'"):
        predictor(pa.table({"x": [[[1.0, 2.0, 3.0]]], "k": [1], "error": ["mine"]}))


def ask(path, body):
    request = urllib.request.Request(f"http://127.0.0.1:8265{path}", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_deployment_answers_handles_and_http(local, steps):
    model, arguments = steps
    serve.start(http_options={"host": "127.0.0.1", "port": 8265})
    application = cohort.ray.Deployment.options(num_replicas=2).bind(**arguments, in_flight=8)
    handle = serve.run(application, name="steps", route_prefix="/steps")
    given = [{"x": row["x"], "k": row["k"]} for row in rows(40)]
    answers = [handle.remote(instance) for instance in given]
    for answer, (h, count) in zip(answers, model(given)):
        found = answer.result(timeout_s=60)
        assert found[0].tobytes() == h.tobytes() and found[1] == count
    with pytest.raises(Exception, match="bad_input"):
        handle.remote({"x": 3, "k": 1}).result(timeout_s=60)

    as_json = [{"x": instance["x"].tolist(), "k": instance["k"]} for instance in given[:6]]
    status, records = ask("/steps", as_json)
    assert status == 200 and [record["id"] for record in records] == [1, 2, 3, 4, 5, 6]
    for record, (h, count) in zip(records, model(given[:6])):
        assert np.asarray(record["output"][0], np.float32).tobytes() == h.tobytes() and record["output"][1] == count
    status, record = ask("/steps", {"id": "mine", **as_json[0]})
    assert (status, record["id"]) == (200, "mine")
    status, record = ask("/steps", {"id": "bad", "x": 3, "k": 1})
    assert status == 400 and record["error"]["kind"] == "bad_input"
    assert ask("/steps", 5)[0] == 400


def test_values_of_data_types_are_in_their_json_form(local, program, tmp_path):
    program(TREES).save(tmp_path / "trees.cohort")
    handle = serve.run(cohort.ray.Deployment.bind(str(tmp_path / "trees.cohort")), name="trees", route_prefix="/trees")
    tree = ("Node", ("Leaf", 0.1), ("Leaf", float("inf")))
    assert handle.remote({"t": tree}).result(timeout_s=60) == {"Node": {"left": {"Leaf": [float("inf")]}, "right": {"Leaf": [np.float32(0.1)]}}}
    serve.start(http_options={"host": "127.0.0.1", "port": 8265})
    status, record = ask("/trees", {"t": {"Node": [{"Leaf": [0.1]}, {"Leaf": ["Infinity"]}]}})
    assert status == 200
    assert record["output"] == {"Node": {"left": {"Leaf": ["Infinity"]}, "right": {"Leaf": [0.1]}}}
