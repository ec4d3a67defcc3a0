"""``qp.hazards.declare``: what other libraries do with quadpy's memory."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import ArgumentError

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
Cell = qp.types.struct(mass=qp.f32, v=qp.math.vec2)
cells = Cell.field(shape=8)
tiles = qp.field(qp.f32)
qp.root.dense(qp.i, 4).dense(qp.i, 2).place(tiles)


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)


@qp.kernel
def ramp(x: F32):
    for i in x:
        x[i] = i


@qp.kernel
def heavier():
    for i in cells:
        cells[i].mass += 1
        tiles[i] = 1


class Tensor:
    """A tensor of another library over memory of its own, which it exports by DLPack."""

    def __init__(self, count):
        self.numbers = np.zeros(count, np.float32)

    def __dlpack__(self, **options):
        return self.numbers.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.numbers.__dlpack_device__()


def test_a_report_has_the_words_and_the_line_of_the_declaration():
    x, theirs = qp.ndarray(qp.f32, 8), qp.create_stream()
    side = qp.create_stream()
    with qp.hazards.check():
        ramp(x, stream=side)
        with pytest.raises(qp.HazardError, match="read after write of x") as found:
            qp.hazards.declare("torch.matmul", reads=[x], stream=theirs)
    second = found.value.hazard.second
    assert str(second).endswith("torch.matmul reads x, on theirs")
    assert second.file == __file__
    assert found.value.hint.endswith("ready = qp.create_event(); ready.record(side); ready.wait(theirs)")


def test_a_view_of_their_memory_stands_for_their_array():
    tensor, side = Tensor(8), qp.create_stream()
    view = qp.from_dlpack(tensor)
    with qp.hazards.check(collect=True) as found:
        qp.hazards.declare("their fill", writes=[view], stream=side)
        ramp(view)
        side.synchronize()
        ramp(view)
    assert [hazard.kind for hazard in found.certain] == ["write after write"]


def test_fields_of_every_layout_are_declared_whole():
    side = qp.create_stream()
    with qp.hazards.check(collect=True) as found:
        heavier(stream=side)
        qp.hazards.declare("theirs", reads=[cells, tiles])
    assert {hazard.second.array for hazard in found.certain} == {"cells", "tiles"}


def test_the_host_is_a_place_too():
    x, side = qp.ndarray(qp.f32, 8), qp.create_stream()
    with qp.hazards.check(collect=True) as found:
        ramp(x, stream=side)
        qp.hazards.declare("np.sum", reads=[x], stream="host")
        side.synchronize()
        qp.hazards.declare("np.sum", reads=[x], stream="host")
        ramp(x, stream=side)
    (hazard,) = found.certain
    assert (hazard.kind, hazard.second.stream) == ("read after write", "")


def test_allowances_hold_for_declared_work():
    x, side = qp.ndarray(qp.f32, 8), qp.create_stream()
    with qp.hazards.check() as found, qp.hazards.allow(x, reason="their kernel waits by itself"):
        ramp(x, stream=side)
        qp.hazards.declare("theirs", writes=[x])
    assert [hazard.allowed for hazard in found.allowed] == ["their kernel waits by itself"]


def test_a_refused_declaration_is_not_noted():
    x, side = qp.ndarray(qp.f32, 8), qp.create_stream()
    with qp.hazards.check() as found:
        ramp(x, stream=side)
        with pytest.raises(qp.HazardError):
            qp.hazards.declare("theirs", writes=[x])
        side.synchronize()
        qp.hazards.declare("theirs", writes=[x])
        ramp(x)
    assert len(found.certain) == 1


def test_without_the_checker_nothing_happens():
    x = qp.ndarray(qp.f32, 8)
    qp.hazards.declare("theirs", reads=[x], writes=[x], stream=12345)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"what": ""}, "declare needs a description of the work"),
        ({"what": "theirs", "reads": "x"}, "takes a list of arrays, not 'x'"),
        ({"what": "theirs", "writes": [np.zeros(3)]}, "takes ndarrays and fields"),
        ({"what": "theirs", "reads": [ctypes.c_int(3)]}, "takes ndarrays and fields"),
    ],
    ids=["words", "list", "numpy", "object"],
)
def test_mistakes(arguments, said):
    with pytest.raises(ArgumentError, match=said) as found:
        qp.hazards.declare(**arguments)
    assert found.value.hint
