#!/usr/bin/env python3
"""Makes a folder with all that the GPU's benchmark needs on a machine without the compiler.

    python3 bench/gpu_kit.py FOLDER [--cases treelstm-256 act-256] [--precision f32] [--tiny]

For each model and size: its artifact, its weights and its inputs; besides them the small batch-run
and the benchmark itself, `FOLDER/gpu.py`. To be carried to another machine it is small: weights have
16 bits each, of which those of 32 are made there, and so are inputs that are large. `--cases` makes a
part of it. `--tiny` makes models and inputs so small that the simulator runs them too.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
FILES = "gpu.py gpu_ceilings.py gpu_torch.py tables.py treelstm_torch.py control_torch.py ragged_torch.py"
CASES = [("treelstm", 256), ("treelstm", 512), ("birnn", 256), ("act", 256), ("encoder", 512)]
TINY = [("treelstm", 16), ("birnn", 16), ("act", 16), ("encoder", 16)]
BATCHES = (8, 64, 512)
INSTANCES = 1024
ENCODER_INSTANCES = 512
HEADS = 8


def encoder_weights(path, size):
    """One layer with random weights; the inner size is four times the outer."""
    import numpy as np
    from safetensors.numpy import save_file

    rng = np.random.default_rng(7)
    shapes = {
        **{"wqkv": (size, 3 * size), "bqkv": (3 * size,), "wp": (size, size), "bp": (size,)},
        **{"g1": (size,), "b1": (size,), "wu": (size, 4 * size), "bu": (4 * size,)},
        **{"wd": (4 * size, size), "bd": (size,), "g2": (size,), "b2": (size,)},
    }
    weights = {}
    for name, shape in shapes.items():
        values = rng.standard_normal((1, *shape))
        values = values / shape[0] ** 0.5 if len(shape) == 2 else 0.1 * values
        weights[name] = (values + name.startswith("g")).astype(np.float32)
    save_file(weights, path)


def halve(folder):
    """Keeps the weights as halves, from which gpu.py makes the very floats that the program is made for."""
    import numpy as np
    from safetensors.numpy import load_file, save_file

    path = folder / "weights.safetensors"
    weights = load_file(path)
    assert all(values.dtype == np.float32 for values in weights.values())
    save_file(
        {name: values.astype(np.float16) for name, values in weights.items()},
        folder / "halves.safetensors",
    )
    path.unlink()


def make_inputs(folder, name, size, count):
    """Weights and inputs of a model in a folder; the encoder's inputs are made as they are read."""
    if name == "encoder":
        encoder_weights(folder / "weights.safetensors", size)
        lengths = (BENCH / "lengths" / "mnli.txt").read_text(encoding="utf-8").split()
        chosen = [int(lengths[k % len(lengths)]) for k in range(count)]
        (folder / "lengths.json").write_text(json.dumps({"size": size, "lengths": chosen}))
        return
    command = [sys.executable, BENCH / "make_models.py", folder, "--models", name]
    subprocess.run([*command, "--size", str(size), "--instances", str(count)], check=True)
    (folder / f"{name}.safetensors").rename(folder / "weights.safetensors")
    (folder / f"{name}.jsonl").rename(folder / "input.jsonl")


def has_assembler():
    places = [os.environ.get("COHORT_PTXAS"), ROOT / ".tools/bin/ptxas", shutil.which("ptxas")]
    return any(place and Path(place).exists() for place in places)


def compile_model(options, folder, name):
    """The artifact of a model."""
    source = (ROOT / "examples" / name / f"{name}.coh").read_text(encoding="utf-8")
    program = folder / f"{name}.coh"
    program.write_text(source.replace("let heads = 4", f"let heads = {HEADS}"), encoding="utf-8")
    codes = "sm_80,sm_90a,ptx" if has_assembler() else "ptx"
    command = [options.batch_opt, program, "--weights", folder / "weights.safetensors"]
    command += ["--emit", "artifact", "--gpu-arch", f"{codes},sim" if options.tiny else codes]
    command += ["--target-cpu", "x86-64-v3", "-o", folder / "model.cohort"]
    if options.precision != "f32":
        command += ["--precision", options.precision]
    subprocess.run(command, check=True)
    program.unlink()


def make(options):
    """The whole folder."""
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    for file in FILES.split():
        shutil.copy(BENCH / file, options.folder)
    shutil.copy(options.batch_run, options.folder / "batch-run")
    cases = TINY if options.tiny else CASES
    cases = [case for case in cases if not options.cases or "-".join(map(str, case)) in options.cases]
    if not cases:
        sys.exit(f"no such case: {' '.join(options.cases)}")
    for name, size in cases:
        folder = options.folder / f"{name}-{size}"
        folder.mkdir()
        count = 12 if options.tiny else ENCODER_INSTANCES if name == "encoder" else INSTANCES
        make_inputs(folder, name, size, count)
        compile_model(options, folder, name)
        halve(folder)
    batches = [1, 5] if options.tiny else BATCHES
    about = {"cases": cases, "batches": batches, "tiny": options.tiny}
    about |= {"precision": options.precision}
    (options.folder / "kit.json").write_text(json.dumps(about))


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batch-opt", type=Path, default=target / "release/batch-opt")
    parser.add_argument("--batch-run", type=Path, default=target / "runner/release/batch-run")
    parser.add_argument("--cases", nargs="+", metavar="MODEL-SIZE", help="only these")
    parser.add_argument("--precision", choices=("f32", "tf32", "bf16"), default="f32")
    parser.add_argument("--tiny", action="store_true", help="so small that the simulator runs it")
    make(parser.parse_args())


if __name__ == "__main__":
    main()
