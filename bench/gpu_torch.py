"""The models of the GPU's benchmark in PyTorch, as its peers.

Each peer does a batch in two steps, both inside the time: `stage` does on the host what PyTorch has no
operation for (trees into levels, sentences by length) and gives tensors, which are copied to the card;
`compute` is tensor operations alone. So each but `Eager` and `Halting` can also be launched as CUDA
graphs: one was captured for every batch before the time is taken, which is the best that graphs can
do for a peer, since other batches would need other graphs.

Products are as exact as the program's: `highest` is float32, `high` may use TF32, and `medium` bfloat16,
where PyTorch has that for float32 tensors.
"""

import time

import torch

import treelstm_torch
from control_torch import ACT_STEPS, act_step
from ragged_torch import PaddedEncoder, attend, linear_weights


# Of a program's precision: PyTorch's, and how far outputs may be apart.
PRECISIONS = {"f32": ("highest", 2e-3), "tf32": ("high", 2e-2), "bf16": ("medium", 1e-1)}


class Card:
    """Where tensors are: a card, or the processor where a run only tests the benchmark itself."""

    def __init__(self, name, precision):
        self.name = name
        self.is_gpu = name == "cuda"
        self.started = None  # The event at which a batch begins on the card, where that is timed.
        in_torch, self.tolerance = PRECISIONS[precision]
        torch.set_float32_matmul_precision(in_torch)

    def put(self, tensors):
        return [tensor.to(self.name, non_blocking=True) for tensor in tensors]

    def wait(self):
        if self.is_gpu:
            torch.cuda.synchronize()

    def begin(self):
        """The card's own time of a batch begins, once what it needs is staged on the host."""
        if self.is_gpu and self.started:
            self.started.record()


class Peer:
    """A model's weights on a card."""

    can_be_captured = True

    def __init__(self, weights, card):
        self.card = card
        self.w = dict(zip(weights, card.put(weights.values())))

    def batch(self, instances):
        """What it computes of a batch, on the card."""
        plan, tensors = self.stage(instances)
        self.card.begin()
        return self.compute(plan, self.card.put(tensors))

    def outputs(self, instances):
        """The outputs of a batch as the program writes them."""
        plan, tensors = self.stage(instances)
        return self.lists(plan, self.compute(plan, self.card.put(tensors)))

    def lists(self, plan, scores):
        return scores.tolist()


class Captured:
    """A peer's batches as CUDA graphs, one for each batch."""

    def __init__(self, peer, batches):
        self.peer = peer
        self.graphs = {}
        for number, instances in enumerate(batches):
            plan, tensors = peer.stage(instances)
            places = peer.card.put(tensors)
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                peer.compute(plan, places)  # Libraries set themselves up in the first run.
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                result = peer.compute(plan, places)
            self.graphs[number] = (graph, places, result)

    def batch(self, number, instances):
        graph, places, result = self.graphs[number]
        _, tensors = self.peer.stage(instances)
        self.peer.card.begin()
        for place, tensor in zip(places, tensors):
            place.copy_(tensor, non_blocking=True)
        graph.replay()
        return result


# --- treelstm ----------------------------------------------------------------------------------


def compact(instances):
    return [treelstm_torch.compact(instance["t"]) for instance in instances]


class EagerTrees(Peer):
    """One tree after another, one node after another."""

    can_be_captured = False

    def __init__(self, weights, card):
        super().__init__(weights, card)
        self.model = treelstm_torch.Eager(self.w)

    def batch(self, instances):
        self.card.begin()
        return self.model.run(instances)[0]

    def outputs(self, instances):
        return self.batch(instances).tolist()


class Levels(Peer):
    """All trees of a batch level by level."""

    def __init__(self, weights, card):
        super().__init__(weights, card)
        self.model = treelstm_torch.Level(self.w)

    def stage(self, trees):
        forest = treelstm_torch.Forest(trees)
        children = torch.cat([rows for _, rows in forest.levels] or [torch.zeros(0, dtype=int)])
        sizes = [(first, len(rows)) for first, rows in forest.levels]
        return (forest.rows, sizes), (forest.words, children, forest.roots)

    def compute(self, plan, tensors):
        (count, sizes), (words, children, roots) = plan, tensors
        model = self.model
        h, c = torch.empty(2, count, model.size, device=words.device)
        leaves = len(words)
        model.leaves(words, h[:leaves], c[:leaves])
        parts = children.split([size for _, size in sizes])
        for (first, size), rows in zip(sizes, parts):
            end = first + size // 2
            model.inner(rows, h, c, h[first:end], c[first:end])
        return torch.addmm(model.bo, h.index_select(0, roots), model.wo)


# --- birnn -------------------------------------------------------------------------------------


