#!/usr/bin/env bash
# Runs every model of a kit (see make-kit.sh) on a device, from the folder of the kit:
#
#     ./run.sh [cuda|gpu-sim|cpu]        (cuda)
#
# For each: the results against the f64 interpreter's, to a part in TOLERANCE of an instance's
# largest number; every bit in COMPOSITIONS random batches; and, where there is a compute-sanitizer
# and the device is a GPU, memcheck, racecheck, initcheck and synccheck. Prints one line a check and
# the totals. Without a device it says so and succeeds, unless REQUIRE_DEVICE is set.
set -uo pipefail
cd "$(dirname "$0")"

device=${1:-cuda}
tolerance=${TOLERANCE:-1e-4}
compositions=${COMPOSITIONS:-8}
passed=0
failed=0
skipped=0
log=$(mktemp)
results=$(mktemp)
trap 'rm -f "$log" "$results"' EXIT

# check NAME COMMAND…: the command succeeds; its first line is shown, all of them when it fails.
check() {
    local name=$1 status
    shift
    "$@" > "$log" 2>&1
    status=$?
    if ((status == 0)); then
        passed=$((passed + 1))
        printf 'ok    %-28s %s\n' "$name" "$(head -n 1 "$log")"
    else
        failed=$((failed + 1))
        printf 'FAIL  %-28s exit code %d\n' "$name" "$status"
        sed 's/^/        /' "$log"
    fi
}

skip() {
    skipped=$((skipped + 1))
    printf 'skip  %-28s %s\n' "$1" "$2"
}

# What a program without kernels says is what any would say of a missing device.
probe() {
    local model=$1
    ./batch-run "$model/model.cohort" --weights "$model/weights.safetensors" --device "$device" \
        --input /dev/null --output /dev/null
}

models=(*/model.cohort)
models=("${models[@]%/model.cohort}")
if ! probe "${models[0]}" > "$log" 2>&1; then
    printf 'skip  every test: there is no device `%s` here: %s\n' "$device" "$(tail -n 1 "$log")"
    [[ -z ${REQUIRE_DEVICE:-} ]]
    exit
fi

if [[ $device == cuda ]] && command -v nvidia-smi > /dev/null; then
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
fi
for model in "${models[@]}"; do
    arguments=("$model/model.cohort" --weights "$model/weights.safetensors" --device "$device")
    arguments+=(--input "$model/input.jsonl")
    if ! probe "$model" > "$log" 2>&1 && grep -q 'has no code for GPUs' "$log"; then
        skip "$model" "$(grep -o 'the kernel .* has no code for GPUs' "$log")"
        continue
    fi
    check "$model: oracle" ./batch-run "${arguments[@]}" --output "$results" \
        --expect "$model/expected.jsonl" --tolerance "$tolerance"
    check "$model: every bit" ./batch-run "${arguments[@]}" --verify-batch-invariance "$compositions"
    [[ $device == cuda ]] || continue
    if ! command -v compute-sanitizer > /dev/null; then
        skip "$model: sanitizer" "no compute-sanitizer here"
        continue
    fi
    for tool in memcheck racecheck initcheck synccheck; do
        check "$model: $tool" compute-sanitizer --tool "$tool" --error-exitcode 3 --quiet \
            ./batch-run "${arguments[@]}" --output "$results" --expect "$model/expected.jsonl" \
            --tolerance "$tolerance"
    done
done

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
