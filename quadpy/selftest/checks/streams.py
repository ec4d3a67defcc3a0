"""Streams and events: order, overlap, times."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final

import numpy as np

import quadpy as qp
from quadpy.selftest.kernels import work as kernels
from quadpy.selftest.place import Place, counted, require, require_same
from quadpy.selftest.table import Figures, Skip, check

_QUEUES: Final = (
    "work on several streams is right, only slower; on AMD, look whether GPU_MAX_HW_QUEUES or HSA_ENABLE_SDMA is set"
)

_PARTS: Final = "create streams without compute_units: they have the whole GPU; update the GPU's driver"
_THREADS: Final = 4096
"""Threads for each compute unit: more than it holds at once, so that half of the units take twice as long."""


@check("events order work of several streams", "streams")
def order(place: Place) -> None:
    streams = [qp.create_stream() for _ in range(4)]
    x, expected = counted(1000), np.arange(1000, dtype=np.float32)
    ready = qp.create_event()
    ready.record()
    for turn in range(8 if place.quick else 100):
        stream = streams[turn % 4]
        ready.wait(stream)
        kernels.add_one(x, stream=stream)
        ready.record(stream)
    ready.synchronize()
    turns = 8 if place.quick else 100
    require_same(expected + turns, x.to_numpy(), "work that events order")
    for stream in streams:
        require(stream.query(), "a stream whose last event is complete is not")
        stream.destroy()


@check("a wait for one stream does not wait for another", "streams")
def waits(place: Place) -> None:
    one, other = qp.create_stream(), qp.create_stream(priority=-1)
    x, y = counted(1000), counted(1000)
    place.device.synchronize()
    rounds = 100
    while (
        not place.quick
        and place.best_us(partial(_spun, place, [one], [x], rounds), repeats=1) < 5000
        and rounds < 1 << 30
    ):
        rounds *= 2
    apart = False
    for turn in range(1 if place.quick else 5):  # another program may stop this one for longer than a kernel takes
        kernels.spin(x, rounds, stream=one)
        kernels.add_one(y, stream=other)
        other.synchronize()
        apart |= not one.query()
        require(y.to_numpy()[1] == 2.0 + turn, "the work of a stream is not complete after its synchronize")
        one.synchronize()
    require(apart or place.quick or not place.is_gpu, "a wait for one stream also waits for another")
    x.to_numpy()
    one.destroy()
    other.destroy()


@check("events measure the time of the device", "streams")
def times(place: Place) -> Figures:
    begin, end = qp.create_event(timing=True), qp.create_event(timing=True)
    x = counted(1000)
    kernels.spin(x, 1)
    began = time.perf_counter()
    begin.record()
    for _ in range(5):
        kernels.spin(x, 1000 if place.quick else 100_000)
    end.record()
    end.synchronize()
    host_ms, device_ms = 1e3 * (time.perf_counter() - began), begin.elapsed_time(end)
    require(device_ms > 0.0 or not place.is_gpu, f"events say {device_ms} ms, the host {host_ms} ms")
    require(not place.is_gpu or device_ms <= 1.5 * host_ms + 1.0, f"events say {device_ms} ms, the host {host_ms} ms")
    return {"device_ms": device_ms, "host_ms": host_ms}


@check("sections of a kernel run in parallel, and join", "streams")
def sections(place: Place) -> None:
    x, y, z = counted(500), counted(500), counted(500)
    for _ in range(3 if place.quick else 50):
        kernels.both(x, y, z)
    require_same(3 * np.arange(500, dtype=np.float32), z.to_numpy(), "sections and what comes after them")


@check(
    "streams on a part of the GPU: kernels, events, sections, graphs; fewer units take longer", "parts", remedy=_PARTS
)
def parts(place: Place) -> Figures:
    place.needs_gpu("on the CPU, a stream has all threads")
    if "parts" not in place.device.driver.features:
        raise Skip("the driver has no streams on a part of the GPU")
    with qp.create_stream(compute_units=0.5) as half, qp.create_stream(compute_units=1) as least:
        _require_results((half, least, half))
        if place.quick or len(half.compute_units or ()) == place.device.driver.info.units:
            return None  # a small GPU may be one group of units
        return _fewer_take_longer(place, half)


def _require_results(streams: tuple[Any, ...]) -> None:
    """Work that goes from stream to stream, in every form."""
    x, ready = counted(500), qp.create_event()
    sides = [counted(500) for _ in range(3)]
    with qp.graph.capture() as graph:
        kernels.add_one(x)
        kernels.scale(2.0, x)
    expected = np.arange(500, dtype=np.float32)
    with graph.instantiate(fuse=False) as run:
        ready.record()
        for stream in streams:
            ready.wait(stream)
            kernels.add_one(x, stream=stream)
            run.launch(stream)
            kernels.both(*sides, stream=stream)
            ready.record(stream)
            expected = 2 * (expected + 2)
        ready.synchronize()
        require_same(expected, x.to_numpy(), "work on parts of the GPU")
        require_same(3 * np.arange(500, dtype=np.float32), sides[2].to_numpy(), "sections on parts of the GPU")


def _fewer_take_longer(place: Place, half: Any) -> Figures:
    array, rounds = [counted(_THREADS * place.device.driver.info.units)], 100
    with qp.create_stream() as whole:
        while place.best_us(partial(_spun, place, [whole], array, rounds), repeats=1) < 2000 and rounds < 1 << 30:
            rounds *= 2
        whole_us = place.best_us(partial(_spun, place, [whole], array, rounds))
        half_us = place.best_us(partial(_spun, place, [half], array, rounds))
    units = len(half.compute_units)
    require(half_us > 1.3 * whole_us, f"a kernel takes {half_us / whole_us:.2f} times as long on {units} of "
            f"{place.device.driver.info.units} units as on all: it runs on others, too")  # fmt: skip
    return {"units": units, "whole_us": whole_us, "half_us": half_us}


@check("streams overlap, and sections: two small kernels take less than twice the time of one", "overlap",
       remedy=_QUEUES, quick=False)  # fmt: skip
def overlap(place: Place) -> Figures:
    place.needs_gpu("on the CPU, calls run one after another")
    streams = [qp.create_stream() for _ in range(2)]
    arrays = [counted(256) for _ in streams]
    rounds = 1000
    while place.best_us(partial(_spun, place, streams[:1], arrays, rounds), repeats=1) < 5000 and rounds < 1 << 30:
        rounds *= 2
    alone = place.best_us(lambda: _spun(place, streams[:1], arrays, rounds))
    together = place.best_us(lambda: _spun(place, streams, arrays, rounds))

    def both() -> None:
        kernels.spin_both(arrays[0], arrays[1], rounds)
        place.device.synchronize()

    sections = place.best_us(both)
    for stream in streams:
        stream.destroy()
    for what, time_us in {"streams": together, "sections": sections}.items():
        require(time_us < 1.7 * alone, f"two {what} take {time_us / alone:.2f} times as long as one kernel")
    return {"alone_us": alone, "together_us": together, "sections_us": sections}


def _spun(place: Place, streams: list[Any], arrays: list[Any], rounds: int) -> None:
    for stream, array in zip(streams, arrays, strict=False):
        kernels.spin(array, rounds, stream=stream)
    place.device.synchronize()
