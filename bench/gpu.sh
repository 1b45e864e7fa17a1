#!/usr/bin/env bash
# Compares compiled programs with PyTorch on a GPU, or tests that comparison on the simulator:
#
#     bench/gpu.sh [cuda|gpu-sim] [ARGUMENT of gpu.py…]
#     bench/gpu.sh kit [ARGUMENT of gpu_kit.py…]
#
# Skips, and says why, where there is no GPU; `kit` makes the folder and leaves it at that. PYTHON names an interpreter with PyTorch for the GPU,
# without it the one on the path if that has PyTorch, else the benchmarks' own (setup.sh), whose PyTorch
# may be one for processors: peers are left out then. The folder, target/bench-gpu, also runs on a
# machine without the compiler: `python3 bench-gpu/gpu.py`.
set -euo pipefail
cd "$(dirname "$0")/.."

device=${1:-cuda}
shift $(($# > 0))
target=${CARGO_TARGET_DIR:-$PWD/target}
kit=$target/bench-gpu
tiny=()
if [[ $device == gpu-sim ]]; then
    tiny=(--tiny)
    kit=$kit-test
elif [[ $device != kit ]] && ! why=$(python3 bench/gpu_ceilings.py --probe 2>&1); then
    printf 'skip: the GPU benchmark: %s\n' "$why"
    exit 0
fi

make build runner
python=${PYTHON:-python3}
if ! "$python" -c 'import numpy, safetensors, torch' 2> /dev/null; then
    bench/setup.sh
    python=.venv/bin/python
fi
if [[ $device == kit ]]; then
    exec "$python" bench/gpu_kit.py "$kit" "$@"
fi
"$python" bench/gpu_kit.py "$kit" "${tiny[@]}"
"$python" "$kit/gpu.py" --device "$device" "$@"
