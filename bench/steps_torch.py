"""Models that generate, parse or read step by step, in PyTorch batched by hand, as peers of the benchmark.

They stand beside those of control_torch.py, one instance at a time: here what is ready in all instances of a
batch is one set of large operations, and nothing is padded. `run(instances)` gives the program's outputs.
"""

import torch

from control_torch import DEEPEST, MOST_SIBLINGS, Peer, TunedDrnn, TunedStack


class WavesDrnn(TunedDrnn):
    """The nodes of all trees that are next to be made are one wave: children and siblings of the last."""

    HOT = ("state",)

    def state(self, above, beside):
        """The states [m,H] of a wave, and its labels' scores and both votes [m,C+2]."""
        h = torch.add(above, beside).tanh_()
        return h, torch.addmm(self.bias, h, self.heads.t())

    def below(self, h):
        w = self.w
        return torch.addmm(w["ba"], h, w["wa"]).tanh_() @ w["ua"]

    def behind(self, h):
        w = self.w
        return torch.addmm(w["bh"], torch.addmm(w["bf"], h, w["wf"]).tanh_(), w["uf"])

    def run(self, instances):
        above = self.below(torch.tensor([instance["seed"] for instance in instances]))
        beside = self.alone.expand_as(above)
        d = k = torch.zeros(len(instances), dtype=torch.int64)
        waves = []
        while len(above):
            h, scores = self.state(above, beside)
            votes = scores[:, -2:] > 0
            child, sibling = votes[:, 0] & (d < DEEPEST), votes[:, 1] & (k < MOST_SIBLINGS)
            waves.append([t.tolist() for t in (scores[:, :-2].argmax(1), child, sibling)])
            c, s = child.nonzero().flatten(), sibling.nonzero().flatten()
            above = torch.cat([self.below(h[c]), above[s]])
            beside = torch.cat([self.alone.expand(len(c), -1), self.behind(h[s])])
            d, k = torch.cat([d[c] + 1, d[s]]), torch.cat([torch.zeros_like(c), k[s] + 1])
        made = []
        for labels, child, sibling in reversed(waves):
            # The next wave has all children of this one, and behind these all siblings.
            children, siblings = iter(made[: sum(child)]), iter(made[sum(child) :])
            made = [
                {"N": [label, next(children) if c else "Empty", next(siblings) if s else "Empty"]}
                for label, c, s in zip(labels, child, sibling)
            ]
        return made


class WavesStack(TunedStack):
    """Each sentence shifts until it has to reduce; the reductions of all of them are one wave."""

    HOT = ("reduce",)

    def reduce(self, pairs):
        """The states [m,H] made of pairs of states [m,2H], and their parts of the votes [m,4]."""
        state = torch.addmm(self.w["bz"], pairs, self.w["wz"]).tanh_()
        return state, state @ self.votes

    def run(self, instances):
        w, sentences = self.w, [instance["words"] for instance in instances]
        words = torch.tensor([word for sentence in sentences for word in sentence])
        embedded = w["emb"].index_select(0, words)
        count = len(words)
        table = torch.empty(2 * count, self.front.shape[0])
        torch.addmm(w["bsh"], embedded, w["wsh"], out=table[:count]).tanh_()
        votes = (table[:count] @ self.votes).tolist()
        fronts = torch.addmm(w["bact"], embedded, self.front).tolist()
        # Of each sentence its stack of rows, where it reads on, and where it ends.
        running, start = [], 0
        for sentence in sentences:
            running.append(([], start, start + len(sentence)))
            start += len(sentence)
        ends, numbers = [None] * len(sentences), list(range(len(sentences)))
        used = count
        while True:
            waiting, rows = [], []
            for number in numbers:
                stack, front, end = running[number]
                while front < end:
                    if len(stack) >= 2:
                        top, second, word = votes[stack[-1]], votes[stack[-2]], fronts[front]
                        if top[0] + second[2] + word[0] < top[1] + second[3] + word[1]:
                            break
                    stack.append(front)
                    front += 1
                running[number] = stack, front, end
                if len(stack) == 1:
                    ends[number] = stack[0]
                    continue
                r, l = stack.pop(), stack.pop()
                rows += (l, r)
                stack.append(used + len(waiting))
                waiting.append(number)
            if not waiting:
                break
            pairs = table.index_select(0, torch.tensor(rows)).view(len(waiting), -1)
            state, vote = self.reduce(pairs)
            table[used : used + len(waiting)] = state
            votes += vote.tolist()
            used += len(waiting)
            numbers = waiting
        scores = torch.addmm(w["bo"], table[torch.tensor(ends)], w["wo"]).tolist()
        # Each word is shifted and each but one state reduced.
        return [(score, 2 * len(words) - 1) for score, words in zip(scores, sentences)]


