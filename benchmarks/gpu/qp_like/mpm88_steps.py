"""mpm88's steps as graphs: captured, as graph kernels, and with the loop over the steps inside."""

from collections.abc import Callable
from dataclasses import replace

from gpu.qp_like.mpm88 import J, clear, grid_m, on_grid, one_step, start, substep, to_grid, to_particles, x
from gpu.workloads import MPM_STEPS, MPM_TRIAL
from harness.bench import Arrays, StepBench, Way, Work
from harness.language import NAME, qp

number = qp.types.ndarray(dtype=qp.i32, ndim=0)


def steps(left: number):
    while qp.graph.do_while(left):
        for i, j in grid_m:
            clear(i, j)
        for p in x:
            to_grid(p)
        for i, j in grid_m:
            on_grid(i, j)
        for p in x:
            to_particles(p)
        left[None] -= 1


def repeated(kernel, count: int) -> Work:
    def run() -> None:
        for _ in range(count):
            kernel()

    return run


def looping(kernel, count: int) -> Work:
    left = qp.ndarray(qp.i32, ())

    def run() -> None:
        left.fill(count)
        kernel(left)

    return run


def captured(count: int) -> tuple[Work, Callable[[], str]]:
    with qp.graph.capture() as graph:
        repeated(substep, count)()
    return graph.instantiate().launch, graph.to_dot


def ways(count: int) -> dict[str, Work]:
    """How `count` steps can be done."""
    graph_kernel = {"graph": True, "fuse": False} if NAME == "quadpy" else {"graph": True}
    made = {
        "launches": repeated(substep, count),
        "graph kernel a step": repeated(qp.kernel(**graph_kernel)(one_step), count),
        "graph kernel, its loop": looping(qp.kernel(**graph_kernel)(steps), count),
    }
    if NAME == "quadpy":
        made["replay"] = qp.graph.replay(repeated(substep, count))
        made["fused, a step"] = repeated(qp.kernel(graph=True, fuse=True)(one_step), count)
        made["fused, its loop"] = looping(qp.kernel(graph=True, fuse=True)(steps), count)
    return made


def build(data: Arrays) -> StepBench:
    def reset() -> None:
        x.from_numpy(data["x"])
        start()

    def result() -> Arrays:
        return {"x": x.to_numpy(), "J": J.to_numpy()}

    runs, trials = ways(MPM_STEPS), ways(MPM_TRIAL)
    made = {name: Way(run, result, reset, trials[name]) for name, run in runs.items()}
    if NAME == "quadpy":
        reset()
        (run, picture), (trial, _) = captured(MPM_STEPS), captured(MPM_TRIAL)
        made["graph"] = Way(run, result, reset, trial, picture=picture)
        made["replay"] = replace(made["replay"], picture=picture)
    return StepBench(made, exact=False, once=True)


BUILDERS = {"mpm88_steps": build}
