#!/usr/bin/env bash
# Checks the blocks of the pages under docs/ that are said to be what a tool prints: those behind a
# line `<!-- true: COMMAND -->`, whose command is `cat` of a file or `batch-opt` of one.
#
# The lines of a block occur in the output, in this order; a line that is `…` alone stands for any
# number of them, and `…` within a line for any text. Indentation does not count. Says how many blocks
# there are, and fails where one is not so.
#
# The tools are taken from $COHORT_BIN, or from the release folder of cargo's target directory.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="${COHORT_BIN:-${CARGO_TARGET_DIR:-target}/release}:$PATH"

blocks=0
wrong=0

# The lines of a block on standard input, the output of its command in the file $1; the first line that
# does not occur behind those before it, if there is one.
missing() {
    awk -v output="$1" '
        function trim(text) { gsub(/^[ \t]+|[ \t]+$/, "", text); return text }
        # Whether the parts of a line between its … occur in order, the first at its beginning and the
        # last at its end.
        function fits(pattern, line,    parts, count, i, at, part) {
            count = split(pattern, parts, "…")
            if (count == 1) return pattern == line
            if (index(line, trim(parts[1])) != 1) return 0
            for (i = 1; i <= count; i++) {
                part = trim(parts[i])
                if (i == count) {
                    at = length(line) - length(part) + 1
                    return at > 0 && substr(line, at) == part
                }
                at = index(line, part)
                if (at == 0) return 0
                line = substr(line, at + length(part))
            }
        }
        {
            pattern = trim($0)
            if (pattern == "" || pattern == "…") next
            found = 0
            while (!found && (getline line < output) > 0) found = fits(pattern, trim(line))
            if (!found) { print pattern; exit }
        }'
}

output=$(mktemp)
block=$(mktemp)
trap 'rm -f "$output" "$block"' EXIT
for page in docs/*.md; do
    command=
    inside=0
    line=0
    while IFS= read -r text; do
        line=$((line + 1))
        if [[ $text =~ ^'<!-- true: '(cat|batch-opt)' '([-a-zA-Z0-9_=/.\ ]+)' -->'$ ]]; then
            command=${BASH_REMATCH[1]}
            read -ra arguments <<< "${BASH_REMATCH[2]}"
            start=$line
        elif [[ -n $command && $text == '```'* && $inside == 0 ]]; then
            inside=1
            : > "$block"
        elif [[ $inside == 1 && $text == '```' ]]; then
            blocks=$((blocks + 1))
            "$command" "${arguments[@]}" > "$output"
            first=$(missing "$output" < "$block")
            if [[ -n $first ]]; then
                echo "error: $page:$start: not what \`$command ${arguments[*]}\` prints: $first" >&2
                wrong=$((wrong + 1))
            fi
            inside=0
            command=
        elif [[ $inside == 1 ]]; then
            printf '%s\n' "$text" >> "$block"
        fi
    done < "$page"
done
echo "$blocks blocks, $wrong wrong"
[[ $blocks -gt 0 && $wrong == 0 ]]
