"""Examples of profiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import quadpy as qp


def example_range() -> None:
    x = qp.ndarray(qp.f32, 1000)
    with qp.profile() as p, qp.profiler.range("physics"):
        x.fill(1.0)
    print([record.ranges for record in p.records if record.kind == "fill"])  # [('physics',)]


def example_Record() -> None:
    x = qp.ndarray(qp.f32, 1000)
    with qp.profile() as p:
        x.fill(1.0)
    record = next(record for record in p.records if record.kind == "fill")
    assert isinstance(record, qp.profiler.Record)
    print(record.device, record.nbytes, record.duration > 0.0)  # cpu 4000 True


def example_print_kernel_profiler_info() -> None:
    @qp.kernel
    def double(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] *= 2.0

    qp.init(kernel_profiler=True)
    double(np.ones(1000, np.float32))
    qp.profiler.print_kernel_profiler_info()  # "trace": a line for each call
    times = qp.profiler.query_kernel_profiler_info("double")
    assert isinstance(times, qp.profiler.KernelTimes)
    assert times.counter == 1
    assert times.avg <= 1e3 * qp.profiler.get_kernel_profiler_total_time()
    qp.profiler.clear_kernel_profiler_info()


def example_print_scoped_profiler_info() -> None:
    qp.init(kernel_profiler=True)
    with qp.profiler.range("start"):
        qp.ndarray(qp.f32, 1000).fill(1.0)
    qp.profiler.print_scoped_profiler_info()
    qp.profiler.clear_scoped_profiler_info()


def example_print_memory_profiler_info() -> None:
    qp.profiler.print_memory_profiler_info()


def example_set_kernel_profiler() -> None:
    qp.profiler.set_kernel_profiler(True)
    qp.ndarray(qp.f32, 1000).fill(1.0)
    qp.profiler.set_kernel_profiler(False)
    qp.profiler.print_kernel_profiler_info()
    assert qp.profiler.set_kernel_profiler_toolkit("default")


def example_timeline_save() -> None:
    @qp.kernel
    def double(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] *= 2.0

    qp.init(arch=qp.cpu, timeline=True)
    double(np.ones(4, np.float32))
    qp.profiler.timeline_save("timeline.json")  # open it in https://ui.perfetto.dev
    print(Path("timeline.json").stat().st_size > 100)  # True
    qp.profiler.timeline_clear()
