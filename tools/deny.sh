#!/usr/bin/env bash
# Holds the dependencies to deny.toml: licences, duplicates, where they come from; and known
# vulnerabilities where the database of them can be reached.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VERSION=0.20.2
readonly TOOL=.tools/bin/cargo-deny

say() { printf 'deny: %s\n' "$*"; }

if [[ $("$TOOL" --version 2>/dev/null) != "cargo-deny $VERSION" ]]; then
    say "building cargo-deny $VERSION into .tools (some minutes)"
    cargo install cargo-deny --version "$VERSION" --locked --root .tools --quiet --force
fi
"$TOOL" --log-level error check licenses bans sources
if "$TOOL" --log-level error fetch db >/dev/null 2>&1; then
    "$TOOL" --log-level error check advisories
else
    say "advisories: not checked, as their database cannot be reached"
fi
