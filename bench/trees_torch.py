"""Trees and graphs in PyTorch batched by level by hand, as the peers of the benchmark.

Each class holds a model's weights in the form that suits it; `prepare(instances)` takes what is in the
JSON into Python's own data, as reading does, and `run(instances)` gives the outputs of a batch. Nodes of one
level in all instances of the batch are one set of large operations; linearising is inside `run`. `HOT`
names what `torch.compile` is tried on.
"""

import numpy as np
import torch

from treelstm_torch import Eager, Forest, Level, compact


class ByLevel:
    """Binary trees whose state is one vector: a table of all nodes' states, filled level by level."""

    HOT = ("inner",)

    def __init__(self, weights):
        self.w = weights
        self.size = weights["wo"].shape[0]

    @staticmethod
    def prepare(instances):
        return [compact(instance["t"]) for instance in instances]

    def run(self, trees):
        forest, size = Forest(trees), self.size
        states = torch.empty(forest.rows, size)
        self.leaves(forest.words, states[: len(forest.words)])
        for first, rows in forest.levels:
            m = len(rows) // 2
            children = states.index_select(0, rows).view(m, 2 * size)
            self.inner(children, states[first : first + m])
        roots = states.index_select(0, forest.roots)
        return torch.addmm(self.w["bo"], roots, self.w["wo"]).tolist()


class LevelTreeFc(ByLevel):
    def __init__(self, weights):
        super().__init__(weights)
        self.both = torch.cat([weights["wl"], weights["wr"]])

    def leaves(self, words, out):
        torch.index_select(self.w["emb"], 0, words, out=out)

    def inner(self, children, out):
        torch.addmm(self.w["b"], children, self.both, out=out).tanh_()


class LevelTreeGru(ByLevel):
    def __init__(self, weights):
        super().__init__(weights)
        self.gates = torch.cat([weights["ul"], weights["ur"]])
        self.candidate = torch.cat([weights["nl"], weights["nr"]])

    def leaves(self, words, out):
        embedded = self.w["emb"].index_select(0, words)
        torch.addmm(self.w["bx"], embedded, self.w["wx"], out=out).tanh_()

    def inner(self, children, out):
        size = self.size
        gates = torch.addmm(self.w["bg"], children, self.gates).sigmoid_()
        z, reset = gates[:, :size], gates[:, size:]
        n = torch.addmm(self.w["bn"], reset.mul_(children), self.candidate).tanh_()
        mean = (children[:, :size] + children[:, size:]).mul_(0.5)
        torch.lerp(mean, n, z, out=out)


class LevelTreeLstm(Level):
    """The TreeLSTM's own peer, of instances as the others have them."""

    HOT = ("leaves", "cell")
    prepare = staticmethod(ByLevel.prepare)

    def run(self, trees):
        return super().run(trees)[0].tolist()


class SingleTreeLstm(Eager):
    prepare = staticmethod(ByLevel.prepare)

    def run(self, trees):
        return super().run(trees)[0].tolist()


class LevelMvRnn(ByLevel):
    """A vector and a matrix for each node; the topmost level, of roots alone, needs no matrices."""

    HOT = ("vectors", "matrices")

    def __init__(self, weights):
        super().__init__(weights)
        self.left, self.right = weights["wm"].split(self.size)

    def run(self, trees):
        w, size = self.w, self.size
        forest = Forest(trees)
        leaves = len(forest.words)
        last = forest.levels[-1][0] if forest.levels else leaves
        vectors, matrices = torch.empty(forest.rows, size), torch.empty(last, size, size)
        torch.index_select(w["emb"], 0, forest.words, out=vectors[:leaves])
        torch.index_select(w["memb"], 0, forest.words, out=matrices[:leaves])
        for first, rows in forest.levels:
            left, right = rows.view(-1, 2).unbind(1)
            m = len(left)
            on_left, on_right = matrices.index_select(0, left), matrices.index_select(0, right)
            v_left, v_right = vectors.index_select(0, left), vectors.index_select(0, right)
            vectors[first : first + m] = self.vectors(v_left, v_right, on_left, on_right)
            if first < last:
                self.matrices(on_left, on_right, matrices[first : first + m])
        return torch.addmm(w["bo"], vectors.index_select(0, forest.roots), w["wo"]).tolist()

    def vectors(self, v_left, v_right, on_left, on_right):
        """Each child's matrix acts on its sibling's vector."""
        moved = (torch.bmm(v_left[:, None], on_right), torch.bmm(v_right[:, None], on_left))
        return torch.addmm(self.w["bv"], torch.cat(moved, 2)[:, 0], self.w["wv"]).tanh_()

    def matrices(self, on_left, on_right, out):
        size = self.size
        part = torch.addmm(self.w["bm"], on_left.view(-1, size), self.left)
        torch.addmm(part, on_right.view(-1, size), self.right, out=out.view(-1, size))


