"""Launches on a GPU of kernels over fields and arrays of structs."""

from __future__ import annotations

import numpy as np
import pytest
from simulated import gpu, launched

import quadpy as qp

Item = qp.types.struct(a=qp.f32, n=qp.i64)


@qp.kernel
def advance(f: qp.template(), x: qp.types.ndarray(Item, 1)):
    for i in f:
        f[i].n += 1
        x[i].a += f[i].a


def addresses(block):
    return np.frombuffer(block[: len(block) // 8 * 8], np.uint64).tolist()


@pytest.mark.parametrize("layout", qp.Layout)
def test_a_launch_has_the_addresses_of_structs(layout):
    with gpu() as device:
        f, x = Item.field(4, layout=layout), Item.ndarray(4)
        host = np.zeros(4, Item.numpy_dtype)
        for given in (x, x, host):
            advance(f, given)
        first, again, copied = launched(device)
        assert first[1] == again[1]
        assert {f.pointer, x.pointer} <= {*addresses(first[1])}
        assert f.pointer in addresses(copied[1])
        assert x.pointer not in addresses(copied[1])
        del f, x


def test_a_graph_keeps_fields_of_structs():
    with gpu() as device, qp.create_stream() as stream:
        f, x = Item.field(4), Item.ndarray(4)
        with qp.graph.capture(stream) as graph:
            advance(f, x, stream=stream)
        made = graph.instantiate()
        made.launch(stream)
        stream.synchronize()
        assert (f.device, f.block is None) == (device, False)
        del made, graph, f, x
