"""mpm88: the kernels of the GPU benchmark, which are written for the same languages."""

from cpu.workloads import MPM_STEPS, Arrays, Bench
from gpu.qp_like.mpm88 import J, start, substep, x
from harness.language import qp


def build_mpm88(data: Arrays) -> Bench:
    def reset() -> None:
        x.from_numpy(data["x"])
        start()

    def run() -> None:
        for _ in range(MPM_STEPS):
            substep()

    return Bench(run, lambda: {"x": x.to_numpy(), "J": J.to_numpy()}, reset, finish=qp.sync)


def build_first(data: Arrays) -> Bench:
    x.from_numpy(data["x"])

    def run() -> None:
        start()
        substep()

    return Bench(run, lambda: {"x": x.to_numpy()}, finish=qp.sync)


BUILDERS = {"mpm88": build_mpm88, "first_mpm88": build_first}
