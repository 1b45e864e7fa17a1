#!/usr/bin/env bash
# Changed inputs under valgrind, for the night: what reads or writes memory that is not its own is an
# exit code of 99, and so a failure. Usage: test/fuzz-memory.sh [MINUTES [SEED]]
#
# The programs are compiled as ever, and the batch-run that has no compiler runs them: that is where what
# comes from outside meets memory, and valgrind starts it in a second.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:-60}
seed=${2:-}
bin=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
runner=${CARGO_TARGET_DIR:-$PWD/target}/runner/release

command -v valgrind >/dev/null || {
    echo "error: valgrind is missing: apt-get install valgrind" >&2
    exit 2
}
# Leaks are not looked for: a tool that stops leaves its memory to the system.
exec "$bin/cohort-fuzz" --minutes "$minutes" ${seed:+--seed "$seed"} --shrink 20 \
    --target json,weights,artifact,object --tools "$runner" \
    --under "valgrind --quiet --error-exitcode=99 --leak-check=no --max-stackframe=8388608"