class Steps(Peer):
    """A batch sorted by length, step by step; both directions in one product, and the words'
    products before the first step."""

    def __init__(self, weights, card):
        super().__init__(weights, card)
        w = self.w
        self.size = size = w["hf"].shape[0]
        both = torch.stack([w["wf"], w["wb"]])
        self.from_word, self.from_state = both[:, :-size].contiguous(), both[:, -size:].contiguous()
        self.bias = torch.stack([w["bf"], w["bb"]])[:, None]
        self.start = torch.stack([w["hf"], w["hb"]])[:, None]

    def stage(self, sentences):
        order = sorted(range(len(sentences)), key=lambda k: -len(sentences[k]))
        lengths = [len(sentences[k]) for k in order]
        counts = [sum(n > t for n in lengths) for t in range(lengths[0])]
        firsts = [0]
        for count in counts:
            firsts.append(firsts[-1] + count)
        words = [
            [sentences[order[k]][step(t, lengths[k])] for t, m in enumerate(counts) for k in range(m)]
            for step in (lambda t, n: t, lambda t, n: n - 1 - t)
        ]
        # Where the states of each word of each sentence are, sentence by sentence.
        rows = [[], []]
        for k in sorted(range(len(order)), key=order.__getitem__):
            n = lengths[k]
            rows[0] += [firsts[t] + k for t in range(n)]
            rows[1] += [firsts[n - 1 - t] + k for t in range(n)]
        lengths_in_order = [len(sentence) for sentence in sentences]
        return (counts, lengths_in_order), (torch.tensor(words), torch.tensor(rows))

    def compute(self, plan, tensors):
        (counts, _), (words, rows) = plan, tensors
        w = self.w
        embedded = w["emb"].index_select(0, words.flatten()).view(2, -1, w["emb"].shape[1])
        parts = torch.baddbmm(self.bias, embedded, self.from_word)
        states = torch.empty(2, words.shape[1], self.size, device=words.device)
        h, first = self.start.expand(2, counts[0], self.size), 0
        for count in counts:
            part = parts[:, first : first + count]
            h = torch.baddbmm(part, h[:, :count], self.from_state).tanh_()
            states[:, first : first + count] = h
            first += count
        both = torch.cat([states[k].index_select(0, rows[k]) for k in range(2)], dim=1)
        return torch.addmm(w["bo"], both, w["wo"])

    def lists(self, plan, scores):
        return [part.tolist() for part in scores.split(plan[1])]


# --- act ---------------------------------------------------------------------------------------


class AllSteps(Peer):
    """A batch with masks, always as many steps as an instance may take: nothing is waited for."""

    def stage(self, inputs):
        return len(inputs), (torch.tensor(inputs),)

    def compute(self, n, tensors):
        return self.steps(tensors[0], lambda active: False)

    def steps(self, x, is_done):
        w, device = self.w, x.device
        s = torch.addmm(w["bin"], x, w["win"])
        n, size = s.shape
        acc, left = torch.zeros(n, size, device=device), torch.ones(n, 1, device=device)
        active = torch.ones(n, 1, dtype=torch.bool, device=device)
        steps = torch.zeros(n, 1, dtype=torch.int64, device=device)
        for step in range(1, ACT_STEPS + 1):
            s = act_step(w, s, size)
            p = torch.addmm(w["bh"], s, w["wh"]).sigmoid_()
            last = p > left - 0.01 if step < ACT_STEPS else active
            weight = torch.where(last, left, p).mul_(active)
            acc.addcmul_(weight, s)
            left.sub_(weight)
            steps.add_(active)
            active = active & ~last
            if is_done(active):
                break
        return torch.addmm(w["bo"], acc, w["wo"]), steps

    def lists(self, plan, result):
        scores, steps = result
        return [list(pair) for pair in zip(scores.tolist(), steps.flatten().tolist())]


class Halting(AllSteps):
    """A batch with masks, until its last instance halts, which is asked after each step."""

    can_be_captured = False

    def compute(self, n, tensors):
        return self.steps(tensors[0], lambda active: not active.any())


# --- encoder -----------------------------------------------------------------------------------


class Padded(Peer):
    """A batch padded to its longest sequence, with a mask. Rows are padded on the card."""

    def __init__(self, weights, card):
        super().__init__(linear_weights(weights), card)
        self.model = PaddedEncoder(self.w)

    def stage(self, instances):
        lengths = [len(instance) for instance in instances]
        longest = max(lengths)
        starts = torch.tensor([0, *lengths]).cumsum(0)[:-1, None]
        places = torch.arange(longest)[None]
        is_row = places < torch.tensor(lengths)[:, None]
        rows = torch.where(is_row, starts + places, 0)
        return lengths, (torch.cat(instances), rows, is_row)

    def compute(self, lengths, tensors):
        x, rows, is_row = tensors
        x = x.index_select(0, rows.flatten()).view(*rows.shape, -1)
        return self.model.layer(x, attend(*self.model.qkv(x), attn_mask=is_row[:, None, None]))

    def lists(self, lengths, outputs):
        return [output[:n].tolist() for output, n in zip(outputs, lengths)]


