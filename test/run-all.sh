#!/usr/bin/env bash
# Runs every suite to its end and prints one line of totals; fails when any test did. The tools are
# built already (`make test` sees to it).
set -uo pipefail
cd "$(dirname "$0")/.."

# One place for the tools, also where cargo builds elsewhere.
export COHORT_BIN=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
# What the tests compile is kept between them, and nothing of an earlier run.
export COHORT_CACHE=${CARGO_TARGET_DIR:-$PWD/target}/test-cache
rm -rf "$COHORT_CACHE"

passed=0
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The sum of the numbers before a word on the lines of a suite's totals: cargo's, or `3 passed, 0 failed`.
sum() {
    awk -v word="$1" '
        /^test result: / || /^[0-9]+ passed, [0-9]+ failed$/ {
            for (i = 1; i < NF; i++) if ($(i + 1) ~ "^" word) total += $i
        }
        END { print total + 0 }' "$2"
}

# count LOG STATUS SECONDS: adds a suite's own totals up. A command that fails without saying so, or that says
# nothing at all, counts as one failure.
count() {
    local ok bad
    ok=$(sum passed "$1")
    bad=$(sum failed "$1")
    if ((bad == 0 && ($2 != 0 || ok == 0))); then
        bad=1
    fi
    passed=$((passed + ok))
    failed=$((failed + bad))
    printf '== %d passed, %d failed in %d s\n' "$ok" "$bad" "$3"
}

# suite NAME COMMAND…: one that has the machine for itself, since it takes times or uses every processor.
suite() {
    local name=$1 start=$SECONDS
    shift
    printf '\n== %s\n' "$name"
    "$@" 2>&1 | tee "$folder/log"
    count "$folder/log" "${PIPESTATUS[0]}" "$((SECONDS - start))"
}

# beside NAME COMMAND…: one that runs on one processor, beside others; `finish` waits for all of them. What it prints
# is shown when it ends.
beside() {
    while (($(jobs -rp | wc -l) >= $(nproc))); do
        wait -n
    done
    local log
    log=$(mktemp "$folder/XXXX.log")
    (
        start=$SECONDS
        name=$1
        shift
        "$@" >"$log.text" 2>&1 </dev/null
        printf '%d %d\n' "$?" "$((SECONDS - start))" >"$log.end"
        # Lines of two suites do not mix.
        flock 9
        printf '\n== %s\n' "$name"
        cat "$log.text"
    ) 9>"$folder/lock" &
}

finish() {
    wait
    local log status seconds
    printf '\n== side by side\n'
    for log in "$folder"/*.log; do
        read -r status seconds <"$log.end"
        count "$log.text" "$status" "$seconds"
    done
}

# One more than there are processors, for some tests wait.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$(($(nproc) + 1))}
suite 'Rust tests' cargo test --release --workspace --no-fail-fast
# The longest first.
beside 'code for GPUs' test/gpu-code.sh
beside 'AArch64, emulated' test/aarch64.sh
beside 'the wheel for Python' test/python.sh
# Always the same ones: what a fresh seed finds is for `make fuzz`, and stops no change that is not to blame.
beside 'changed inputs and random programs' "$COHORT_BIN/cohort-fuzz" --minutes 5 --seed 1 --rounds 25
beside 'IR tests' bash test/run-lit.sh
beside 'batch-run without the compiler' test/runner.sh
beside 'the driver of a GPU, imitated' test/device/imitation.sh
beside 'highlighting in editors' editors/test.sh
beside 'generated documentation' test/check-docs.sh
beside 'invariants' test/tidy.sh
finish

printf '\n%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
