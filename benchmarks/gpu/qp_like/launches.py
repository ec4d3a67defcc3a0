"""Costs on the host: launches by number of arrays, a step of small kernels, events, memory."""

import numpy as np

from gpu.workloads import ALLOCATION, SMALL, STEP
from harness.bench import Arrays, HostBench
from harness.language import NAME, array_of, pure_kernel, qp

floats = qp.types.ndarray(dtype=qp.f32, ndim=1)


@pure_kernel
def launch0(n: qp.i32):
    for _ in range(n):
        pass


@pure_kernel
def launch2(n: qp.i32, a: floats, b: floats):
    for i in range(n):
        a[i] = b[i]


@pure_kernel
def launch8(n: qp.i32, a: floats, b: floats, c: floats, d: floats, e: floats, f: floats, g: floats, h: floats):
    for i in range(n):
        a[i] = b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i]


@pure_kernel
def add(x: floats, y: floats):
    for i in range(x.shape[0]):
        y[i] = x[i] + y[i]


def _builder(kernel, arrays: int):
    def build(_: Arrays) -> HostBench:
        given = [array_of(np.full(16, i, np.float32)) for i in range(arrays)]

        def submit(count: int) -> None:
            for _ in range(count):
                kernel(1, *given)

        def check() -> str | None:
            kernel(1, *given)
            right = not given or given[0].to_numpy()[0] == sum(range(arrays))
            return None if right else "the sum is wrong"

        return HostBench(submit, check=check)

    return build


def build_step(_: Arrays) -> HostBench:
    x, y = array_of(np.ones(SMALL, np.float32)), array_of(np.zeros(SMALL, np.float32))

    def submit(count: int) -> None:
        for _ in range(count * STEP):
            add(x, y)

    def check() -> str | None:
        submit(1)
        return None if (y.to_numpy() == STEP).all() else "the sums are wrong"

    return HostBench(submit, count=50, waits=True, check=check)


def build_event(_: Arrays) -> HostBench:
    here, there, event = qp.create_stream(), qp.create_stream(), qp.create_event()

    def submit(count: int) -> None:
        for _ in range(count):
            event.record(here)
            event.wait(there)

    return HostBench(submit)


def build_event_host(_: Arrays) -> HostBench:
    stream, event = qp.create_stream(), qp.create_event()

    def submit(count: int) -> None:
        for _ in range(count):
            event.record(stream)
            event.synchronize()

    return HostBench(submit)


def build_allocate(_: Arrays) -> HostBench:
    if NAME != "quadpy":
        raise NotImplementedError("there is no such call")
    streams = qp.create_stream().device.streams

    def submit(count: int) -> None:
        for _ in range(count):
            streams.free_async(streams.malloc_async(ALLOCATION, 0), 0)

    return HostBench(submit)


def build_array(_: Arrays) -> HostBench:
    def submit(count: int) -> None:
        for _ in range(count):
            qp.ndarray(qp.f32, shape=ALLOCATION // 4)

    return HostBench(submit)


BUILDERS = {
    "launch0": _builder(launch0, 0),
    "launch2": _builder(launch2, 2),
    "launch8": _builder(launch8, 8),
    "step": build_step,
    "event": build_event,
    "event_host": build_event_host,
    "allocate": build_allocate,
    "array": build_array,
}
