"""Formats that C has and Python lacks, and what placeholders name."""

import contextlib
import io

import pytest

import quadpy as qp


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(**{"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param])


TEXT = """
import quadpy.compat.taichi as ti

@qp.func
def show(i, x):
    v, iv, big = qp.Vector([x, 2 * x]), qp.Vector([i, -2]), qp.u64(1) << 63
    {line}

@qp.kernel
def kernel(i: qp.i32, x: qp.f32):
    show(i, x)

@qp.kernel(graph=True)
def graph(i: qp.i32, x: qp.f32):
    show(i, x)

@ti.kernel
def taichi(i: ti.i32, x: ti.f32):
    show(i, x)
"""
LINES = {
    "'{:i} {:d}'.format(i, -i)": "42 -42",
    "f'{i:i} {i:5i} {i:05i} {i:+i}'": "42    42 00042 +42",
    "'{:.3d} {:.3} {:.3i} {:5.3d}|{:-6.3d}|'.format(i, i, -i, i, i)": "042 042 -042   042|042   |",
    "f'{iv:i} {iv:.3d} {qp.Vector([iv, iv]):.2i}'": "[42, -2] [042, -002] [[42, -02], [42, -02]]",
    "'{:u} {:lu} {:llu}'.format(qp.u32(7), qp.u64(8), big)": "7 8 9223372036854775808",
    "'{:ld} {:lld} {:hd} {:hhu}'.format(i, qp.i64(i), qp.i16(i), qp.u8(i))": "42 42 42 42",
    "f'{3:.2d} {i > 3:i} {i:x} {i:#x}'": "03 1 2a 0x2a",
    "'{0} {1:.2f} {0:.3d}'.format(i, x)": "42 3.14 042",
    "'{a} {b:.2f} {a:i}'.format(a=i, b=x)": "42 3.14 42",
    "'%i %u %5.3d %.2f' % (i, i, i, x)": "42 42   042 3.14",
}


def printed(kernel):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        kernel(42, 3.14159)
        qp.sync()
    return out.getvalue()


@pytest.mark.parametrize("line", LINES)
def test_formats(load, line):
    module = load(TEXT.format(line=f"print({line})"))
    assert printed(module.kernel) == LINES[line] + "\n"
    assert printed(module.graph) + printed(module.graph) == 2 * (LINES[line] + "\n")


def test_a_precision_without_a_type(load):
    module = load(TEXT.format(line="print('{:.3} {:8.3} {:.2} {:.3}'.format(x, x, v, 2.5), f'{x:.1}')"))
    assert printed(module.kernel) == "3.14     3.14 [3.1, 6.3] 2.5 3e+00\n"
    assert printed(module.taichi) == "3.142    3.142 [3.14, 6.28] 2.500 3.1\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("'{:i}'.format(x)", "'i' does not format f32.*\n.*\n.*\n.*formats of floats are such as .3f"),
        ("'{:d}'.format(x)", "'d' does not format f32"),
        ("'{:q}'.format(i)", "'q' does not format i32.*\n.*\n.*\n.*formats of integers are such as 4d"),
        ("'{:.3x}'.format(i)", "'.3x' does not format i32"),
        ("'{} {}'.format(i)", "asks for more values than the 1"),
        ("'{2}'.format(i)", "asks for more values than the 1"),
        ("'{b}'.format(a=i)", "asks for 'b'"),
    ],
)
def test_refused(load, line, message):
    module = load(TEXT.format(line=f"print({line})"))
    for kernel in (module.kernel, module.taichi):
        with pytest.raises(qp.KernelTypeError, match=message):
            kernel(42, 3.14159)
