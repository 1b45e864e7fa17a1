#!/usr/bin/env bash
# Runs every suite to its end and prints one line of totals; fails when any test did. The tools are
# built already (`make test` sees to it).
set -uo pipefail
cd "$(dirname "$0")/.."

# One place for the tools, also where cargo builds elsewhere.
export COHORT_BIN=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}

passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The sum of the numbers before a word on the lines of a suite's totals: cargo's, or `3 passed, 0 failed`.
sum() {
    awk -v word="$1" '
        /^test result: / || /^[0-9]+ passed, [0-9]+ failed$/ {
            for (i = 1; i < NF; i++) if ($(i + 1) ~ "^" word) total += $i
        }
        END { print total + 0 }' "$log"
}

# suite NAME COMMAND…: the command's own output says how many passed and failed. A command that
# fails without saying so, or that says nothing at all, counts as one failure.
suite() {
    local name=$1
    shift
    printf '\n== %s\n' "$name"
    "$@" 2>&1 | tee "$log"
    local status=${PIPESTATUS[0]} ok bad
    ok=$(sum passed)
    bad=$(sum failed)
    if ((bad == 0 && (status != 0 || ok == 0))); then
        bad=1
    fi
    passed=$((passed + ok))
    failed=$((failed + bad))
}

suite 'invariants' test/tidy.sh
suite 'Rust tests' cargo test --release --workspace --no-fail-fast
suite 'batch-run without the compiler' test/runner.sh
suite 'AArch64, emulated' test/aarch64.sh
suite 'the wheel for Python' test/python.sh
suite 'the driver of a GPU, imitated' test/device/imitation.sh
suite 'IR tests' bash test/run-lit.sh
suite 'code for GPUs' test/gpu-code.sh
# Always the same ones: what a fresh seed finds is for `make fuzz`, and stops no change that is not to blame.
suite 'changed inputs and random programs' "$COHORT_BIN/cohort-fuzz" --minutes 5 --seed 1 --rounds 25
suite 'highlighting in editors' editors/test.sh
suite 'generated documentation' test/check-docs.sh

printf '\n%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
