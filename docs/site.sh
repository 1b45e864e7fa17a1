#!/usr/bin/env bash
# Builds the pages of docs/ as a site into target/site, by MkDocs in an environment of its own. A link or an anchor
# that leads nowhere fails.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly ENVIRONMENT=target/docs-tools
if [[ ! -x $ENVIRONMENT/bin/mkdocs ]]; then
    python3 -m venv "$ENVIRONMENT"
    "$ENVIRONMENT/bin/pip" install --quiet 'mkdocs>=1.6,<2'
fi
"$ENVIRONMENT/bin/mkdocs" build --quiet --strict
echo "target/site has $(find target/site -name '*.html' | wc -l) pages"
