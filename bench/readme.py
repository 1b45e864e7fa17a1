"""The comparison with every peer as Markdown, from the files that peers.py leaves: for README.md and for the page.

Nothing here needs more than Python.
"""

import json

from corpora import ROOT
from tables import geometric_mean, markdown, number, ratio, replace_section

FOLDER = ROOT / "bench" / "results" / "peers"
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "benchmarks.md"
TITLE = "Every model against its peers"
SECTION = "peers"
# What is not compared, and why.
MISSING = {
    "DGL": "its last release on PyPI, 2.1.0, wants `torchdata.datapipes`, which the torchdata for this PyTorch has no more.",
    "JAX": "has peers where loops decide or lengths differ (`act`, `birnn`, `ponder`, `encoder`). A tree's shape would be "
    "compiled anew for each batch.",
    "Nested tensors": "serve the encoder; the other models have operations that do not take them.",
    "`vgemm`, `trmm`": "have no size H; they are in the section on differing lengths, against loops, `bmm` and BLAS.",
    "`sst`, `huggingface`, `ray`": "are the TreeLSTM trained, an encoder with weights of others, and `act` served.",
}


def read_cases(folder=FOLDER):
    """All cases that were measured, by model in the order of the files' names and by size."""
    cases = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return sorted(cases, key=lambda case: (case["model"], case["size"]))


def best_of(rows, row):
    """The fastest peer at a batch size, and its rate; one that takes no batches counts at each of them."""
    rates = {}
    for other in rows:
        alone = set(other["peers"]) & set(other.get("single", ()))
        rates |= {c: rate for c, rate in other["peers"].items() if c in alone}
    rates |= row["peers"]
    return max(rates.items(), key=lambda item: item[1]) if rates else (None, None)


def own_size(case):
    """The size of a model's states: mvrnn's are matrices, and a quarter as wide."""
    return case["size"] // 4 if case["model"] == "mvrnn" else case["size"]


def ratios(cases):
    """The ratios to the best peer, each with its model, size and batch."""
    return [
        (row["ratio"], case["model"], own_size(case), row["batch"])
        for case in cases
        for row in case["rows"]
        if row["ratio"]
    ]


def summary(cases):
    """The geometric mean over all models, sizes and batches, and the least ratio, in a sentence."""
    all_ratios = ratios(cases)
    if not all_ratios:
        return "Nothing was compared.\n"
    least, model, size, batch = min(all_ratios)
    lost = [
        f"`{name}` at {size}, batch {batch}: {value:.2f}x"
        for value, name, size, batch in sorted(all_ratios)
        if value < 1
    ]
    mean = geometric_mean([value for value, *_ in all_ratios])
    text = f"Geometric mean over {len(all_ratios)} rows (models, sizes, batches): {mean:.2f}x the best peer; "
    text += f"the least is {least:.2f}x, `{model}` at {size} and batch {batch}. "
    text += f"We lose in {len(lost)}: {'; '.join(lost)}.\n" if lost else "No row is below 1x.\n"
    return text


def machines(cases):
    """On which processors, against which versions and how often the cases were measured."""
    versions = {}
    for case in cases:
        peers = ", ".join(
            f"{ {'torch': 'PyTorch', 'jax': 'JAX'}[name] } {version}"
            for name, version in case["versions"].items()
            if version
        )
        runs = f"{case['turns']} turns of at least {case['repetitions']} passes"
        if "turn_seconds" in case:
            runs += f" and {case['turn_seconds']} s"
        runs += f" over {case['instances']} instances"
        versions.setdefault(f"{case['processor']}, one thread, against {peers}: {runs}", None)
    return "; ".join(versions)


def by_size(cases):
    """A row for each model and size, with the rates at each batch, the ratio and the best peer."""
    cells = []
    for case in cases:
        for row in case["rows"]:
            cells.append(
                (
                    case["model"],
                    own_size(case),
                    row["batch"],
                    number(row["cohort"]),
                    number(row["best rate"]),
                    row["best"] or "-",
                    emphasised(row["ratio"]),
                )
            )
    return markdown(("model", "H", "batch", "Cohort/s", "best peer/s", "which", "ratio"), cells)


def emphasised(value):
    """A ratio, in bold where we lose."""
    return f"**{ratio(value)}**" if value is not None and value < 1 else ratio(value)


