#!/usr/bin/env bash
# The generated reference pages are those that the declarations give, and what pages show of a tool's
# output is what it prints.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=0
if ! docs/generate.sh --check; then
    echo 'renew the pages with `make docs`' >&2
    failed=$((failed + 1))
fi
if ! docs/check-snippets.sh; then
    echo 'write what the tools print' >&2
    failed=$((failed + 1))
fi
if [ "$failed" -eq 0 ]; then
    echo 'test result: ok. 2 passed; 0 failed'
else
    echo "test result: FAILED. $((2 - failed)) passed; $failed failed"
    exit 1
fi