class Lstm(Peer):
    """Cells whose gates are reordered so that the sigmoid ones lie side by side."""

    def __init__(self, weights):
        super().__init__(weights)
        self.size = size = weights["wh"].shape[0]

        def ordered(tensor):
            i, f, o, u = tensor.split(size, dim=-1)
            return torch.cat([i, f, o, u], dim=-1).contiguous()

        self.wh, self.wx = ordered(weights["wh"]), ordered(weights["wx"])
        # The forget gate's one is part of its bias.
        self.b = weights["b"].clone()
        self.b[size : 2 * size] += 1

    def cell(self, parts, h, c):
        """The next h and c [m,H] from what the input gives the gates [m,4H]."""
        size = self.size
        gates = torch.addmm(parts, h, self.wh)
        i, f, o = gates[:, : 3 * size].sigmoid_().split(size, dim=1)
        c = torch.addcmul(f * c, i, gates[:, 3 * size :].tanh_())
        return o * c.tanh(), c


class MaskedPonder(Lstm):
    """A batch of tapes until the last one stops reading."""

    HOT = ("step",)

    def __init__(self, weights):
        super().__init__(weights)
        # What each of the three symbols gives.
        self.symbols = torch.addmm(self.b, weights["emb"], self.wx)

    def step(self, symbols, h, c, rem):
        h, c = self.cell(self.symbols.index_select(0, symbols), h, c)
        p = torch.addmm(self.w["bp"], h, self.w["wp"]).sigmoid_().flatten()
        return h, c, rem * (1 - p)

    def start(self, instances):
        tapes = [torch.tensor(instance["tape"]) for instance in instances]
        padded = torch.nn.utils.rnn.pad_sequence(tapes)  # [T,n]
        lengths = torch.tensor([len(tape) for tape in tapes])
        h, c = torch.zeros(2, len(tapes), self.size)
        return padded, lengths, h, c, torch.ones(len(tapes))

    def answers(self, h, steps):
        scores = torch.addmm(self.w["bo"], h, self.w["wo"])
        return list(zip(scores.argmax(1).tolist(), steps.tolist()))

    def run(self, instances):
        tape, lengths, h, c, rem = self.start(instances)
        steps = torch.zeros(len(instances), dtype=torch.int64)
        active = torch.ones(len(instances), dtype=torch.bool)
        for t in range(len(tape)):
            new_h, new_c, new_rem = self.step(tape[t], h, c, rem)
            keep = active[:, None]
            h, c = torch.where(keep, new_h, h), torch.where(keep, new_c, c)
            rem = torch.where(active, new_rem, rem)
            steps.add_(active)
            active = active & (t + 1 < lengths) & (rem > 0.5)
            if not active.any():
                break
        return self.answers(h, steps)


class CompactPonder(MaskedPonder):
    """A batch of tapes from which each is dropped as it stops."""

    def run(self, instances):
        tape, lengths, h, c, rem = self.start(instances)
        states, steps = torch.empty_like(h), torch.empty(len(instances), dtype=torch.int64)
        live = torch.arange(len(instances))
        for t in range(len(tape)):
            h, c, rem = self.step(tape[t], h, c, rem)
            go = (t + 1 < lengths) & (rem > 0.5)
            if not go.all():
                done, kept = (~go).nonzero().flatten(), go.nonzero().flatten()
                states[live[done]], steps[live[done]] = h[done], t + 1
                if not len(kept):
                    break
                h, c, rem, live, lengths = h[kept], c[kept], rem[kept], live[kept], lengths[kept]
                tape = tape[:, kept]
        return self.answers(states, steps)


