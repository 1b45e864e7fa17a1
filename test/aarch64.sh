#!/usr/bin/env bash
# Artifacts for AArch64, run by an emulator: every example gives the bytes that it gives here, compiled for AVX2.
# On x86-64 alone: elsewhere `make setup` installs no emulator.
set -uo pipefail
cd "$(dirname "$0")/.."

bin=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
target=aarch64-unknown-linux-gnu
folder_of_builds=${CARGO_TARGET_DIR:-$PWD/target}/aarch64
runner=$folder_of_builds/$target/release/batch-run

if [[ $(uname -m) != x86_64 ]]; then
    printf 'ok    not a machine of x86-64: nothing is emulated\n'
    printf 'test result: ok. 1 passed; 0 failed\n'
    exit
fi

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

emulated() { qemu-aarch64 -L /usr/aarch64-linux-gnu "$runner" "$@"; }

# compile EXAMPLE PROCESSOR: its artifact, with weights as `kept` says.
compile() {
    "$bin/batch-opt" "examples/$1/$1.coh" --weights "examples/$1/weights.safetensors" \
        --keep-weights "${kept:-f32}" --emit artifact --target-cpu "$2" -o "$folder/$1.$2.cohort"
}

gives_the_same_bits() {
    local example=examples/$1
    compile "$1" "$2" || return
    compile "$1" x86-64-v3 || return
    "$bin/batch-run" "$folder/$1.x86-64-v3.cohort" --weights "$example/weights.safetensors" --quiet \
        --input "$example/input.jsonl" --output "$folder/expected" || return
    emulated "$folder/$1.$2.cohort" --weights "$example/weights.safetensors" --quiet --batch 3 --threads 2 \
        --input "$example/input.jsonl" --output "$folder/found" || return
    [[ -s $folder/expected ]] || echo "no output"
    cmp "$folder/expected" "$folder/found"
}

# refuses WORDS COMMAND…: the command ends with 2 and says so.
refuses() {
    local words=$1 message status
    shift
    message=$("$@" 2>&1)
    status=$?
    ((status == 2)) || echo "exit code $status"
    [[ $message == *"$words"* ]] || echo "$message"
}

# What is tested is what it computes, and kernels are not its own code.
CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc cargo build --quiet --release \
    --package cohort-tools --bin batch-run --no-default-features --target "$target" \
    --target-dir "$folder_of_builds" || exit 1
for example in examples/*/; do
    name=$(basename "$example")
    [[ -e $example/weights.safetensors && -e $example/input.jsonl ]] || continue
    check "$name has the same bits on AArch64" gives_the_same_bits "$name" aarch64
done
check 'treelstm has the same bits on a Neoverse N1' gives_the_same_bits treelstm neoverse-n1
kept=bf16 check 'treelstm with weights in bf16 has the same bits on AArch64' gives_the_same_bits treelstm aarch64
check 'code for AArch64 is refused elsewhere' refuses \
    'the processor it was compiled for: expected x86_64, found aarch64' \
    "$bin/batch-run" "$folder/treelstm.aarch64.cohort" --weights examples/treelstm/weights.safetensors \
    --input examples/treelstm/input.jsonl
compile treelstm x86-64
check 'and that of another processor on AArch64' refuses \
    'the processor it was compiled for: expected aarch64, found x86_64' \
    emulated "$folder/treelstm.x86-64.cohort" --weights examples/treelstm/weights.safetensors \
    --input examples/treelstm/input.jsonl

result=ok
((failed == 0)) || result=FAILED
printf 'test result: %s. %d passed; %d failed\n' "$result" "$passed" "$failed"
((failed == 0))
