#!/usr/bin/env bash
# The sentiment demo; `make demo` builds the tools first.
set -euo pipefail
cd "$(dirname "$0")/../.."
# Of the whole workspace, so that what `make build` has built is not built again with other features.
cargo build --release --quiet --workspace --example sentiment
exec "${CARGO_TARGET_DIR:-target}/release/examples/sentiment"
