#!/usr/bin/env bash
# Compares bert.coh and early_exit.coh with the `transformers` of the registry, in an environment of its own, or in
# that of TRANSFORMERS_ENVIRONMENT. PyTorch, which it needs, takes gigabytes where none is there.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly ENVIRONMENT=${TRANSFORMERS_ENVIRONMENT:-target/huggingface}
export COHORT_BATCH_OPT=${COHORT_BATCH_OPT:-${CARGO_TARGET_DIR:-$PWD/target}/release/batch-opt}

[[ -x $COHORT_BATCH_OPT ]] || { echo "no $COHORT_BATCH_OPT; run \`make build\`" >&2; exit 1; }
compgen -G 'target/wheels/cohort_runtime-*.whl' > /dev/null || python/wheels.sh
[[ -x $ENVIRONMENT/bin/pip ]] || python3 -m venv "$ENVIRONMENT"
if ! "$ENVIRONMENT/bin/python" -c 'import torch, transformers' 2> /dev/null; then
    "$ENVIRONMENT/bin/pip" install --quiet torch transformers
fi
"$ENVIRONMENT/bin/pip" install --quiet --no-deps --force-reinstall target/wheels/cohort_runtime-*.whl
exec "$ENVIRONMENT/bin/python" examples/huggingface/compare.py "$@"
