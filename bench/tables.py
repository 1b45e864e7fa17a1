"""Numbers, tables and lines of JSON: what benchmarks share that needs nothing but Python."""

import json
import platform
import re
import statistics
from pathlib import Path


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


def geometric_mean(values):
    """The geometric mean of some ratios, None of none."""
    return statistics.geometric_mean(values) if values else None


def describe_processor():
    """The processor, its design where the name does not say it, and its widest vectors: `AMD EPYC (Zen 5) with AVX-512`."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    name = re.search(r"^model name\s*: (.*)$", info, re.MULTILINE)
    vectors = "AVX-512" if "avx512f" in info else "AVX2" if "avx2" in info else "no AVX2"
    return f"{name[1] if name else platform.machine()}{design(info)} with {vectors}"


def design(info):
    """AMD's design by its family of processors, of which one has two; nothing for others."""
    family = re.search(r"^vendor_id\s*: AuthenticAMD\ncpu family\s*: (\d+)$", info, re.MULTILINE)
    families = {"23": "Zen 2", "25": "Zen 4" if "avx512f" in info else "Zen 3", "26": "Zen 5"}
    name = families.get(family[1]) if family else None
    return f" ({name})" if name else ""


def replace_section(text, name, body):
    """A page with what is between `<!-- name -->` and `<!-- end of name -->` replaced; both must be there."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        raise ValueError(f"the page has no section {name}")
    first, rest = text.split(begin)
    return f"{first}{begin}{body}{end}{rest.split(end)[1]}"
