"""The workloads in CUDA C."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_double, c_float, c_int, c_size_t, c_void_p
from typing import Any

import numpy as np

from gpu.cuda_c.library import (
    DeviceArray,
    Timer,
    checked,
    host_seconds,
    library,
    multiply_add_rate,
    synchronize,
)
from gpu.workloads import ALLOCATION, BINS, MPM_GRID, MPM_STEPS, MPM_TRIAL, SMALL, SPIN_THREADS, STEP, SWEEPS
from harness.bench import Array, Arrays, Bench, HostBench, OverlapBench, StepBench, Way
from harness.processes import Options

__all__ = ["BUILDERS", "Timer", "multiply_add_rate", "start", "synchronize"]


def start(options: Options) -> None:
    synchronize()


def _calls(file: str, names: str, *arguments: Any) -> dict[str, Callable[[], object]]:
    """Ways to run a workload: the functions of `file`, named by what follows the first of `names`'s words."""
    functions = library(file)

    def call(name: str) -> Callable[[], object]:
        function = getattr(functions, name)
        return lambda: checked(function(*arguments))

    return {name: call(name) for name in names.split()}


def build_copy(data: Arrays) -> Bench:
    x, y = DeviceArray(data["x"]), DeviceArray(np.zeros_like(data["x"]))
    ways = _calls("streaming", "copy_driver copy_4 copy_16", x.pointer, y.pointer, c_size_t(len(data["x"])))
    return Bench(ways, lambda: {"y": y.download()}, reset=lambda: y.fill(255), keep=(x, y))


def build_saxpy(data: Arrays) -> Bench:
    x, y = DeviceArray(data["x"]), DeviceArray(data["y"])
    size = c_size_t(len(data["x"]))
    ways = _calls("streaming", "saxpy_plain saxpy_4 saxpy_8", c_float(2.0), x.pointer, y.pointer, size)
    return Bench(ways, lambda: {"y": y.download()}, reset=lambda: y.upload(data["y"]), keep=(x, y))


def build_reduction(data: Arrays) -> Bench:
    x, total = DeviceArray(data["x"]), DeviceArray(np.zeros(1, np.float32))
    partials = DeviceArray(np.zeros(1 << 16, np.float32))
    names = "reduction_4x8 reduction_4x32 reduction_8x8 reduction_8x64"
    ways = _calls("reduction", names, x.pointer, partials.pointer, total.pointer, c_size_t(len(data["x"])))
    return Bench(ways, lambda: {"total": total.download()}, reset=lambda: total.fill(255), keep=(x, partials, total))