class LevelListOps(Lstm):
    """Lists of one height in all expressions, the longest first; digits' parts are a table of ten rows."""

    HOT = ("cell",)

    @staticmethod
    def prepare(instances):
        def own(e):
            if "Digit" in e:
                return e["Digit"][0]
            fields = e["List"]
            return fields["op"], [own(arg) for arg in fields["args"]]

        return [own(instance["e"]) for instance in instances]

    def run(self, instances):
        w, levels = self.w, []

        def place(e):
            """The height and the number in its height of an expression; digits have the height 0."""
            if isinstance(e, int):
                return 0, e
            args = [place(arg) for arg in e[1]]
            height = 1 + max((height for height, _ in args), default=0)
            while len(levels) < height:
                levels.append([])
            levels[height - 1].append((e[0], args))
            return height, len(levels[height - 1]) - 1

        tops = [place(instance) for instance in instances]
        states = [w["digits"]]
        parts = [torch.addmm(self.b, w["digits"], self.wx)]
        for lists in levels:
            order = sorted(range(len(lists)), key=lambda k: -len(lists[k][1]))
            h = w["ops"].index_select(0, torch.tensor([lists[k][0] for k in order]))
            c = torch.zeros_like(h)
            firsts, total = [], 0
            for part in parts:
                firsts.append(total)
                total += len(part)
            table = torch.cat(parts)
            for t in range(len(lists[order[0]][1])):
                rows = [firsts[a] + b for k in order if t < len(lists[k][1]) for a, b in [lists[k][1][t]]]
                m = len(rows)
                h_new, c_new = self.cell(table.index_select(0, torch.tensor(rows)), h[:m], c[:m])
                h[:m], c[:m] = h_new, c_new
            state = torch.empty_like(h)
            state[torch.tensor(order)] = torch.addmm(w["bu"], h, w["wu"]).tanh_()
            states.append(state)
            parts.append(torch.addmm(self.b, state, self.wx))
        rows = torch.stack([states[height][number] for height, number in tops])
        return torch.addmm(w["bo"], rows, w["wo"]).argmax(1).tolist()


class LibraryBirnn(Peer):
    """PyTorch's own recurrent network, of sequences that it packs."""

    def __init__(self, weights):
        super().__init__(weights)
        w = self.w
        size, wide = w["hf"].shape[0], w["emb"].shape[1]
        self.rnn = rnn = torch.nn.RNN(wide, size, bidirectional=True)
        for suffix, side in (("", "f"), ("_reverse", "b")):
            matrix = w[f"w{side}"]
            rnn.get_parameter(f"weight_ih_l0{suffix}").data = matrix[:wide].t().contiguous()
            rnn.get_parameter(f"weight_hh_l0{suffix}").data = matrix[wide:].t().contiguous()
            rnn.get_parameter(f"bias_ih_l0{suffix}").data = w[f"b{side}"]
            rnn.get_parameter(f"bias_hh_l0{suffix}").data = torch.zeros(size)
        self.start = torch.stack([w["hf"], w["hb"]])[:, None]

    def run(self, instances):
        w, sentences = self.w, [torch.tensor(instance["words"]) for instance in instances]
        lengths = [len(sentence) for sentence in sentences]
        embedded = w["emb"].index_select(0, torch.cat(sentences)).split(lengths)
        packed = torch.nn.utils.rnn.pack_sequence(embedded, enforce_sorted=False)
        states, _ = self.rnn(packed, self.start.expand(-1, len(sentences), -1).contiguous())
        scores = torch.addmm(w["bo"], states.data, w["wo"])
        padded, _ = torch.nn.utils.rnn.pad_packed_sequence(states._replace(data=scores), True)
        return [scores[:n].tolist() for scores, n in zip(padded, lengths)]


BATCHED = {
    "birnn": {"library": LibraryBirnn},
    "drnn": {"waves": WavesDrnn},
    "stackrnn": {"waves": WavesStack},
    "ponder": {"masked": MaskedPonder, "compact": CompactPonder},
    "listops": {"level": LevelListOps},
}
