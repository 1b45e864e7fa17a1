#!/usr/bin/env bash
# Changed inputs under valgrind, for the night: what reads or writes memory that is not its own is an
# exit code of 99, and so a failure. Usage: test/fuzz-memory.sh [MINUTES [SEED]]
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:-60}
seed=${2:-}
bin=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
log=target/fuzz-memory.log

command -v valgrind >/dev/null || {
    echo "error: valgrind is missing: apt-get install valgrind" >&2
    exit 2
}
# Leaks are not looked for: a tool that stops leaves its memory to the system. MLIR's threads and
# generated code run as they are; fibers are told apart by the size of their stacks.
status=0
valgrind --quiet --error-exitcode=99 --leak-check=no --max-stackframe=8388608 --main-stacksize=67108864 \
    --log-file="$log" "$bin/cohort-fuzz" --slowness 50 --shrink 10 --minutes "$minutes" \
    ${seed:+--seed "$seed"} --target json,weights,artifact,object,source,ir || status=$?
((status == 0)) || tail -n 40 "$log"
exit "$status"
