"""Serves a model from two replicas: `python3 examples/ray/deploy.py`. Needs `ray[serve]` and Cohort's wheels."""

import json
import urllib.request

import ray
from common import WEIGHTS, artifact, instances
from ray import serve

import cohort.ray

ray.init(include_dashboard=False)
application = cohort.ray.Deployment.options(num_replicas=2).bind(artifact(), WEIGHTS, in_flight=64)
handle = serve.run(application, name="act", route_prefix="/act")

# From Python, one instance a request: those that are there are computed together.
answers = [handle.remote(instance) for instance in instances()]
print([answer.result()[1] for answer in answers])

# Over HTTP, one instance or a list of them.
body = json.dumps(instances()[:2]).encode()
with urllib.request.urlopen("http://127.0.0.1:8000/act", body) as answer:
    print(answer.read().decode())
serve.shutdown()
