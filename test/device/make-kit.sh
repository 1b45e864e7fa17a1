#!/usr/bin/env bash
# Makes a folder with all that a machine without the compiler needs to test a device: the small
# batch-run, and for every example that runs, and for a program with the largest tiles (wide.py), its artifacts, weights,
# inputs, and what the f64 interpreter and the simulator make of them. `run.sh` in the folder is the test.
#
#     test/device/make-kit.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."

kit=${1:?a folder to write to}
bin=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
runner=${CARGO_TARGET_DIR:-$PWD/target}/runner/release/batch-run

rm -rf "$kit"
mkdir -p "$kit"
cp "$runner" "$kit/batch-run"
cp test/device/run.sh "$kit/run.sh"
# Machine code where there is an assembler for it, PTX for every other GPU, and the simulator.
codes=ptx,sim
if [[ -n ${COHORT_PTXAS:-} || -x .tools/bin/ptxas ]] || command -v ptxas > /dev/null; then
    codes=sm_80,sm_90a,$codes
else
    echo 'there is no ptxas here (`make setup` installs it): the kit has PTX alone, without products of warpgroups' >&2
fi
# compile ARTIFACT OPTION…: the other machine may have another processor.
compile() {
    "$bin/batch-opt" "$source" --weights "$weights" --emit artifact --gpu-arch "$codes" \
        --target-cpu x86-64-v3 -o "$to/$1" "${@:2}" 2> "$to/why"
}

wide=$(mktemp -d)
trap 'rm -rf "$wide"' EXIT
mkdir "$wide/wide"
python3 test/device/wide.py "$wide/wide"
left_out=()
for source in examples/*/*.coh "$wide/wide/wide.coh"; do
    folder=$(dirname "$source")
    name=$(basename "$folder")
    weights=$folder/weights.safetensors
    to=$kit/$name
    mkdir "$to"
    if ! compile model.cohort; then
        left_out+=("$name")
        rm -r "$to"
        continue
    fi
    # The same whose flushes are never one launch, and in the precisions of tensor cores.
    compile apart.cohort --without persistence
    for precision in tf32 bf16; do
        compile "$precision.cohort" --precision "$precision"
    done
    rm "$to/why"
    cp "$weights" "$folder/input.jsonl" "$to"
    close() {
        "$runner" "$to/$1.cohort" --weights "$weights" --input "$folder/input.jsonl" --device gpu-sim --quiet \
            --output /dev/null --expect "$to/expected.jsonl" --tolerance "$2" > "$to/why" 2>&1
    }
    # Instances that fail do so as expected; anything worse leaves no file.
    "$bin/batch-run" "$source" --weights "$weights" --input "$folder/input.jsonl" \
        --output "$to/expected.jsonl" --oracle --quiet || (($? == 1))
    # Every bit of them.
    "$runner" "$to/model.cohort" --weights "$weights" --input "$folder/input.jsonl" \
        --output "$to/simulated.jsonl" --device gpu-sim --quiet || (($? == 1))
    # How close to the interpreter's results those with rounded factors have to be, where nothing is decided otherwise for it.
    for precision in tf32:5e-3 bf16:3e-2; do
        if close "${precision%:*}" "${precision#*:}"; then
            echo "${precision%:*} ${precision#*:}" >> "$to/close"
        fi
    done
    rm -f "$to/why"
done
printf '%s: %s models, %s\n' "$kit" "$(find "$kit" -name model.cohort | wc -l)" "$(du -sh "$kit" | cut -f1)"
if ((${#left_out[@]})); then
    printf 'left out, since they do not compile: %s\n' "${left_out[*]}"
fi