class Levels:
    """Nodes of graphs in the order of their levels, each level's edges one behind another.

    Made of the word of each node and of the numbers of the nodes before it, all smaller than its own. `words` and
    `place` are of all nodes, the latter where each node is in the order of levels; `first` is the size of level
    0, and `levels` has, for each one above, its rows' range, its edges' sources, and the place in the level
    of each edge's target.
    """

    def __init__(self, words, before):
        level = []
        for nodes in before:
            level.append(1 + max(map(level.__getitem__, nodes)) if nodes else 0)
        level = np.array(level)
        order = np.argsort(level, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        counts = np.fromiter(map(len, before), np.int64, len(before))
        sources = place[np.fromiter((p for nodes in before for p in nodes), np.int64, counts.sum())]
        targets = np.repeat(place, counts)
        by_target = np.argsort(targets, kind="stable")
        sources, targets = sources[by_target], targets[by_target]
        bounds = np.cumsum(np.bincount(level))
        edges = np.searchsorted(targets, bounds)
        self.words = torch.from_numpy(np.array(words)[order])
        self.place = torch.from_numpy(place)
        self.first = int(bounds[0])
        sources = torch.from_numpy(sources)
        self.levels = [
            (
                (int(bounds[k - 1]), int(bounds[k])),
                sources[edges[k - 1] : edges[k]],
                torch.from_numpy(targets[edges[k - 1] : edges[k]] - bounds[k - 1]),
            )
            for k in range(1, len(bounds))
        ]


def sum_of(rows, targets, count):
    """The sums [count,H] of rows [e,H] with the same target."""
    return rows.new_zeros(count, rows.shape[1]).index_add_(0, targets, rows)


class LevelChildSum:
    """Both trees of all pairs; what words give is one product for all nodes."""

    HOT = ("leaf", "node")

    def __init__(self, weights):
        self.w = w = weights
        self.size = w["uf"].shape[0]
        self.from_word = torch.cat([w["wiou"], w["wf"]], dim=1)
        self.bias = torch.cat([w["biou"], w["bf"]])

    @staticmethod
    def prepare(instances):
        def own(tree):
            word, children = tree["Tree"]
            return word, [own(child) for child in children]

        return [(own(instance["a"]), own(instance["b"])) for instance in instances]

    def leaf(self, parts, h, c):
        """Fills the states of nodes without children; `parts` [m,4H] are those of their words."""
        i, o, u, _ = parts.split(self.size, dim=1)
        torch.mul(i.sigmoid(), u.tanh(), out=c)
        torch.mul(o.sigmoid(), c.tanh(), out=h)

    def node(self, parts, h_below, c_below, targets, h, c):
        """Fills the states of a level from those of all its children."""
        size = self.size
        sums = sum_of(h_below, targets, len(h))
        gates = torch.addmm(parts[:, : 3 * size], sums, self.w["uiou"])
        forget = torch.addmm(parts[:, 3 * size :].index_select(0, targets), h_below, self.w["uf"])
        kept = sum_of(forget.sigmoid_().mul_(c_below), targets, len(h))
        i, o = gates[:, : 2 * size].sigmoid_().split(size, dim=1)
        torch.addcmul(kept, i, gates[:, 2 * size :].tanh_(), out=c)
        torch.mul(o, c.tanh(), out=h)

    def run(self, pairs):
        words, before, roots = [], [], []

        def place(tree):
            word, children = tree
            nodes = [place(child) for child in children]
            words.append(word)
            before.append(nodes)
            return len(words) - 1

        for a, b in pairs:
            roots += (place(a), place(b))
        graph, w = Levels(words, before), self.w
        parts = torch.addmm(self.bias, w["emb"].index_select(0, graph.words), self.from_word)
        h, c = torch.empty(2, len(words), self.size)
        first = graph.first
        self.leaf(parts[:first], h[:first], c[:first])
        for (start, end), sources, targets in graph.levels:
            below = h.index_select(0, sources), c.index_select(0, sources)
            self.node(parts[start:end], *below, targets, h[start:end], c[start:end])
        ha, hb = h[graph.place[roots]].view(-1, 2, self.size).unbind(1)
        alike = torch.cat([ha * hb, (ha - hb).abs_()], dim=1)
        s = torch.addmm(w["bs"], alike, w["ws"]).sigmoid_()
        return torch.addmm(w["bo"], s, w["wo"]).softmax(1).tolist()


class LevelDagRnn:
    """All graphs of a batch; what words give is one product for all nodes, and so are the scores."""

    HOT = ("node",)

    def __init__(self, weights):
        self.w = weights

    @staticmethod
    def prepare(instances):
        return [[node["Node"] for node in instance["nodes"]] for instance in instances]

    def node(self, parts, before, targets, out):
        sums = sum_of(before, targets, len(out))
        torch.addmm(parts, sums, self.w["u"], out=out).tanh_()

    def run(self, graphs):
        words, before = [], []
        for graph in graphs:
            start = len(words)
            for word, predecessors in graph:
                words.append(word)
                before.append([start + p for p in predecessors])
        graph, w = Levels(words, before), self.w
        parts = torch.addmm(w["b"], w["emb"].index_select(0, graph.words), w["wx"])
        states = torch.empty(parts.shape)
        torch.tanh(parts[: graph.first], out=states[: graph.first])
        for (start, end), sources, targets in graph.levels:
            self.node(parts[start:end], states.index_select(0, sources), targets, states[start:end])
        scores = torch.addmm(w["bo"], states, w["wo"]).index_select(0, graph.place)
        return [part.tolist() for part in scores.split([len(graph) for graph in graphs])]


BATCHED = {
    "treelstm": {"level": LevelTreeLstm},
    "treegru": {"level": LevelTreeGru},
    "treefc": {"level": LevelTreeFc},
    "mvrnn": {"level": LevelMvRnn},
    "childsum": {"level": LevelChildSum},
    "dagrnn": {"level": LevelDagRnn},
}
SINGLE = {"treelstm": {"eager": SingleTreeLstm}}
