"""What launches, graphs, events and copies cost here, beside the vendor's binding and compiler."""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import quadpy as qp
from quadpy.errors import QuadpyError
from quadpy.runtime.device.known import Measured
from quadpy.runtime.drivers.graph_driver import KernelWork
from quadpy.selftest import vendor_program
from quadpy.selftest.kernels import work as kernels
from quadpy.selftest.place import Place, counted, require_same
from quadpy.selftest.table import Figures, Skip, check

_SPEED: Final = "look for other work on the GPU, its power limit and its clocks; costs never make a result wrong"
_SMALL: Final = 256
"""Iterations of a task: one block."""
_SPREAD: Final = 1 << 14
"""The same for blocks on many compute units."""
_TASKS: Final = (2, 4, 8, 16, 32)
_MANY: Final = (8, 32)
"""So many that the device takes longer than the host takes to launch them."""
_ROUNDS: Final = 32


@check("bandwidth of kernels and copies", "costs", remedy=_SPEED)
def bandwidth(place: Place) -> Figures:
    count = 1 << (16 if place.quick else 22 if not place.is_gpu else 27)
    x, y, host = counted(count), qp.ndarray(qp.f32, count), np.zeros(count, np.float32)

    def of(run: Callable[[], object]) -> float:
        return 4e-3 * count / place.best_us(lambda: waited(run))

    def waited(run: Callable[[], object]) -> None:
        run()
        place.device.synchronize()

    figures = {
        "kernel_GB_s": 2 * of(lambda: kernels.copy(x, y)), "copy_GB_s": 2 * of(lambda: y.copy_from(x)),
        "to_device_GB_s": of(lambda: x.from_numpy(host)), "to_host_GB_s": of(x.to_numpy),
    }  # fmt: skip
    require_same(host, y.to_numpy() * 0, "a copy")
    return figures