class Packed(Padded):
    """Rows one behind another but for attention, which takes one sequence at a time."""

    def stage(self, instances):
        return [len(instance) for instance in instances], (torch.cat(instances),)

    def compute(self, lengths, tensors):
        (x,) = tensors
        parts = zip(*(part.split(lengths) for part in self.model.qkv(x)))
        attended = torch.cat([attend(*(p[None] for p in part))[0] for part in parts])
        return self.model.layer(x, attended)

    def lists(self, lengths, outputs):
        return [part.tolist() for part in outputs.split(lengths)]


def encoder_inputs(instances):
    return [torch.tensor(instance["x"]) for instance in instances]


# Of each model: how its instances are made of their JSON, the peers that take batches, and the one
# that takes one instance at a time.
MODELS = {
    "treelstm": (compact, {"level": Levels}, EagerTrees),
    "birnn": (lambda lines: [line["words"] for line in lines], {"step": Steps}, Steps),
    "act": (
        lambda lines: [line["x"] for line in lines],
        {"halting": Halting, "all steps": AllSteps},
        Halting,
    ),
    "encoder": (encoder_inputs, {"padded": Padded, "packed": Packed}, Packed),
}


def parts_of(instances, batch):
    return [instances[i : i + batch] for i in range(0, len(instances), batch)]


def time_passes(card, run, batches, passes):
    """The least seconds of a pass over all batches, each waited for, and the least on the card."""
    best, best_on_card = float("inf"), None
    for _ in range(passes + 1):  # The first warms up.
        events = []
        began = time.perf_counter()
        for number, batch in enumerate(batches):
            if card.is_gpu:
                events.append([torch.cuda.Event(enable_timing=True) for _ in range(2)])
                card.started = events[-1][0]
            run(number, batch)
            if card.is_gpu:
                events[-1][1].record()
            card.wait()
        seconds = time.perf_counter() - began
        if card.is_gpu:
            on_card = sum(start.elapsed_time(end) for start, end in events) * 1e-3
            best_on_card = min(on_card, best_on_card or on_card)
        best = min(best, seconds)
    return {"seconds": best, "device_seconds": best_on_card}


def product_flops(card, size=8192):
    """The best operations a second of a large product, as exact as the peers'."""
    if not card.is_gpu:
        return None
    a = torch.rand(size, size, device="cuda")
    best = float("inf")
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch.mm(a, a)
        end.record()
        card.wait()
        best = min(best, start.elapsed_time(end) * 1e-3)
    return 2 * size**3 / best


def measure(card, name, weights, instances, batch, options):
    """The figures of a model's peers at a batch size; what is refused has the reason instead."""
    _, batched, single = MODELS[name]
    batches = parts_of(instances, batch)
    figures = {}

    def take(column, count, run, parts):
        try:
            with torch.inference_mode():
                figures[column] = time_passes(card, run(), parts, options.passes)
                figures[column]["instances"] = count
        except (RuntimeError, NotImplementedError) as error:
            figures[column] = {"refused": str(error).splitlines()[0]}

    for column, kind in batched.items():
        peer = kind(weights, card)
        run = lambda peer=peer: lambda _, part: peer.batch(part)  # noqa: E731
        take(column, len(instances), run, batches)
        if peer.can_be_captured and card.is_gpu:
            captured = lambda peer=peer: Captured(peer, batches).batch  # noqa: E731
            take(f"{column}, graphs", len(instances), captured, batches)
    few = instances[: options.single_instances]
    peer = single(weights, card)
    take("single", len(few), lambda: lambda _, part: peer.batch(part), parts_of(few, 1))
    return figures


def check(card, name, weights, instances, expected):
    """How many instances a model's first peer gives another output than expected, by peer."""
    otherwise = {}
    for column, kind in MODELS[name][1].items():
        with torch.inference_mode():
            outputs = kind(weights, card).outputs(instances)
        pairs = zip(outputs, expected, strict=True)
        otherwise[column] = sum(not is_close(*pair, card.tolerance) for pair in pairs)
    return otherwise


def is_close(a, b, tolerance):
    """Whether two outputs are alike; numbers up to a part of the largest."""
    flat_a, flat_b = list(numbers(a)), list(numbers(b))
    largest = max([1.0, *(abs(value) for value in flat_b)])
    return len(flat_a) == len(flat_b) and all(
        abs(x - y) <= tolerance * largest for x, y in zip(flat_a, flat_b)
    )


def numbers(output):
    if isinstance(output, (list, tuple)):
        for part in output:
            yield from numbers(part)
    else:
        yield output
