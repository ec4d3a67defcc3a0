"""Twenty small kernels, one after the other, in every way that the language has to launch them."""

import itertools
from collections.abc import Callable

import numpy as np

from gpu.qp_like.launches import add, floats
from gpu.workloads import SMALL, STEP
from harness.bench import Arrays, StepBench, Way, Work
from harness.language import NAME, array_of, qp


def twenty(x: floats, y: floats):
    for _ in qp.static(range(20)):
        for i in range(x.shape[0]):
            y[i] = x[i] + y[i]


class Pairs:
    """Two pairs of arrays; a step adds the first of a pair, STEP times, to the second, which begins as 0."""

    def __init__(self, count: int) -> None:
        self.all = [tuple(array_of(np.full(SMALL, v, np.float32)) for v in (1, 0)) for _ in range(count)]
        self.last = self.all[0]
        self.turns = itertools.cycle(self.all)

    def next(self):
        self.last = next(self.turns)
        return self.last

    def reset(self) -> None:
        for _, y in self.all:
            y.fill(0)

    def result(self) -> Arrays:
        return {"y": self.last[1].to_numpy()}

    def way(self, call, picture: Callable[[], str] | None = None) -> Way:
        """`call` with this pair, or with both in turn."""
        if len(self.all) == 1:
            x, y = self.last
            return Way(lambda: call(x, y), self.result, self.reset, picture=picture)
        return Way(lambda: call(*self.next()), self.result, self.reset)


def launches(x, y) -> None:
    for _ in range(STEP):
        add(x, y)


def as_graph(pair: Pairs) -> tuple[Work, Callable[[], str]]:
    with qp.graph.capture() as graph:
        launches(*pair.last)
    return graph.instantiate().launch, graph.to_dot


def build_step(_: Arrays) -> StepBench:
    same, other = Pairs(1), Pairs(2)
    options = {"graph": True, "fuse": False} if NAME == "quadpy" else {"graph": True}
    kernel = qp.kernel(**options)(twenty)
    ways = {"launches": same.way(launches)}
    remarks = {}
    if NAME == "quadpy":
        run, picture = as_graph(same)
        replayed, changing = (qp.graph.replay(launches) for _ in range(2))
        fused, auto = (qp.kernel(graph=True, fuse=fuse)(twenty) for fuse in (True, "auto"))
        ways["graph"] = same.way(lambda x, y: run(), picture)
        ways["replay"] = same.way(replayed, picture)
        ways["replay, other arrays"] = other.way(changing)
        ways["fused"] = same.way(fused)
        remarks["fuse='auto'"] = str(auto.fusion(*same.last).reason)
    ways["graph kernel"] = same.way(kernel)
    ways["graph kernel, other arrays"] = other.way(kernel)
    return StepBench(ways, remarks=remarks)


BUILDERS = {"step20": build_step}
