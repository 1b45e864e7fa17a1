#!/usr/bin/env bash
# Builds the wheels into target/wheels: `cohort-runtime`, and with the argument `all` also `cohort-lang`,
# which has the compiler and takes longer. Installs the tools for that into target/python-tools.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly WHEELS=target/wheels TOOLS=target/python-tools
readonly BIN=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}

fail() { printf 'wheels: error: %s\n' "$*" >&2; exit 1; }

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "needs Python 3.11 or later"
if [[ ! -x $TOOLS/bin/maturin ]]; then
    python3 -m venv "$TOOLS"
    "$TOOLS/bin/pip" install --quiet 'maturin>=1.7,<2' 'setuptools>=70'
fi

mkdir -p "$WHEELS"
rm -f "$WHEELS"/cohort_runtime-*.whl
# The module is for every CPython from 3.11 on, whichever builds it.
"$TOOLS/bin/maturin" build --quiet --release --manifest-path python/Cargo.toml --out "$WHEELS" \
    --interpreter python3

if [[ ${1-} == all ]]; then
    [[ -x $BIN/batch-opt ]] || fail "no $BIN/batch-opt; run \`make build\`"
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    cp -r python/lang/. "$copy"
    mkdir -p "$copy/cohort_lang/bin"
    install -m 755 "$BIN/batch-opt" "$copy/cohort_lang/bin/batch-opt"
    platform=$(python3 -c 'import sysconfig; print(sysconfig.get_platform().replace("-", "_"))')
    rm -f "$WHEELS"/cohort_lang-*.whl
    "$TOOLS/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$WHEELS" \
        --config-settings="--build-option=--plat-name=$platform" "$copy"
fi
ls -l "$WHEELS" | awk 'NR > 1 { printf "%s  %.1f MB\n", $NF, $5 / 1e6 }'
