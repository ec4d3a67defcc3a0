"""What copies and fills refuse when they are added or updated: counts that are none, memory too short or read-only."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quadpy.errors import ArgumentError
from quadpy.graph import Graph, Semaphore
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.cpu import CpuDriver

NO_COUNTS = [(-4, "negative"), (2.5, "2.5"), ("4", "'4'"), (math.nan, "nan"), (True, "True"), (1 << 70, "has 12")]


@pytest.fixture
def cpu():
    with Device(CpuDriver()) as device:
        yield device


@pytest.mark.parametrize(("nbytes", "match"), NO_COUNTS, ids=lambda value: str(value)[:8])
def test_bytes_that_are_no_count(on, nbytes, match):
    x, y = on.buffer(1, 2, 3), on.buffer(0, 0, 0)
    graph = on.graph()
    graph.add_memcpy(y, x)
    graph.add_memset(x, 1, element=4)
    with graph.instantiate() as run:
        for attempt in (
            lambda: graph.add_memcpy(y, x, nbytes=nbytes),
            lambda: graph.add_memset(x, 1, nbytes=nbytes),
            lambda: run.update("memcpy", y, x, nbytes=nbytes),
            lambda: run.update("memset", x, 1, nbytes=nbytes),
        ):
            with pytest.raises(ArgumentError, match=match):
                attempt()
        assert len(graph) == 2
        run.launch()
        assert (on.numbers(x), on.numbers(y)) == ([1, 1, 1], [1, 2, 3])


def test_a_count_may_be_numpys(on):
    x, y = on.buffer(1, 2, 3), on.buffer(0, 0, 0)
    graph = on.graph()
    graph.add_memcpy(np.uint64(y.pointer), np.int64(x.pointer), nbytes=np.int32(8))
    graph.add_memset(y, np.int16(7), element=np.int64(4), nbytes=np.int64(4))
    with graph.instantiate() as run:
        run.launch()
        assert on.numbers(y) == [7, 2, 0]


def test_more_bytes_than_either_end_has(on):
    x, y, host = on.buffer(1, 2, 3), on.buffer(0), np.zeros(1, np.int32)
    graph = on.graph()
    for target, source in ((x, y), (y, x), (x, host), (host, x), (x.pointer, y), (y, x.pointer)):
        with pytest.raises(ArgumentError, match=r"has 4 bytes, fewer than 8") as raised:
            graph.add_memcpy(target, source, nbytes=8)
        assert "nbytes=" in str(raised.value)
    with pytest.raises(ArgumentError, match=r"has 4 bytes, fewer than 8"):
        graph.add_memset(y, 0, nbytes=8)
    with pytest.raises(ArgumentError, match="exceed the address space"):
        graph.add_memcpy(x.pointer, y.pointer, nbytes=1 << 64)
    with pytest.raises(ArgumentError, match="exceed the address space"):
        graph.add_memset(1 << 64, 0, nbytes=4)
    assert len(graph) == 0


def test_rows_and_elements_that_are_none(on):
    x = on.buffer(*range(8))
    graph = on.graph()
    for options, match in [
        ({"rows": 0}, "rows"),
        ({"rows": -1}, "rows"),
        ({"rows": 1.5}, "rows"),
        ({"rows": math.nan}, "rows"),
        ({"rows": "2"}, "rows"),
        ({"rows": 2, "pitch": 8}, "rows"),
        ({"rows": 2, "nbytes": 8, "pitch": 4}, "rows"),
        ({"rows": 2, "nbytes": 8, "pitch": -8}, "pitch"),
        ({"rows": 2, "nbytes": 8, "pitch": 8.0}, "pitch"),
        ({"rows": 2, "nbytes": 8, "pitch": "8"}, "pitch"),
        ({"rows": 3, "nbytes": 8, "pitch": 16}, "has 32"),
        ({"rows": 1 << 40, "nbytes": 8, "pitch": 16}, "has 32"),
        ({"element": 0}, "element"),
        ({"element": -4}, "element"),
        ({"element": 8}, "element"),
        ({"element": 4.0}, "element"),
        ({"element": "4"}, "element"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            graph.add_memset(x, 0, **{"element": 4, **options})
    assert len(graph) == 0


def test_values_that_no_element_holds(on):
    x = on.buffer(1, 2)
    graph = on.graph()
    for value in (math.nan, math.inf, 1.5, "3", None, [1], 1 << 32, -(1 << 31) - 1, np.float64(1)):
        with pytest.raises(ArgumentError):
            graph.add_memset(x, value, element=4)
    assert len(graph) == 0


def test_values_of_an_array_are_of_its_type(cpu):
    integers, floats = np.zeros(2, np.int32), np.zeros(2, np.float32)
    graph = Graph(cpu)
    for value in (math.nan, math.inf, 1.5, "3", None, [1, 1], 1 << 31):
        with pytest.raises(ArgumentError):
            graph.add_memset(integers, value)
    for value in ("3", None, [1.0, 1.0], 1j):
        with pytest.raises(ArgumentError):
            graph.add_memset(floats, value)
    assert len(graph) == 0
    graph.add_memset(integers, 1000)
    graph.add_memset(floats, 2)
    with graph.instantiate() as run:
        run.launch()
        run.synchronize()
    assert (integers.tolist(), floats.tolist()) == ([1000, 1000], [2.0, 2.0])


def test_a_number_is_no_memory(on):
    with pytest.raises(ArgumentError, match="not memory"):
        on.graph().add_memcpy(np.float64(1), on.buffer(1, 2))


@pytest.mark.parametrize("pair", [(None,), (1.5,), ("1",), (-1,), (1 << 64,), (math.nan,), (True,)], ids=str)
def test_semaphore_values_that_are_none(simulated, pair):
    graph = simulated.graph()
    with Semaphore.from_fd(3, device=simulated.device) as semaphore:
        for add in (graph.add_semaphore_signal, graph.add_semaphore_wait):
            with pytest.raises(ArgumentError, match="value of a semaphore"):
                add((semaphore, *pair))
    assert len(graph) == 0


# memory that may not be written


def read_only(shape=2):
    array = np.ones(shape, np.int32)
    array.flags.writeable = False
    return array


def mapped(folder):
    path = folder / "numbers"
    np.ones(2, np.int32).tofile(path)
    return np.memmap(path, np.int32, "r")


def test_a_copy_into_read_only_memory(on, tmp_path):
    x, y = on.buffer(3, 4), np.zeros(2, np.int32)
    graph = on.graph()
    graph.add_memcpy(y, x)
    with graph.instantiate() as run:
        for target in (read_only(), mapped(tmp_path), bytes(8), memoryview(bytes(8))):
            for attempt in (lambda: graph.add_memcpy(target, x), lambda: run.update("memcpy", target, x)):  # noqa: B023 - called in its own round
                with pytest.raises(ArgumentError, match="read-only") as raised:
                    attempt()
                assert "pass a copy" in str(raised.value)
    assert len(graph) == 1


def test_a_copy_out_of_read_only_memory(on, tmp_path):
    x, y = on.buffer(3, 4), on.buffer(5, 6)
    graph = on.graph()
    graph.add_memcpy(x, read_only())
    graph.add_memcpy(y, mapped(tmp_path))
    with graph.instantiate() as run:
        run.launch()
        assert (on.numbers(x), on.numbers(y)) == ([1, 1], [1, 1])


def test_a_fill_of_read_only_memory(cpu, tmp_path):
    graph = Graph(cpu)
    for target in (read_only(), mapped(tmp_path), bytes(8)):
        with pytest.raises(ArgumentError, match="read-only"):
            graph.add_memset(target, 0, element=4)
    assert len(graph) == 0


class ReadOnlyOnDevice:
    """Memory of a GPU that its library shows to be read, and not written."""

    def __init__(self, buffer):
        self.__cuda_array_interface__ = {"version": 3, "shape": (2,), "typestr": "<i4", "data": (buffer.pointer, True)}


def test_read_only_memory_of_a_device(simulated):
    x, y = simulated.buffer(1, 2), simulated.buffer(3, 4)
    graph = simulated.graph()
    for attempt in (
        lambda: graph.add_memcpy(ReadOnlyOnDevice(x), y),
        lambda: graph.add_memset(ReadOnlyOnDevice(x), 0, element=4),
    ):
        with pytest.raises(ArgumentError, match="read-only"):
            attempt()
    graph.add_memcpy(y, ReadOnlyOnDevice(x))
    with graph.instantiate() as run:
        run.launch()
        assert simulated.numbers(y) == [1, 2]


def test_what_a_host_function_touches_is_a_list(on):
    x, graph = on.buffer(1), on.graph()
    for options, match in [({"reads": 3}, "reads"), ({"writes": x}, "writes"), ({"reads": None}, "reads")]:
        with pytest.raises(ArgumentError, match=match) as raised:
            graph.add_host(print, **options)
        assert "pass a list" in str(raised.value)
    assert len(graph) == 0
