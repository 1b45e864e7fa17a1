#!/usr/bin/env bash
# Builds the wheel of the runtime and tests it from Python, in an environment of its own, and of the
# benchmarks what needs no PyTorch.
set -uo pipefail
cd "$(dirname "$0")/.."

export COHORT_BIN=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
readonly ENVIRONMENT=target/python-test

python/wheels.sh || exit 1
if [[ ! -x $ENVIRONMENT/bin/pytest ]]; then
    python3 -m venv "$ENVIRONMENT" &&
        "$ENVIRONMENT/bin/pip" install --quiet pytest 'numpy>=1.24' || exit 1
fi
# What needs these is skipped, and says so, where they are not to be had. PyTorch is not among them: it takes
# gigabytes. Where it is installed in that environment, its tests run.
"$ENVIRONMENT/bin/python" -c 'import pyarrow' 2>/dev/null || "$ENVIRONMENT/bin/pip" install --quiet pyarrow
"$ENVIRONMENT/bin/pip" install --quiet --no-deps --force-reinstall target/wheels/cohort_runtime-*.whl ||
    exit 1

report=$(mktemp)
trap 'rm -f "$report"' EXIT
COHORT_BATCH_OPT=$COHORT_BIN/batch-opt COHORT_CACHE=$PWD/target/python-cache \
    "$ENVIRONMENT/bin/python" -m pytest -q -rs -p no:cacheprovider --rootdir python/tests python/tests bench "$@" |
    tee "$report"
# Each number of the last line with its word: `3 failed, 41 passed, 1 error in 5.20s`.
awk '
    / in [0-9.]+s/ {
        passed = failed = 0
        for (i = 1; i < NF; i++) {
            if ($(i + 1) ~ /^passed/) passed = $i
            if ($(i + 1) ~ /^(failed|errors?)/) failed += $i
        }
        seen = 1
    }
    END { if (!seen) failed = 1; printf "%d passed, %d failed\n", passed, failed; exit failed > 0 }' "$report"
