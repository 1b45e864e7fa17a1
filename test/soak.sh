#!/usr/bin/env bash
# A million instances, one in a hundred bad: every one has its record, and the memory of each batch-run is
# at the end what it was in the beginning. Usage: test/soak.sh [INSTANCES]
set -euo pipefail
cd "$(dirname "$0")/.."

# Divided between the four runs below.
instances=$((${1:-1000000} / 4))
bin=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
# How much more memory the whole may take than its first tenth.
most_growth_percent=10
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

# soak MODEL [OPTION]…: the model's own inputs over and over, of all sizes mixed, with bad ones between.
soak() {
    local model=$1 folder_of=examples/$1
    shift
    "$bin/batch-opt" "$folder_of/$model.coh" --weights "$folder_of/weights.safetensors" \
        --emit=artifact -o "$folder/$model.cohort"
    rm -f "$folder/input" "$folder/peaks"
    mkfifo "$folder/input"
    # At the end of the first tenth, of the half and of the whole, /proc says what the peak was. The
    # input is held open until then.
    python3 test/soak.py "$folder_of/input.jsonl" "$instances" "$folder/input" "$folder/pid" \
        "$folder/peaks" &
    local writer=$!
    local status=0
    "$bin/batch-run" "$folder/$model.cohort" --weights "$folder_of/weights.safetensors" \
        --input "$folder/input" --output >(python3 test/soak.py --count >"$folder/counts") "$@" \
        2>"$folder/stderr" &
    echo $! >"$folder/pid"
    wait $! || status=$?
    wait $writer
    # The reader of the output ends a moment later.
    while [[ ! -s $folder/counts ]]; do sleep 0.1; done
    local records errors tenth half whole
    read -r records errors <"$folder/counts"
    read -r tenth half whole <"$folder/peaks"
    printf '%-10s %-24s %8d records, %6d errors, exit %d; peak at 10 %%, 50 %%, 100 %%: %d, %d, %d MiB\n' \
        "$model" "$*" "$records" "$errors" "$status" $((tenth / 1024)) $((half / 1024)) $((whole / 1024))
    if ((records == instances && errors == (instances + 99) / 100 && status == 1)) &&
        ((whole * 100 <= tenth * (100 + most_growth_percent))); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        tail -n 3 "$folder/stderr"
    fi
}

# Trees, lengths that differ, and paths that tensors decide.
soak treegru
soak treegru --threads 2
soak masked_mha --batch 64
soak act --in-flight 64

printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
