#!/usr/bin/env bash
# Runs every model of a kit (see make-kit.sh) on a device, from the folder of the kit:
#
#     ./run.sh [cuda|gpu-sim|cpu]        (cuda)
#
# For each: the results against the f64 interpreter's, to a part in TOLERANCE of an instance's largest number;
# on a GPU every bit against the simulator's, as whole flushes and launch by launch; every bit in
# COMPOSITIONS random batches, in f32 and, in fewer batches, with products on tensor cores, whose results are close to the
# interpreter's where the simulator's were. On a GPU also: every
# bit without graphs and with each call timed; a memory limit that the program is beyond; and, where there is a
# compute-sanitizer that works, memcheck, racecheck, initcheck and synccheck, or those that SANITIZERS names.
# Prints one line a check, the totals, and what failed. MODELS names those to run, without all.
# Without a device it says so and succeeds, unless REQUIRE_DEVICE is set.
set -uo pipefail
cd "$(dirname "$0")"

device=${1:-cuda}
tolerance=${TOLERANCE:-1e-4}
compositions=${COMPOSITIONS:-8}
sanitizers=${SANITIZERS-memcheck racecheck initcheck synccheck}
passed=0
failures=()
skipped=0
log=$(mktemp)
results=$(mktemp)
others=$(mktemp)
trap 'rm -f "$log" "$results" "$others"' EXIT

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
        failures+=("$name")
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

# same_bits ARGUMENT…: the results of three runs in small batches, the last of which can use graphs that
# the others made, are the same with these arguments.
same_bits() {
    local run=(./batch-run "${arguments[@]}" --batch 3 --benchmark-repetitions 2 --quiet)
    "${run[@]}" --output "$results"
    "${run[@]}" --output "$others" "$@"
    cmp "$results" "$others"
}

# gives_the_bits ARTIFACT: those that the simulator gave where the kit was made; some instances may fail.
gives_the_bits() {
    ./batch-run "$model/$1" "${arguments[@]:1}" --quiet --output "$results" || (($? == 1)) || return
    cmp "$results" "$model/simulated.jsonl"
}

refuses_a_limit() {
    local status
    ./batch-run "${arguments[@]}" --output "$results" --device-memory 64 > "$log.limit" 2>&1
    status=$?
    cat "$log.limit"
    ((status == 2)) && grep -q 'no memory left' "$log.limit"
    status=$?
    rm -f "$log.limit"
    return "$status"
}

# What keeps the sanitizer from working here, if anything does: it does not support every system.
sanitizer_trouble() {
    if ! command -v compute-sanitizer > /dev/null; then
        echo 'no compute-sanitizer here'
    elif ! compute-sanitizer --tool memcheck --error-exitcode 3 ./batch-run "$@" > "$log" 2>&1 &&
        grep -q 'not supported' "$log"; then
        printf 'compute-sanitizer does not work here: %s\n' "$(grep -m 1 'not supported' "$log")"
    fi
}

models=(*/model.cohort)
models=("${models[@]%/model.cohort}")
if [[ -n ${MODELS:-} ]]; then
    read -ra models <<< "$MODELS"
fi
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
    check "$model: oracle" ./batch-run "${arguments[@]}" --output "$results" \
        --expect "$model/expected.jsonl" --tolerance "$tolerance"
    check "$model: every bit" ./batch-run "${arguments[@]}" --verify-batch-invariance "$compositions"
    [[ $device != cpu ]] || continue
    check "$model: the simulator's bits" gives_the_bits model.cohort
    check "$model: launch by launch" gives_the_bits apart.cohort
    while read -r precision part; do
        check "$model: oracle, $precision" ./batch-run "$model/$precision.cohort" "${arguments[@]:1}" \
            --output "$results" --expect "$model/expected.jsonl" --tolerance "$part"
    done < <(cat "$model/close" 2> /dev/null)
    for precision in tf32 bf16; do
        check "$model: every bit, $precision" ./batch-run "$model/$precision.cohort" \
            "${arguments[@]:1}" --verify-batch-invariance "$(((compositions + 1) / 2))"
    done
    [[ $device == cuda ]] || continue
    check "$model: without graphs" same_bits --no-graphs
    check "$model: timed" same_bits --device-times
    check "$model: a limit" refuses_a_limit
    if [[ -z ${trouble+known} ]]; then
        trouble=$(sanitizer_trouble "${arguments[@]}" --output "$results")
    fi
    if [[ -n $trouble ]]; then
        skip "$model: sanitizer" "$trouble"
        continue
    fi
    for tool in $sanitizers; do
        check "$model: $tool" compute-sanitizer --tool "$tool" --error-exitcode 3 --quiet \
            ./batch-run "${arguments[@]}" --batch 8 --output "$results" \
            --expect "$model/expected.jsonl" --tolerance "$tolerance"
    done
    # What only code for this precision has.
    if grep -aq _warpgroups "$model/bf16.cohort"; then
        for tool in memcheck synccheck; do
            check "$model: $tool, bf16" compute-sanitizer --tool "$tool" --error-exitcode 3 --quiet \
                ./batch-run "$model/bf16.cohort" "${arguments[@]:1}" --output "$results"
        done
    fi
done

printf '%d passed, %d failed, %d skipped\n' "$passed" "${#failures[@]}" "$skipped"
if ((${#failures[@]})); then
    printf 'failed: %s\n' "${failures[@]}"
    exit 1
fi
