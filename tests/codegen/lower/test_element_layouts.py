"""Elements of several scalars of different types: each at its offset in bytes, beside each other or apart."""

import numpy as np
import pytest

from quadpy.codegen.compile import compile_kernel
from quadpy.core.dtypes import f32, f64, i32, u8
from quadpy.core.target import parse_target
from quadpy.errors import CodegenError
from quadpy.ir.nodes import Var
from quadpy.ir.types import Array, Layout, Member, array_of
from quadpy.ir.verify import verify

RECORD = np.dtype({"names": ["a", "b", "c"], "formats": ["f4", ("f8", 2), "u1"], "offsets": [0, 8, 24], "itemsize": 32})
BESIDE = Layout((Member(f32, 4), Member(f64, 8, (2,), 8), Member(u8, 1, (), 24)), 32)
"""An element as C lays out ``struct {float a; double b[2]; unsigned char c;}``."""
N = 24
APART = Layout(
    (Member(f32, 4, (), 0, (4,)), Member(f64, 8 * N, (2,), 4 * N, (8,)), Member(u8, 1, (), 20 * N, (1,))), 21 * N
)
"""The same members, each scalar in an array of its own."""
I = Var("i", i32)
A, B0, B1, C = range(4)


def moves(b, layout, **options):
    """``c = u8(a)``, ``a = a + f32(b[1])``, ``b[0] = b[1]`` of each element of ``x``."""
    a, second = Var("a", f32), Var("second", f64)
    body = (
        b.load(a, b.at("x", I, t=f32, component=A)),
        b.load(second, b.at("x", I, t=f64, component=B1)),
        b.store(b.at("x", I, t=u8, component=C), b.value(a).to(u8)),
        b.store(b.at("x", I, t=f32, component=A), b.value(a) + b.value(second).to(f32)),
        b.store(b.at("x", I, t=f64, component=B0), second),
    )
    stop = N if "shape" in options else b.extent("x")
    return b.kernel((b.array("x", layout, **options),), b.parallel(b.axis(I, 0, stop), *body))


def records():
    x = np.zeros(N, RECORD)
    x["a"], x["b"], x["c"] = np.arange(N), np.arange(2 * N).reshape(N, 2) / 4, 200
    return x


def moved(x):
    want = x.copy()
    want["c"], want["a"], want["b"][:, 0] = x["a"], x["a"] + x["b"][:, 1].astype("f4"), x["b"][:, 1]
    return want


def same(x, want):
    return all((x[name] == want[name]).all() for name in RECORD.names)


def test_members_beside_each_other(b):
    x = records()
    want = moved(x)
    b.Loaded(moves(b, BESIDE))(x)
    assert same(x, want)


@pytest.mark.parametrize("rows", [slice(None, None, 2), slice(None, None, -3)], ids=["steps", "backwards"])
def test_views_of_records(b, rows):
    x = records()
    want = x.copy()
    want[rows] = moved(x)[rows]
    b.Loaded(moves(b, BESIDE, strided=True))(x[rows])
    assert same(x, want)


def test_members_apart(b):
    x, memory = records(), np.zeros(APART.size, np.uint8)
    want = moved(x)

    def parts():
        yield memory[: 4 * N].view("f4")
        yield memory[4 * N : 20 * N].view("f8").reshape(2, N).T
        yield memory[20 * N :]

    for part, name in zip(parts(), RECORD.names, strict=True):
        part[:] = x[name]
    b.Loaded(moves(b, APART, shape=(N,)))(memory)
    assert all((part == want[name]).all() for part, name in zip(parts(), RECORD.names, strict=True))


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
@pytest.mark.parametrize("options", [{}, {"strided": True}, {"shape": (N,)}], ids=["rows", "strided", "field"])
def test_gpus_compile_them(b, target, options):
    for layout in (BESIDE, APART) if "shape" in options else (BESIDE,):
        assert compile_kernel(moves(b, layout, **options), parse_target(target)).image


def test_scalars_are_numbered_through():
    assert [BESIDE.at(k)[0].scalar for k in range(BESIDE.count)] == [f32, f64, f64, u8]
    assert [BESIDE.at(k)[1] for k in range(4)] == [0, 8, 16, 24]
    assert [APART.at(k)[1] for k in range(4)] == [0, 4 * N, 12 * N, 20 * N]
    assert (BESIDE.unit, BESIDE.count) == (8, 4)
    with pytest.raises(IndexError):
        BESIDE.at(4)


def test_the_verifier_knows_each_scalar(b):
    wrong = b.parallel(b.axis(I, 0, b.extent("x")), b.store(b.at("x", I, t=f32, component=B0), b.const(0.0, f32)))
    with pytest.raises(CodegenError, match="x holds f64, not f32"):
        verify(b.kernel((b.array("x", BESIDE),), wrong))


def test_types_are_printed_in_bytes():
    assert repr(Array(BESIDE, 1)) == "{f32 at 0, f64x2 at 8, u8 at 24, size 32}[?]"
    assert repr(array_of(f32, 1, (3,), (40,), strides=(4, 160))) == "f32x3[40, strides=[4, 160]]"
    assert repr(array_of(f64, 2, strided=True)) == "f64[?, ?, strided]"
    assert repr(Array(APART, 1, (N,))).startswith("{f32 at 0 strides=[4, 4], f64x2 at 96 strides=[8, 192], u8 at 480")