def compact(cases):
    """A row for each model, its ratios by size and batch: short enough for README.md."""
    found = {(case["model"], case["size"], row["batch"]): row for case in cases for row in case["rows"]}
    sizes = sorted({size for _, size, _ in found})
    batches = sorted({batch for _, _, batch in found})
    heads = [
        "model",
        *(f"{size}, {batch}" for size in sizes for batch in batches),
        "at the last, Cohort/s",
        "the best peer there",
    ]
    lines = []
    for model in dict.fromkeys(case["model"] for case in cases):
        rows = [found.get((model, size, batch)) for size in sizes for batch in batches]
        last = [row for row in rows if row][-1]
        cells = (emphasised(row["ratio"]) if row else "-" for row in rows)
        lines.append((model, *cells, number(last["cohort"]), last["best"] or "-"))
    return markdown(heads, lines)


def memory(cases):
    """The peak memory of both sides' processes, where it was taken."""
    cells = []
    for case in cases:
        if not case["memory"]:
            continue
        found, mb = case["memory"], 1e-6
        peer = found["peer"]
        cells.append(
            (
                case["model"],
                own_size(case),
                found["batch"],
                number(found["cohort"] * mb),
                number(peer["peak"] * mb),
                number((peer["peak"] - peer["before"]) * mb),
                found["column"],
            )
        )
    heads = ("model", "H", "batch", "Cohort, MB", "peer, MB", "of it since weights and inputs are read", "which")
    return markdown(heads, cells)


def notes(cases):
    """What inputs were, what failed, and what is missing."""
    inputs = {}
    for case in cases:
        inputs.setdefault(case["inputs"], dict.fromkeys(()))[f"`{case['model']}`"] = None
    text = "Inputs: " + "; ".join(f"{what} ({', '.join(models)})" for what, models in inputs.items()) + ".\n\n"
    for case in cases:
        for column, why in case["failed"].items():
            text += f"- `{case['model']}` at {own_size(case)}: the peer *{column}* is not timed: {why}\n"
    for what, why in MISSING.items():
        text += f"- {what}: {why}\n"
    return text


EXPLANATION = """Instances a second, Cohort beside the fastest of the peers of each row: PyTorch by level for trees
and graphs (*level*), padded with masks (*masked*, *padded*), with finished rows dropped (*compact*), packed by
hand (*packed*), by waves of what is ready (*waves*), one instance at a time (*single*, *tuned*, *eager*),
PyTorch's own modules (*library*) and nested tensors (*nested*), some with `torch.compile` too (*compiled*), and
JAX. MKL, which PyTorch computes with, is made to use AVX-512 (bench/libraries.py): by itself it does so on Intel's
processors only. Every peer's outputs are compared with Cohort's at each batch size first: numbers within 2e-3 of the largest,
at most 1 % of the instances may decide otherwise. Sides take turns; figures are medians. One that takes one
instance at a time counts at every batch size. H of `exprtree` is how many rows its tables have in the middle.
"""


def peers_page(figures):
    """The section of the page."""
    cases = figures["cases"]
    text = f"{EXPLANATION}\n{summary(cases)}\n{by_size(cases)}\n"
    if any(case["memory"] for case in cases):
        text += "### Peak memory\n\nOf whole processes: Cohort's runs a compiled artifact, a peer's has its libraries in it.\n\n"
        text += f"{memory(cases)}\n### Inputs, and what is missing\n\n"
    text += notes(cases)
    text += "".join(f"- `{what}` does not run: {why}\n" for what, why in figures["refused"].items())
    return text


def readme_section(cases):
    """What README.md says."""
    return (
        f"Ratios to the best peer at D = H and batch (`mvrnn`: at a quarter of D = H), on {machines(cases)}; in bold "
        "where we lose.\n\n"
        f"{compact(cases)}\n{summary(cases)}"
    )


def write():
    """Writes the section of README.md, and that of the page, from all cases that were measured."""
    cases = read_cases()
    if not cases:
        raise SystemExit(f"{FOLDER} has no figures: run bench/run.py --parts peers first")
    page = f"## {TITLE}\n\nOn {machines(cases)}.\n\n{peers_page({'cases': cases, 'refused': {}})}\n"
    for path, body in ((README, readme_section(cases)), (PAGE, page)):
        text = path.read_text(encoding="utf-8")
        path.write_text(replace_section(text, SECTION, body), encoding="utf-8")
    print(summary(cases), end="")