@check("costs of launches and events, beside those of the vendor's library", "costs", remedy=_SPEED)
def launches(place: Place) -> Figures:
    many, nodes, x = 8 if place.quick else 1000, 4 if place.quick else 32, counted(_SMALL)
    wait, event, stream = place.device.synchronize, qp.create_event(), qp.create_stream()

    def of(run: Callable[[], object], times: int = many) -> float:
        return place.best_us(lambda: ([run() for _ in range(times)], wait()), each=times)

    def ordered() -> None:
        event.record()
        event.wait(stream)

    figures = {
        "launch_us": of(lambda: kernels.add_one(x)), "launch_and_wait_us": of(lambda: (kernels.add_one(x), wait()), max(2, many // 10)),
        "event_us": of(ordered), "stream_us": of(lambda: qp.create_stream().destroy(), max(2, many // 10)),
        "array_us": of(lambda: qp.ndarray(qp.f32, 256)),
    }  # fmt: skip
    with qp.graph.capture() as graph:
        for _ in range(nodes):
            kernels.add_one(x)
    with graph.instantiate(fuse=False) as run:
        figures["graph_node_us"] = of(run.launch, max(1, many // nodes)) / nodes
    if place.is_gpu:
        figures |= _of_binding(place, of, nodes)
    stream.destroy()
    return figures


def _of_binding(place: Place, of: Callable[..., float], nodes: int) -> dict[str, float]:
    """The same by the vendor's binding, with everything prepared; nothing for a driver without one."""
    driver = place.device.driver
    api: Any = getattr(driver, "_api", None)
    if api is None:
        return {}
    code, x = kernels.add_one.compile(driver.info.arch), counted(_SMALL)
    function = place.device.modules.load(code).function(code.tasks[0].symbol)
    data = struct.pack(code.layout.format, x.pointer, _SMALL)
    packed = ctypes.create_string_buffer(data, len(data))  # CUDA's graphs refuse any other length
    words = driver.launch_arguments(ctypes.addressof(packed), len(data))
    grid, block = (-(-_SMALL // code.tasks[0].block_dim), 1, 1), (code.tasks[0].block_dim, 1, 1)
    stream, event = driver.stream_create(0), driver.event_create(timing=False)
    other = driver.stream_create(0)
    graphs: Any = driver.graphs  # type: ignore[attr-defined]  # of a driver with a binding
    graph = graphs.graph_create()
    last: list[Any] = []
    for _ in range(nodes):
        last = [graphs.add(graph, last, KernelWork(function, grid, block, 0, data))]
    exec_ = graphs.instantiate(graph)
    figures = {
        "binding_graph_node_us": of(lambda: graphs._api.launch(exec_, stream), 1 if place.quick else 30) / nodes,  # noqa: SLF001 - the binding's own
        "binding_launch_us": of(lambda: api.launch(function, *grid, *block, 0, stream, None, words)),
        "binding_event_us": of(lambda: (api.event_record(event, stream), api.stream_wait(other, event, 0))),
    }
    place.device.synchronize()
    graphs.exec_destroy(exec_)
    graphs.graph_destroy(graph)
    for each in (stream, other):
        driver.stream_destroy(each)
    driver.event_destroy(event)
    return figures


class _Steps:
    """A step of several tasks on ``size`` elements, launched in each way."""

    def __init__(self, place: Place, tasks: int, size: int) -> None:
        self._place, self._tasks, self._x = place, tasks, counted(size)
        self.repeats = 2 if place.quick else 10

    def eager_us(self) -> float:
        return self._timed(self._run)

    def graph_us(self, fuse: bool) -> float:
        """0 if it is impossible."""
        with qp.graph.capture() as graph:
            self._run()
        try:
            with graph.instantiate(fuse=fuse) as run:
                return self._timed(run.launch)
        except QuadpyError:
            return 0.0

    def _run(self) -> None:
        for _ in range(self._tasks):
            kernels.scale(1.0, self._x)

    def _timed(self, run: Callable[[], object]) -> float:
        def repeated() -> None:
            for _ in range(self.repeats):
                run()
            self._place.device.synchronize()

        return self._place.best_us(repeated, each=self.repeats)


@check("where graphs and single cooperative launches win over separate launches", "costs",
       remedy=_SPEED, quick=False, seconds=120.0)  # fmt: skip
def crossing(place: Place) -> Figures:
    place.needs_gpu("on the CPU, a launch costs less than a microsecond")
    rows = []
    for size in (_SMALL, _SPREAD, 1 << 16, 1 << 18, 1 << 20):
        for tasks in _TASKS if size in (_SMALL, _SPREAD) else (8,):
            steps = _Steps(place, tasks, size)
            eager, graph, fused = steps.eager_us(), steps.graph_us(False), steps.graph_us(True)
            rows.append({"tasks": tasks, "size": size, "eager_us": eager, "graph_us": graph, "fused_us": fused})
    looped = []
    for size in (_SMALL, _SPREAD, 1 << 16, 1 << 18, 1 << 20):
        apart, fused = (_loop_us(place, kernel, size) for kernel in (kernels.rounds_apart, kernels.rounds_fused))
        looped.append({"size": size, "apart_us": apart, "fused_us": fused})
    return {"steps": rows, "loops": looped, "measured": measured_from(place, rows, looped)._asdict()}


def _loop_us(place: Place, kernel: Any, size: int) -> float:
    x, left = counted(size), qp.ndarray(qp.i32, 1)

    def run() -> None:
        left.fill(_ROUNDS)
        kernel(x, left)
        place.device.synchronize()

    try:
        return place.best_us(run, repeats=3, each=_ROUNDS)
    except QuadpyError:
        return 0.0


def measured_from(place: Place, rows: list[dict[str, Any]], looped: list[dict[str, Any]]) -> Measured:
    """The costs of each part, and where each way wins."""
    small, spread = ({row["tasks"]: row for row in rows if row["size"] == size} for size in (_SMALL, _SPREAD))

    def slope(way: str, found: dict[int, dict[str, Any]] = small) -> float:
        few, many = (found[tasks] for tasks in _MANY)
        return max(0.0, (many[way] - few[way]) / (_MANY[1] - _MANY[0])) if many[way] and few[way] else 0.0

    def wins(row: dict[str, Any], way: str, *others: str) -> bool:
        return bool(0 < row[way] < min(row[other] or 1e9 for other in others))

    def first(way: str, *others: str) -> int:
        return next((row["tasks"] for row in small.values() if wins(row, way, *others)), 0)

    def up_to(found: list[dict[str, Any]], *others: str) -> int:
        won = itertools.takewhile(lambda row: wins(row, "fused_us", *others), found)  # one lucky size proves nothing
        return max((row["size"] for row in won), default=0)

    x, wait = counted(_SMALL), place.device.synchronize
    waited = place.best_us(lambda: (kernels.scale(1.0, x), wait()))
    with qp.graph.capture() as graph:
        kernels.scale(1.0, x)
    with graph.instantiate(fuse=False) as run:
        graph_us = place.best_us(lambda: (run.launch(), wait()))
    one, few = slope("fused_us"), small[_TASKS[0]]["fused_us"]
    return Measured(
        slope("eager_us"), waited, graph_us, slope("graph_us"), few and few - one, slope("fused_us", spread), one,
        first("graph_us", "eager_us"), first("fused_us", "eager_us", "graph_us"),
        up_to([row for row in rows if row["tasks"] == 8], "eager_us", "graph_us"), up_to(looped, "apart_us"),
    )  # fmt: skip


@check("the same launches by HIP C++ or CUDA C++, where its compiler is installed", "costs",
       remedy=_SPEED, quick=False, seconds=180.0)  # fmt: skip
def compiled(place: Place) -> Figures:
    place.needs_gpu("the vendors' compilers are for GPUs")
    found = vendor_program.run(place.tested.arch, place.device.driver.info.arch, place.tested.ordinal)
    if isinstance(found, str):
        raise Skip(found)
    return found
