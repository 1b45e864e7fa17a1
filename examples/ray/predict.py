"""Runs a dataset through two actors: `python3 examples/ray/predict.py`. Needs `ray[data]` and Cohort's wheels."""

import pyarrow as pa
import ray
from common import WEIGHTS, artifact, instances

import cohort.ray

ACTORS = 2

# One CPU more than the actors have, or what comes before them in the dataset is never computed.
ray.init(num_cpus=ACTORS + 1, include_dashboard=False)
dataset = ray.data.from_arrow(pa.Table.from_pylist(instances() * 100)).repartition(8)
results = dataset.map_batches(
    cohort.ray.Predictor,
    fn_constructor_kwargs={"model": artifact(), "weights": WEIGHTS},
    batch_format="pyarrow",
    compute=ray.data.ActorPoolStrategy(size=ACTORS),
    num_cpus=1,
)
steps = [row["output_1"] for row in results.select_columns(["output_1"]).take_all()]
print(f"{len(steps)} instances took {min(steps)} to {max(steps)} steps, {sum(steps) / len(steps):.1f} on average")
