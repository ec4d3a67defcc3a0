"""Captured work as values: what is equal, the node that each becomes, and where buffers of an arena come from."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.graph.captures.arena import Arena
from quadpy.graph.captures.new_nodes import node_for
from quadpy.graph.model.nodes import ChildNode, EmptyNode, HostNode, MemcpyNode, MemsetNode
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.captured_work import Constant, Copy, Fill, GraphLaunch, HostFunction
from quadpy.runtime.launch.recorded_copies import repeating_pattern


@pytest.fixture
def device():
    before = current_config()
    set_config(Config(arch="cpu"))
    yield current_device()
    set_config(before)


def node(work, device, arena=None, keep=()):
    return node_for(work, device, arena or Arena(), device.current_stream(), keep)


def test_a_fill_and_a_copy_list_their_memory_and_are_ordered(device):
    kept = object()
    fill, copy = node(Fill(64, b"\x01\x02", 8), device, keep=(kept,)), node(Copy(8, 64, 4), device, keep=(kept,))
    assert isinstance(fill.node, MemsetNode)
    assert (fill.node.value, fill.node.element, fill.node.width, fill.node.writes) == (0x201, 2, 4, ((64, 8),))
    assert isinstance(copy.node, MemcpyNode)
    assert (copy.node.reads, copy.node.writes, copy.node.direction) == (((64, 4),), ((8, 4),), "within")
    assert fill.ordered
    assert copy.ordered
    assert fill.node.keep == copy.node.keep == (kept,)


def test_a_constant_is_in_the_arena_and_equal_data_is_uploaded_once(device):
    arena, target = Arena(), 4096
    first = node(Constant(target, b"abcd"), device, arena).node
    arena.rewind(Arena.START)
    again = node(Constant(target, b"abcd"), device, arena).node
    arena.rewind(Arena.START)
    other = node(Constant(target, b"abce"), device, arena).node
    assert first.source == again.source != other.source
    assert (other.source, 4) in arena.ranges()


def test_host_functions_are_equal_if_their_objects_are(device):
    array, same = np.zeros(2), np.zeros(2)
    call = HostFunction(print, (array,))
    assert call == HostFunction(print, (array,))
    assert hash(call) == hash(HostFunction(print, (array,)))
    assert call != HostFunction(print, (same,))
    assert call != HostFunction(repr, (array,))
    assert call != HostFunction(print, ())
    assert call != Fill(0, b"\0", 4)
    made = node(call, device)
    assert isinstance(made.node, HostNode)
    assert (made.name, made.node.barrier, made.ordered) == ("print", False, False)


def test_a_launched_graph_is_a_child(device):
    inner = EmptyNode(name="inner", reads=((8, 4),))
    made = node(GraphLaunch((inner,)), device)
    assert isinstance(made.node, ChildNode)
    assert (made.node.nodes, made.node.reads, made.name) == ((inner,), ((8, 4),), "child")


def test_anything_else_is_refused(device):
    with pytest.raises(TypeError, match="no node for 3"):
        node(3, device)


@pytest.mark.parametrize(
    ("data", "pattern"),
    [
        (b"", None),
        (b"\x07", b"\x07"),
        (b"\x07\x07\x07\x07", b"\x07"),
        (b"\x01\x02\x01\x02", b"\x01\x02"),
        (b"\x01\x02\x03\x04", b"\x01\x02\x03\x04"),
        (b"\x01\x02\x03\x04\x01\x02\x03\x04", b"\x01\x02\x03\x04"),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08", None),
        (b"\x01\x02\x01", None),
    ],
)
def test_the_pattern_that_bytes_repeat(data, pattern):
    assert repeating_pattern(data) == pattern


def test_names_of_nodes_are_numbered_around_those_that_users_give(device):
    graph = qp.graph.Graph(device)
    graph.add_empty(name="empty.1")
    names = [graph.add_empty().name for _ in range(3)]
    assert names == ["empty", "empty.2", "empty.3"]
    assert graph.clone().add_empty().name == "empty.4"
