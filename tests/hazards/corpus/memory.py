"""Memory that is used too early or too late, and memory that only looks so, because its address comes again."""

from __future__ import annotations

import ctypes

import numpy as np

import quadpy as qp

from .kernels import copy, ones, part, ramp
from .program import clean, racy


class Memory:
    """Numbers at an address on a GPU."""

    def __init__(self, pointer, size):
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "<f4", "data": (pointer, False), "strides": None, "stream": None, "version": 3,
        }  # fmt: skip


def array_at(pointer, like, size=64):
    """The array of ``size`` numbers at ``pointer``, which is memory of the device of ``like``."""
    if like.device is not None:
        return qp.from_dlpack(Memory(pointer, size))
    return qp.from_dlpack(np.ctypeslib.as_array((ctypes.c_float * size).from_address(pointer)))


@racy("use after free")
def freed_while_it_is_used(s1, x, streams, ready):
    pointer = streams.malloc_async(256, 0)
    memory = array_at(pointer, x)
    qp.sync()
    ramp(memory, stream=s1)  # first
    # fixed by: ready.record(s1); ready.wait()
    streams.free_async(pointer, 0)  # second


@racy("use after free")
def used_after_it_was_freed(x, streams):
    pointer = streams.malloc_async(256, 0)
    memory = array_at(pointer, x)
    # fixed by: copy(memory, x)
    streams.free_async(pointer, 0)  # first
    # fixed to: pass
    copy(memory, x)  # second


@racy("use after free")
def used_on_another_stream_after_it_was_freed(s1, x, y, streams, ready):
    pointer = streams.malloc_async(256, 0)
    memory = array_at(pointer, x)
    qp.sync()
    # fixed by: copy(memory, y, stream=s1); ready.record(s1); ready.wait()
    streams.free_async(pointer, 0)  # first
    # fixed to: pass
    copy(memory, y, stream=s1)  # second


@racy("use before allocation")
def used_before_it_is_there(s1, x, streams, ready):
    """Memory by handle is there when its stream gets to the allocation."""
    pointer = streams.malloc_async(256, 0)  # first
    memory = array_at(pointer, x)
    # fixed by: ready.record(); ready.wait(s1)
    ramp(memory, stream=s1)  # second
    s1.synchronize()
    streams.free_async(pointer, 0)


@racy("use before allocation")
def a_graph_uses_memory_before_it_allocates_it():
    graph = qp.graph.Graph()
    memory = graph.add_alloc(256)  # first
    # fixed to: fill = graph.add_memset(memory, 0, element=4, deps=[memory])
    fill = graph.add_memset(memory, 0, element=4, deps=[])  # second
    graph.add_free(memory, deps=[memory, fill])
    with graph.instantiate() as run:
        run.launch()


@racy("use after free")
def a_graph_frees_memory_that_it_uses():
    graph = qp.graph.Graph()
    memory = graph.add_alloc(256)
    graph.add_memset(memory, 0, element=4, deps=[memory])  # first
    # fixed to: graph.add_free(memory, deps=["memset"])
    graph.add_free(memory, deps=[memory])  # second
    with graph.instantiate() as run:
        run.launch()


@clean
def arrays_come_and_go(s1, s2):
    """Each array may have the address of one that another stream still writes."""
    for step in range(6):
        stream = (s1, s2)[step % 2]
        ramp(qp.ndarray(qp.f32, 64, stream=stream), stream=stream)


@clean
def dropped_while_it_is_used(s1, s2, y):
    x = qp.ndarray(qp.f32, 64, stream=s1)
    ramp(x, stream=s2)
    del x
    x = qp.ndarray(qp.f32, 64, stream=s1)
    ones(x, stream=s1)
    del x
    ramp(y, stream=s2)


@clean
def made_on_one_stream_and_used_on_another(s1, s2):
    """quadpy orders the allocation, and the zeros, before the first use."""
    x, y = qp.ndarray(qp.f32, 64, stream=s1), qp.ndarray(qp.f32, 64)
    ramp(x, stream=s2)
    copy(x, y, stream=s2)


@clean
def its_home_stream_ends(x):
    with qp.create_stream() as home, qp.create_stream() as other:
        temporary = qp.ndarray(qp.f32, 64, stream=home)
        home.destroy()
        ramp(temporary, stream=other)
        copy(temporary, x, stream=other)
        del temporary
        ones(qp.ndarray(qp.f32, 64))


@clean
def freed_in_order(s1, x, streams, ready):
    pointer = streams.malloc_async(256, 0)
    memory = array_at(pointer, x)
    ready.record()
    ready.wait(s1)
    ramp(memory, stream=s1)
    s1.synchronize()
    streams.free_async(pointer, 0)


@clean
def allocated_again_at_the_same_address(s1, x, streams):
    for _ in range(3):
        pointer = streams.malloc_async(256, 0)
        ramp(array_at(pointer, x))
        streams.free_async(pointer, 0)


@clean
def a_graph_with_memory_of_its_own(x):
    graph = qp.graph.Graph()
    memory = graph.add_alloc(256)
    graph.add_memset(memory, 0, element=4)
    graph.add_memcpy(x, memory)
    graph.add_free(memory)
    with graph.instantiate() as run:
        run.launch()
        run.launch()


@clean
def many_small_arrays(s1, s2, ready):
    kept = [qp.ndarray(qp.f32, 8, stream=s1) for _ in range(8)]
    for array in kept[:4]:
        ramp(array, stream=s1)
    ready.record(s1)
    ready.wait(s2)
    for array in kept:
        part(array, 0, 8, stream=s2)
    del kept