def build_stencil(data: Arrays) -> Bench:
    a, b = DeviceArray(data["x"]), DeviceArray(data["x"])
    names = "stencil_point stencil_march_4 stencil_march_8 stencil_march_16"
    size = c_int(len(data["x"]))
    there, back = (_calls("stencil", names, u.pointer, v.pointer, size) for u, v in ((a, b), (b, a)))

    def sweeps(name: str, pairs: int) -> None:
        for _ in range(pairs):
            there[name]()
            back[name]()

    def reset() -> None:
        a.upload(data["x"])
        b.upload(data["x"])

    return Bench(
        {name: lambda name=name: sweeps(name, SWEEPS // 2) for name in there},
        lambda: {"x": a.download()},
        trial={name: lambda name=name: sweeps(name, 1) for name in there},
        reset=reset,
        keep=(a, b),
    )


def _bodies(names: str) -> Callable[[Arrays], Bench]:
    def build(data: Arrays) -> Bench:
        position, acceleration = DeviceArray(data["position"]), DeviceArray(data["position"])
        ways = _calls("nbody", names, position.pointer, acceleration.pointer, c_int(len(data["position"])))
        return Bench(
            ways,
            lambda: {"acceleration": acceleration.download()},
            reset=lambda: acceleration.fill(255),
            keep=(position, acceleration),
        )

    return build


def _product(names: str) -> Callable[[Arrays], Bench]:
    def build(data: Arrays) -> Bench:
        a, b, c = DeviceArray(data["a"]), DeviceArray(data["b"]), DeviceArray(data["a"])
        ways = _calls("matmul", names, a.pointer, b.pointer, c.pointer, c_int(len(data["a"])))
        return Bench(ways, lambda: {"c": c.download()}, reset=lambda: c.fill(255), keep=(a, b, c))

    return build


def _counts(names: str) -> Callable[[Arrays], Bench]:
    def build(data: Arrays) -> Bench:
        keys, counts = DeviceArray(data["keys"]), DeviceArray(np.zeros(BINS, np.int32))
        ways = _calls("histogram", names, keys.pointer, counts.pointer, c_size_t(len(data["keys"])))
        return Bench(ways, lambda: {"counts": counts.download()}, reset=lambda: counts.fill(0), keep=(keys, counts))

    return build


class _Particles:
    """mpm88's arrays."""

    def __init__(self, x: Array) -> None:
        self.given, n = x, len(x)
        shapes = ((n, 2), (n, 2), (n, 4), (n,), (MPM_GRID, MPM_GRID, 2), (MPM_GRID, MPM_GRID))
        self.arrays = [DeviceArray(np.zeros(shape, np.float32)) for shape in shapes]
        self.functions, self.size = library("mpm88"), c_int(n)
        self.pointers = [array.pointer for array in self.arrays]

    def reset(self) -> None:
        self.arrays[0].upload(self.given)
        checked(self.functions.mpm88_begin(*self.pointers[1:4], self.size))

    def steps(self, count: int) -> None:
        checked(self.functions.mpm88_steps(*self.pointers, self.size, c_int(count)))

    def graph(self, count: int) -> Callable[[], None]:
        made = c_void_p()
        checked(self.functions.mpm88_graph(byref(made), *self.pointers, self.size, c_int(count)))
        return lambda: checked(self.functions.mpm88_replay(made))

    def result(self) -> Arrays:
        return {"x": self.arrays[0].download(), "J": self.arrays[3].download()}


def build_mpm88(data: Arrays) -> Bench:
    made = _Particles(data["x"])
    run, trial = (lambda count=count: made.steps(count) for count in (MPM_STEPS, MPM_TRIAL))
    return Bench(run, made.result, trial=trial, reset=made.reset, once=True)


def build_mpm88_steps(data: Arrays) -> StepBench:
    made = _Particles(data["x"])
    run, trial = (lambda count=count: made.steps(count) for count in (MPM_STEPS, MPM_TRIAL))
    ways = {
        "launches": Way(run, made.result, made.reset, trial),
        "graph": Way(made.graph(MPM_STEPS), made.result, made.reset, made.graph(MPM_TRIAL)),
    }
    return StepBench(ways, exact=False, once=True)


def build_transcendental(data: Arrays) -> Bench:
    x, y = DeviceArray(data["x"]), DeviceArray(np.zeros_like(data["x"]))
    names = "transcendental_1 transcendental_4"
    ways = _calls("transcendental", names, x.pointer, y.pointer, c_size_t(len(data["x"])))
    return Bench(ways, lambda: {"y": y.download()}, reset=lambda: y.fill(255), keep=(x, y))


def _launch(name: str, count: int) -> Callable[[Arrays], HostBench]:
    def build(_: Arrays) -> HostBench:
        arrays = [DeviceArray(np.full(16, i, np.float32)) for i in range(count)]
        pointers = (c_void_p * max(count, 1))(*(array.pointer for array in arrays))
        function = getattr(library("launches"), name)

        def check() -> str | None:
            host_seconds(function, c_int(1), pointers)
            right = not arrays or arrays[0].download()[0] == sum(range(count))
            return None if right else "the sum is wrong"

        return HostBench(lambda times: host_seconds(function, c_int(times), pointers), inside=True, check=check)

    return build


def build_step(_: Arrays) -> HostBench:
    x, y = DeviceArray(np.ones(SMALL, np.float32)), DeviceArray(np.zeros(SMALL, np.float32))
    function = library("launches").step

    def submit(count: int) -> None:
        for _ in range(count):
            checked(function(c_int(STEP), c_int(SMALL), x.pointer, y.pointer))

    def check() -> str | None:
        submit(1)
        return None if (y.download() == STEP).all() else "the sums are wrong"

    return HostBench(submit, count=50, waits=True, check=check)


def build_step20(_: Arrays) -> StepBench:
    x, u = (DeviceArray(np.ones(SMALL, np.float32)) for _ in range(2))
    y, v = (DeviceArray(np.zeros(SMALL, np.float32)) for _ in range(2))
    functions, step = library("graphs"), c_void_p()
    checked(functions.graph_make(byref(step), c_int(STEP), c_int(SMALL), x.pointer, y.pointer))

    def way(name: str, *arrays: DeviceArray, last: DeviceArray = y, trial: int = 1) -> Way:
        def inside(count: int) -> tuple[float, float]:
            host, total = c_double(), c_double()
            given = [array.pointer for array in arrays]
            checked(getattr(functions, name)(step, c_int(count), *given, byref(host), byref(total)))
            return host.value, total.value

        def reset() -> None:
            y.fill(0)
            v.fill(0)

        return Way(lambda: inside(trial), lambda: {"y": last.download()}, reset, inside=inside)

    ways = {
        "launches": way("graph_launches", x, y),
        "graph": way("graph_replays"),
        "graph, other arrays": way("graph_changes", x, y, u, v, last=v, trial=2),
    }
    return StepBench(ways)


def _measured(name: str, *arguments: Any) -> Callable[[Arrays], HostBench]:
    def build(_: Arrays) -> HostBench:
        function = getattr(library("runtime"), name)
        return HostBench(lambda times: host_seconds(function, c_int(times), *arguments), inside=True)

    return build


def build_overlap(data: Arrays) -> OverlapBench:
    first, second = (DeviceArray(np.zeros(SPIN_THREADS, np.uint32)) for _ in range(2))
    function = library("launches").overlap

    def both(streams: int) -> None:
        checked(function(c_int(int(data["spins"][0])), first.pointer, second.pointer, c_int(streams)))

    return OverlapBench(
        lambda: both(1), lambda: both(2), lambda: {"first": first.download(), "second": second.download()}
    )


BUILDERS = {
    "copy": build_copy,
    "saxpy": build_saxpy,
    "reduction": build_reduction,
    "stencil": build_stencil,
    "nbody": _bodies("nbody_plain"),
    "nbody_tiled": _bodies("nbody_tiled_128 nbody_tiled_256 nbody_tiled_128x2"),
    "matmul": _product("matmul_16 matmul_32"),
    "matmul_registers": _product("matmul_registers_8 matmul_registers_16"),
    "histogram": _counts("histogram_plain"),
    "histogram_shared": _counts("histogram_1x256 histogram_8x256 histogram_1x1024 histogram_8x1024"),
    "mpm88": build_mpm88,
    "transcendental": build_transcendental,
    "launch0": _launch("launch_0", 0),
    "launch2": _launch("launch_2", 2),
    "launch8": _launch("launch_8", 8),
    "step": build_step,
    "event": _measured("rt_event"),
    "event_host": _measured("rt_event_host"),
    "allocate": _measured("rt_allocate_async", c_size_t(ALLOCATION), c_int(0)),
    "array": _measured("rt_allocate_async", c_size_t(ALLOCATION), c_int(1)),
    "overlap": build_overlap,
    "step20": build_step20,
    "mpm88_steps": build_mpm88_steps,
}
