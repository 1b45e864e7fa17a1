#!/usr/bin/env python3
"""Makes what the optimisers should do to parameters, by PyTorch's in float64.

    python3 test/goldens/optimisers.py

Writes test/goldens/optimisers.json: for each case how the optimiser is set, the parameters to begin with,
the gradients of each step, and the parameters behind each step. A table's gradients are there as a matrix,
and go to PyTorch as a sparse one of the rows that are not all zero.
"""

import json
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
STEPS = 4
MOMENTS = {"betas": (0.8, 0.95), "eps": 1e-8}


def dense(make, **settings):
    return {"make": make, "sparse": False, **settings}


def sparse(make, **settings):
    return {"make": make, "sparse": True, **settings}


CASES = {
    "sgd": dense(lambda p: torch.optim.SGD(p, lr=0.1)),
    "sgd_decay": dense(lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.3)),
    "sgd_momentum": dense(
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.3)
    ),
    "sgd_nesterov": dense(
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.3, nesterov=True)
    ),
    "adagrad": dense(lambda p: torch.optim.Adagrad(p, lr=0.1, weight_decay=0.3)),
    "adam": dense(lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.3, **MOMENTS)),
    "adamw": dense(lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.3, **MOMENTS)),
    "adam_clip": dense(lambda p: torch.optim.Adam(p, lr=0.1, **MOMENTS), clip=1.5),
    "sgd_warmup": dense(lambda p: torch.optim.SGD(p, lr=0.1), warmup=4),
    "sparse_sgd": sparse(lambda p: torch.optim.SGD(p, lr=0.1)),
    "sparse_adagrad": sparse(lambda p: torch.optim.Adagrad(p, lr=0.1)),
    "sparse_adam": sparse(lambda p: torch.optim.SparseAdam(p, lr=0.1, **MOMENTS)),
}


def gradients(generator, is_sparse):
    """Of a matrix; where it is sparse, only some rows of it."""
    gradient = torch.randn(4, 3, dtype=torch.float64, generator=generator)
    # So that it is the very number that f32 holds.
    gradient = gradient.float().double()
    if is_sparse:
        keep = torch.rand(4, generator=generator) < 0.5
        keep[0] = True
        gradient[~keep] = 0.0
    return gradient


def run(case):
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(4, 3, dtype=torch.float64, generator=generator).float().double()
    parameter = torch.nn.Parameter(start.clone())
    optimiser = case["make"]([parameter])
    schedule = None
    if "warmup" in case:
        warmup = case["warmup"]
        factor = lambda step: min(1.0, (step + 1) / warmup)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, factor)
    steps = []
    for _ in range(STEPS):
        gradient = gradients(generator, case["sparse"])
        parameter.grad = gradient.to_sparse(1) if case["sparse"] else gradient.clone()
        if "clip" in case:
            torch.nn.utils.clip_grad_norm_([parameter], case["clip"])
        optimiser.step()
        if schedule:
            schedule.step()
        steps.append({"gradient": gradient.tolist(), "parameter": parameter.detach().tolist()})
    kept = {key: value for key, value in case.items() if key not in ("make",)}
    return {**kept, "start": start.tolist(), "steps": steps}


def main():
    results = {name: run(case) for name, case in CASES.items()}
    lines = [f'"{name}": {json.dumps(result)}' for name, result in results.items()]
    (HERE / "optimisers.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
