#!/usr/bin/env bash
# What of the use of NVIDIA's driver can be tested without a GPU: against an imitation of it
# (imitation.c) that computes nothing. That no call is wrong or left out, how many copies a flush
# makes, and what is said when there is no driver, an old one, no device, no memory, or a device that
# dies. Needs the small batch-run (`make runner`; test/runner.sh builds it too).
set -uo pipefail
cd "$(dirname "$0")/../.."

bin=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
runner=${CARGO_TARGET_DIR:-$PWD/target}/runner/release/batch-run
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

check() {
    local description=$1 wrong
    shift
    wrong=$("$@" 2>&1)
    if [[ -z $wrong ]]; then
        printf 'ok    %s\n' "$description"
        passed=$((passed + 1))
    else
        printf 'FAIL  %s\n%s\n' "$description" "$wrong"
        failed=$((failed + 1))
    fi
}

# run BEHAVIOUR ARGUMENT…: on the imitation; leaves `code`, and stderr in $folder/stderr.
run() {
    local behaviour=$1
    shift
    LD_LIBRARY_PATH=$folder/driver COHORT_IMITATION=$behaviour COHORT_IMITATION_LOG=$folder/log \
        "$runner" "$folder/model.cohort" --device cuda --weights "$example/weights.safetensors" --quiet \
        --input "$example/input.jsonl" --output "$folder/output" "$@" 2> "$folder/stderr"
    code=$?
}

# refused BEHAVIOUR TEXT ARGUMENT…: exit code 2 and a message with that text.
refused() {
    local behaviour=$1 text=$2
    shift 2
    run "$behaviour" "$@"
    ((code == 2)) || echo "exit code $code"
    grep -qF -- "$text" "$folder/stderr" || { echo "expected: $text"; cat "$folder/stderr"; }
}

counted() { sed -n "s/^$1 //p" "$folder/log"; }

runs_to_the_end() {
    local instances lines
    run '' --batch all --stats "$folder/stats"
    ((code == 0)) || { echo "exit code $code"; cat "$folder/stderr"; }
    instances=$(wc -l < "$example/input.jsonl")
    lines=$(grep -c '"output": \[' "$folder/output")
    ((lines == instances)) || echo "$lines results of $instances instances"
    grep -q '"name": "Imitation (cuda:0)"' "$folder/stats" || echo 'the statistics do not name the device'
}

copies_are_few() {
    run '' --batch all
    (($(counted 'to host') == 1)) || echo "$(counted 'to host') copies to the host for one batch"
    local all=$(counted 'to device')
    run '' --batch 20
    # The index lists of two more flushes.
    (($(counted 'to device') == all + 2)) || echo "$(counted 'to device') copies to the device, not $((all + 2))"
    (($(counted 'to host') == 3)) || echo "$(counted 'to host') copies to the host for three batches"
}

streams_are_used() {
    prepare birnn
    run '' --batch all
    (($(counted 'forks') > 0)) || echo 'no launches on several streams'
    prepare treelstm
}

gives_all_memory_back() {
    run '' --batch 7
    (($(counted left) == 0)) || echo "$(counted left) bytes were not given back"
}

keeps_what_was_finished() {
    refused 'dies=60' 'Imitation (cuda:0): it stopped working: unspecified launch failure' --batch 5
    local lines
    lines=$(wc -l < "$folder/output")
    ((lines >= 5 && lines % 5 == 0 && lines < $(wc -l < "$example/input.jsonl"))) ||
        echo "$lines lines were written"
}

no_driver() {
    if ldconfig -p | grep -q 'libcuda\.so'; then return; fi
    mv "$folder/driver" "$folder/elsewhere"
    refused '' 'there is no NVIDIA driver on this machine'
    mv "$folder/elsewhere" "$folder/driver"
}

mkdir "$folder/driver"
cc -std=gnu11 -O1 -Wall -Werror -shared -fPIC -o "$folder/driver/libcuda.so" test/device/imitation.c || exit 1
ln -s libcuda.so "$folder/driver/libcuda.so.1"

# prepare NAME: the example that is run.
prepare() {
    example=examples/$1
    "$bin/batch-opt" "$example/$1.coh" --weights "$example/weights.safetensors" --emit artifact \
        --gpu-arch ptx -o "$folder/model.cohort" || exit 1
}

prepare treelstm

check 'a program runs to its end' runs_to_the_end
check 'a flush makes few copies' copies_are_few
check 'independent launches go to several streams' streams_are_used
check 'all memory is given back' gives_all_memory_back
check 'a missing driver is told' no_driver
check 'an old driver is told' refused version=11040 'too old: it supports CUDA 11.4, and 12.0 is needed'
check 'a missing device is told' refused none 'no usable device: no CUDA-capable device is detected'
check 'too little memory is told' refused memory=1000000 'no memory left'
check 'a device that dies leaves what was finished' keeps_what_was_finished

result=ok
((failed == 0)) || result=FAILED
printf 'test result: %s. %d passed; %d failed\n' "$result" "$passed" "$failed"
((failed == 0))
