#!/usr/bin/env bash
# `batch-run` built without the compiler: that it is small and free of MLIR, and that it runs the
# artifact of every example to the bytes that the full `batch-run` gives.
set -uo pipefail
cd "$(dirname "$0")/.."

bin=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
runner=${CARGO_TARGET_DIR:-$PWD/target}/runner/release/batch-run
# What it has is about 6 MiB; MLIR alone would be 150.
most_bytes=$((8 << 20))

passed=0
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# check DESCRIPTION COMMAND…: the command succeeds and prints nothing.
check() {
    local description=$1 wrong status
    shift
    wrong=$("$@" 2>&1)
    status=$?
    if ((status == 0)) && [[ -z $wrong ]]; then
        printf 'ok    %s\n' "$description"
        passed=$((passed + 1))
    else
        printf 'FAIL  %s (exit code %d)\n%s\n' "$description" "$status" "$wrong"
        failed=$((failed + 1))
    fi
}

is_small() {
    local bytes
    bytes=$(stat -c %s "$runner")
    ((bytes <= most_bytes)) || echo "$runner has $bytes bytes, more than $most_bytes"
}

links_only_the_c_library() {
    ldd "$runner" | awk '{ print $1 }' | sed 's|.*/||' |
        grep -vE '^(linux-vdso|libgcc_s|libm|libc|libdl|libpthread|librt|ld-linux-x86-64)\.so' || true
}

names_no_mlir() {
    if grep -qaiE 'libMLIR|libLLVM|mlir::|llvm::' "$runner"; then echo "MLIR is in $runner"; fi
}

refuses_programs() {
    local message status
    message=$("$runner" examples/treelstm/treelstm.coh 2>&1)
    status=$?
    ((status == 2)) || echo "exit code $status"
    [[ $message == *'built without the compiler'* ]] || echo "$message"
}

runs_as_the_full_one() {
    local example=examples/$1 artifact=$folder/$1.cohort
    "$bin/batch-opt" "$example/$1.coh" --weights "$example/weights.safetensors" --emit artifact \
        -o "$artifact" "${@:2}" || return
    "$bin/batch-run" "$example/$1.coh" --weights "$example/weights.safetensors" --quiet \
        --input "$example/input.jsonl" --output "$folder/expected" || return
    "$runner" "$artifact" --weights "$example/weights.safetensors" --quiet --batch 3 --threads 2 \
        --input "$example/input.jsonl" --output "$folder/found" || return
    [[ -s $folder/expected ]] || echo "no output"
    cmp "$folder/expected" "$folder/found"
}

# A model that the compiler does not take yet is one that its own tests know.
is_compiled() {
    "$bin/batch-opt" "examples/$1/$1.coh" --weights "examples/$1/weights.safetensors" --emit llvm \
        -o /dev/null 2>/dev/null
}

cargo build --quiet --release --package cohort-tools --bin batch-run --no-default-features \
    --target-dir "$(dirname "$(dirname "$runner")")" || exit 1
check 'batch-run without the compiler is small' is_small
check 'batch-run without the compiler links the C library only' links_only_the_c_library
check 'batch-run without the compiler has no MLIR in it' names_no_mlir
check 'batch-run without the compiler refuses programs' refuses_programs
for example in examples/*/; do
    name=$(basename "$example")
    if is_compiled "$name"; then
        check "$name runs as an artifact" runs_as_the_full_one "$name"
    fi
done
check 'an artifact for another processor runs' runs_as_the_full_one treelstm --target-cpu x86-64-v3

result=ok
((failed == 0)) || result=FAILED
printf 'test result: %s. %d passed; %d failed\n' "$result" "$passed" "$failed"
((failed == 0))
