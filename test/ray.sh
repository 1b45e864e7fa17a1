#!/usr/bin/env bash
# Builds the wheel of the runtime and tests it under a local Ray, in an environment of its own: Ray is large, and
# `make test` does without it.
set -euo pipefail
cd "$(dirname "$0")/.."

export COHORT_BIN=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
readonly ENVIRONMENT=${RAY_ENVIRONMENT:-target/ray-test}

python/wheels.sh
if [[ ! -x $ENVIRONMENT/bin/pytest ]]; then
    python3 -m venv "$ENVIRONMENT"
    "$ENVIRONMENT/bin/pip" install --quiet pytest 'numpy>=1.24' pyarrow 'ray[data,serve]'
fi
"$ENVIRONMENT/bin/pip" install --quiet --no-deps --force-reinstall target/wheels/cohort_runtime-*.whl
export COHORT_BATCH_OPT=$COHORT_BIN/batch-opt COHORT_CACHE=$PWD/target/python-cache
"$ENVIRONMENT/bin/python" -m pytest -q -rs -p no:cacheprovider --rootdir python/tests python/tests/test_ray.py "$@"
for example in predict deploy; do
    "$ENVIRONMENT/bin/python" "examples/ray/$example.py" 2>&1 | tail -3
done
