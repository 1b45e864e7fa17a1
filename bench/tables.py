"""Numbers, tables and lines of JSON: what benchmarks share that needs nothing but Python."""

import json


def read_lines(path):
    """The objects of a JSON Lines file."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def number(value, digits=2):
    """A number as text; `-` for None."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 or isinstance(value, int) else f"{value:.{digits}f}"


def ratio(value):
    return "-" if value is None else f"{value:.2f}x"


def share(value):
    return "-" if value is None else f"{value:.0%}"


def markdown(heads, rows):
    """A Markdown table; the first column is left-aligned, the others are right-aligned."""
    widths = [max(len(str(row[k])) for row in [heads, *rows]) for k in range(len(heads))]

    def line(cells):
        first, *others = (str(cell) for cell in cells)
        padded = [first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(others, widths[1:]))]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(heads), line(rule), *(line(row) for row in rows)]) + "\n"
