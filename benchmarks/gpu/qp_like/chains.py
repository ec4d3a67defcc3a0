"""Tasks that read what the previous task wrote to their own and a neighbouring element: quadpy only."""

import numpy as np

from gpu.qp_like.launches import floats
from harness.bench import Arrays, StepBench, Way
from harness.language import array_of, qp

FUSE = {"graph kernel": False, "fused": True, "fuse='auto'": "auto"}


def chain_of_20(x: floats, y: floats):
    for _ in qp.static(range(10)):
        for i in x:
            y[i] = 0.5 * (x[i] + x[(i + 1) % x.shape[0]])
        for i in y:
            x[i] = y[i] + 0.001


def chain_of_2(x: floats, y: floats):
    for i in x:
        y[i] = 0.5 * (x[i] + x[(i + 1) % x.shape[0]])
    for i in y:
        x[i] = y[i] + 0.001


@qp.kernel
def half(x: floats, y: floats):
    for i in x:
        y[i] = 0.5 * (x[i] + x[(i + 1) % x.shape[0]])


@qp.kernel
def more(x: floats, y: floats):
    for i in y:
        x[i] = y[i] + 0.001


def _builder(function, tasks: int):
    def build(data: Arrays) -> StepBench:
        x, y = array_of(data["x"]), array_of(np.zeros_like(data["x"]))

        def launches(x, y) -> None:
            for _ in range(tasks // 2):
                half(x, y)
                more(x, y)

        def way(call) -> Way:
            return Way(lambda: call(x, y), lambda: {"x": x.to_numpy()}, lambda: x.from_numpy(data["x"]))

        kernels = {name: qp.kernel(graph=True, fuse=fuse)(function) for name, fuse in FUSE.items()}
        ways = {"launches": way(launches), "replay": way(qp.graph.replay(launches))}
        ways |= {name: way(kernel) for name, kernel in kernels.items()}
        return StepBench(ways, remarks={"fuse='auto'": str(kernels["fuse='auto'"].fusion(x, y).reason)})

    return build


BUILDERS = {
    "chain2": _builder(chain_of_2, 2),
    **dict.fromkeys(("chain20", "chain20_17", "chain20_20"), _builder(chain_of_20, 20)),
}
