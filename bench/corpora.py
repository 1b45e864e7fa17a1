"""What benchmarks take real inputs from: parse trees, tagged sentences, lattices and lengths, with stand-ins.

Nothing here needs more than Python, so that it is tested without what the benchmarks install.
"""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
SST_DEV = SHARED / "sst" / "dev.txt"
TAGS = SHARED / "tags" / "dev.txt"
LATTICES = SHARED / "lattice" / "dev.txt"
# The first lengths of three data sets; where they are missing, 128 quantiles of each.
LENGTHS = (SHARED / "lengths", ROOT / "bench" / "lengths")


def lengths_of(name, count):
    """The first sequence lengths of a data set."""
    path = next(folder / f"{name}.txt" for folder in LENGTHS if (folder / f"{name}.txt").exists())
    return [int(line) for line in path.read_text(encoding="utf-8").split()][:count]


def read_tagged(text):
    """The words of each sentence of lines like `The|O band|O`."""
    return [[pair.rsplit("|", 1)[0].lower() for pair in line.split()] for line in text.splitlines() if line.split()]


def read_lattices(text):
    """The lattices of a file, each a list of nodes, a pair of a word and the nodes before it.

    A lattice is its number of nodes, a line of labels, and a line for each node: how many edges end in it, and
    for each edge the node where it starts and its word. A node has the word of its first edge, the first node 0.
    """
    numbers = [[int(part) for part in line.split()] for line in text.splitlines() if line.split()]
    count, lattices, at = numbers[0][0], [], 1
    for _ in range(count):
        (nodes,) = numbers[at]
        lattice = []
        for edges, *rest in numbers[at + 2 : at + 2 + nodes]:
            before = rest[0 : 2 * edges : 2]
            if len(rest) != 2 * edges or any(node >= len(lattice) for node in before):
                raise ValueError(f"node {len(lattice)} of lattice {len(lattices)} is not one")
            lattice.append((rest[1] if edges else 0, before))
        if len(lattice) != nodes:
            raise ValueError(f"lattice {len(lattices)} ends early")
        lattices.append(lattice)
        at += 2 + nodes
    return lattices


def number_words(sentences, most):
    """Sentences with words as numbers below `most`: from 1 on by how often they occur, and 0 for the rest."""
    counts = Counter(word for sentence in sentences for word in sentence)
    # Words that occur equally often are sorted, so that the numbers are the same each time.
    listed = sorted(counts, key=lambda word: (-counts[word], word))[: most - 1]
    numbers = {word: number for number, word in enumerate(listed, start=1)}
    return [[numbers.get(word, 0) for word in sentence] for sentence in sentences]


def dependencies(tree):
    """A parse tree, of `Leaf` and `Node`, as a tree of words with dependents: `{"Tree": [word, [Tree]]}`.

    The head of a node is the head of its longer part, of equal ones the right one; the other part's head
    depends on it.
    """

    def headed(tree):
        if "Leaf" in tree:
            return 1, [tree["Leaf"][0], []]
        (left, a), (right, b) = map(headed, tree["Node"])
        head, other = (a, b) if left > right else (b, a)
        head[1].append({"Tree": other})
        return left + right, head

    return {"Tree": headed(tree)[1]}


def repeated(items, count):
    """`count` items, repeated where there are fewer."""
    return [items[k % len(items)] for k in range(count)]


# What each model's inputs are, where shared data is there and where it is not.
TREES = (SST_DEV, "trees of SST dev", "the example's own trees, repeated")
PAIRS = (SST_DEV, "pairs of SST trees with heads, for pairs of related sentences", "pairs of the example's trees")
MNLI = (LENGTHS[0] / "mnli.txt", "lengths of MNLI", "quantiles of MNLI's lengths")
SOURCES = {
    **dict.fromkeys("treelstm treegru treefc mvrnn".split(), TREES),
    **dict.fromkeys(
        ("nestedrnn", "stackrnn"), (SST_DEV, "sentences of SST dev", "the example's own sentences, repeated")
    ),
    "childsum": PAIRS,
    "dagrnn": (LATTICES, "lattices of words", "random graphs of 10 to 40 nodes"),
    "birnn": (TAGS, "tagged sentences", "the example's own sentences, repeated"),
    **dict.fromkeys("encoder masked_mha berxit ponder".split(), MNLI),
}


def source_of(name):
    """What a model's inputs are here, in a few words."""
    if name not in SOURCES:
        return "random"
    path, real, stand_in = SOURCES[name]
    return real if path.exists() else f"stand-ins: {stand_in}"
