"""Every operator on every type, against Python integers and NumPy floats, on this CPU and on plain x86-64."""

from __future__ import annotations

import itertools
import math
import platform
from functools import partial

import numpy as np
import pytest

from quadpy.core import dtypes
from quadpy.core.dtypes import SCALARS, u1
from quadpy.ir.nodes import BinOp, CmpOp, UnOp, Var

INTEGERS = [t for t in SCALARS if t.kind in ("int", "uint")]
FLOATS = [dtypes.f32, dtypes.f64]
pytestmark = pytest.mark.cpu_targets("cpu", *["cpu:x86-64"] * (platform.machine() == "x86_64"))


def wrapped(x, t):
    x &= (1 << t.bits) - 1
    return x - (1 << t.bits) if t.kind == "int" and x >> (t.bits - 1) else x


def shifted(op, x, n, t):
    inside = 0 <= n < t.bits
    if op is BinOp.SHL:
        return x << n if inside else 0
    if op is BinOp.SHR and t.kind == "int":
        return x >> (n if inside else t.bits - 1)
    return (x & ((1 << t.bits) - 1)) >> n if inside else 0


def divided(op, a, b):
    if b == 0:
        return 0
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return {BinOp.FLOORDIV: a // b, BinOp.MOD: a % b, BinOp.RAWDIV: quotient, BinOp.RAWMOD: a - b * quotient}[op]


def expected(op, a, b, t):
    """The language's definition, over unbounded integers."""
    match op:
        case BinOp.ADD:
            result = a + b
        case BinOp.SUB:
            result = a - b
        case BinOp.MUL:
            result = a * b
        case BinOp.AND:
            result = a & b
        case BinOp.OR:
            result = a | b
        case BinOp.XOR:
            result = a ^ b
        case BinOp.MIN:
            result = min(a, b)
        case BinOp.MAX:
            result = max(a, b)
        case BinOp.SHL | BinOp.SHR | BinOp.USHR:
            result = shifted(op, a, b, t)
        case _:
            result = divided(op, a, b)
    return wrapped(result, t)


def interesting(t):
    near = {t.min_int, t.min_int + 1, t.max_int, t.max_int - 1, 0, 1, 2, 3, 7, t.bits - 1, t.bits, t.bits + 1}
    negative = {-1, -2, -3, -7, -t.bits} if t.kind == "int" else set()
    return sorted(near | negative)


def apply_all(b, makes, src, dst, *columns):
    """One array of type ``dst`` for each of ``makes``, applied to the columns of type ``src``; all in one kernel."""
    i, inputs = Var("i", dtypes.i32), [Var(f"x{n}", src) for n in range(len(columns))]
    names = "abc"[: len(columns)]
    params = [b.array(name, src) for name in names] + [b.array("out", dst, 2)]
    loads = [b.load(var, b.at(name, i, t=src)) for var, name in zip(inputs, names, strict=True)]
    stores = [b.store(b.at("out", n, i, t=dst), make(*map(b.value, inputs))) for n, make in enumerate(makes)]
    k = b.kernel(tuple(params), b.parallel(b.axis(i, 0, b.extent("a")), *loads, *stores))
    out = np.zeros((len(makes), len(columns[0])), b.NUMPY[dst.name])
    b.Loaded(k)(*columns, out)
    return out


def apply(b, make, src, dst, *columns):
    return apply_all(b, [make], src, dst, *columns)[0]


@pytest.mark.parametrize("t", INTEGERS, ids=repr)
def test_integer_operators(b, t):
    pairs = list(itertools.product(interesting(t), repeat=2))
    lhs, rhs = (np.array(column, b.NUMPY[t.name]) for column in zip(*pairs, strict=True))
    ops = [op for op in BinOp if op is not BinOp.DIV]
    rows = apply_all(b, [partial(b.binary, op) for op in ops], t, t, lhs, rhs)
    for op, got in zip(ops, rows, strict=True):
        assert got.tolist() == [expected(op, x, y, t) for x, y in pairs], op


@pytest.mark.parametrize("t", INTEGERS, ids=repr)
def test_integer_operators_with_a_constant(b, t):
    """Divisors and counts that are constants take another path: multiplications, shifts and masks."""
    column = np.array(interesting(t), b.NUMPY[t.name])
    ops = (BinOp.FLOORDIV, BinOp.MOD, BinOp.RAWDIV, BinOp.RAWMOD, BinOp.SHL, BinOp.SHR, BinOp.USHR)
    constants = [
        c for c in (0, 1, 2, 3, 8, 10, t.bits, -1, -2, -3, -8, t.min_int, t.max_int) if t.min_int <= c <= t.max_int
    ]
    cases = list(itertools.product(ops, constants))
    rows = apply_all(b, [lambda x, op=op, c=c: b.binary(op, x, c) for op, c in cases], t, t, column)
    for (op, c), got in zip(cases, rows, strict=True):
        assert got.tolist() == [expected(op, int(x), c, t) for x in column], (op, c)


@pytest.mark.parametrize("t", INTEGERS, ids=repr)
def test_integer_unary(b, t):
    column = np.array(interesting(t), b.NUMPY[t.name])
    wanted = {UnOp.NEG: lambda x: -x, UnOp.NOT: lambda x: ~x, UnOp.ABS: abs}
    rows = apply_all(b, [partial(b.unary, op) for op in wanted], t, t, column)
    for (op, f), got in zip(wanted.items(), rows, strict=True):
        assert got.tolist() == [wrapped(f(int(x)), t) for x in column], op


@pytest.mark.parametrize("t", INTEGERS, ids=repr)
def test_bit_intrinsics(b, t):
    column = np.array(interesting(t), b.NUMPY[t.name])
    raw = [int(x) & ((1 << t.bits) - 1) for x in column]
    definitions = {
        "popcnt": lambda x: x.bit_count(),
        "clz": lambda x: t.bits - x.bit_length(),
        "ctz": lambda x: (x & -x).bit_length() - 1 if x else t.bits,
    }
    rows = apply_all(b, [partial(b.intrinsic, name, dtypes.i32) for name in definitions], t, dtypes.i32, column)
    for (name, f), got in zip(definitions.items(), rows, strict=True):
        assert got.tolist() == list(map(f, raw)), name
    pairs = list(itertools.product(map(int, column), repeat=2))
    lhs, rhs = (np.array(c, b.NUMPY[t.name]) for c in zip(*pairs, strict=True))
    got = apply(b, lambda x, y: b.intrinsic("mulhi", t, x, y), t, t, lhs, rhs)
    assert got.tolist() == [(x * y) >> t.bits for x, y in pairs]


SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 0.5, 3.0, 1e-30, -1e30, 1e-40, 5e-324, math.inf, -math.inf, math.nan, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 2.0**64, 255.0, 256.0, -129.0, 127.9, 65519.9, 65520.0]  # fmt: skip


def same(got, want):
    """Equal bit for bit, but all NaNs are one."""
    both_nan = np.isnan(got) & np.isnan(want)
    return ((got == want) & (np.signbit(got) == np.signbit(want)) | both_nan).all()


def minimum(a, b, pick):
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    if a == b == 0:
        return pick(a, b, key=lambda x: math.copysign(1, x))
    return pick(a, b)


@pytest.mark.parametrize("t", FLOATS, ids=repr)
def test_float_operators(b, t):
    ty = b.NUMPY[t.name]
    with np.errstate(all="ignore"):
        pairs = np.array(list(itertools.product(SPECIAL, repeat=2))).astype(ty)
        x, y = pairs.T.copy()
        wanted = {
            BinOp.ADD: x + y, BinOp.SUB: x - y, BinOp.MUL: x * y,
        }  # fmt: skip
    rows = apply_all(b, [partial(b.binary, op) for op in wanted], t, t, x, y)
    for (op, want), got in zip(wanted.items(), rows, strict=True):
        assert same(got, want), op
    ufuncs = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
    rows = apply_all(b, [partial(b.compare, op) for op in CmpOp], t, u1, x, y)
    for op, f, got in zip(CmpOp, ufuncs, rows, strict=True):
        assert (got == f(x, y)).all(), op


@pytest.mark.parametrize("t", FLOATS, ids=repr)
def test_minimum_and_maximum_are_ieees(b, t):
    """A number beats a NaN, and -0 is below +0."""
    pairs = np.array(list(itertools.product(SPECIAL, repeat=2))).astype(b.NUMPY[t.name])
    want = [np.array([minimum(*p, pick) for p in pairs.tolist()], pairs.dtype) for pick in (min, max)]
    rows = apply_all(b, [partial(b.binary, op) for op in (BinOp.MIN, BinOp.MAX)], t, t, *pairs.T.copy())
    assert same(rows[0], want[0])
    assert same(rows[1], want[1])


@pytest.mark.parametrize("t", FLOATS, ids=repr)
def test_float_division(b, t):
    with np.errstate(all="ignore"):
        x, y = np.array(list(itertools.product(SPECIAL, repeat=2))).astype(b.NUMPY[t.name]).T.copy()
        want = x / y
    assert same(apply(b, partial(b.binary, BinOp.DIV), t, t, x, y), want)


@pytest.mark.parametrize("t", FLOATS, ids=repr)
def test_float_unary(b, t):
    with np.errstate(all="ignore"):
        x = np.array(SPECIAL).astype(b.NUMPY[t.name])
        wanted = {
            UnOp.NEG: -x, UnOp.ABS: abs(x), UnOp.SQRT: np.sqrt(x), UnOp.FLOOR: np.floor(x), UnOp.CEIL: np.ceil(x),
            UnOp.TRUNC: np.trunc(x), UnOp.RINT: np.rint(x),
        }  # fmt: skip
    rows = apply_all(b, [partial(b.unary, op) for op in wanted], t, t, x)
    for (op, want), got in zip(wanted.items(), rows, strict=True):
        assert same(got, want), op
    y = np.roll(x, 1)
    assert same(apply(b, lambda x, y: b.intrinsic("copysign", t, x, y), t, t, x, y), np.copysign(x, y))


def test_fma_rounds_once(b):
    one, eps = 1.0, 2.0**-52
    x, y, z = (np.array([v]) for v in (one + eps, one - eps, -one))
    got = apply(b, lambda x, y, z: b.intrinsic("fma", dtypes.f64, x, y, z), dtypes.f64, dtypes.f64, x, y, z)
    assert got[0] == -(eps * eps)


@pytest.mark.parametrize("dst", SCALARS, ids=repr)
@pytest.mark.parametrize("src", [dtypes.f16, dtypes.f32, dtypes.f64], ids=repr)
def test_casts_of_floats(b, src, dst):
    with np.errstate(all="ignore"):
        x = np.array(SPECIAL).astype(b.NUMPY[src.name])
        got = apply(b, lambda x: x.to(dst), src, dst, x)
        if dst.name == "bf16":
            want = np.array([bfloat(v) for v in x.tolist()], np.uint16)
            assert got.tolist() == want.tolist()
        elif dst.is_float:
            assert same(got, x.astype(b.NUMPY[dst.name]))
        elif dst == u1:
            assert got.tolist() == [v != 0 for v in x.tolist()]
        else:
            assert got.tolist() == [saturated(v, dst) for v in x.tolist()]


def saturated(x, t):
    return 0 if math.isnan(x) else t.max_int if x >= t.max_int else t.min_int if x <= t.min_int else int(x)


def bfloat(x):
    """The bits of ``x`` rounded to bfloat16, found among all its values."""
    if math.isnan(x):
        return 0x7FC0
    bits = np.arange(0x7F81, dtype=np.uint32)
    values = (bits << 16).view(np.float32).astype(np.float64)
    values[-1] = 2.0**128  # where rounding to infinity ends
    size = abs(x)
    above = int(np.searchsorted(values, size)) if size < values[-1] else 0x7F80
    if above and values[above] != size:
        low, high = size - values[above - 1], values[above] - size
        above -= bool(low < high or (low == high and above % 2))
    return above | (0x8000 if math.copysign(1, x) < 0 else 0)


@pytest.mark.parametrize("dst", SCALARS, ids=repr)
@pytest.mark.parametrize("src", INTEGERS, ids=repr)
def test_casts_of_integers(b, src, dst):
    x = np.array(interesting(src), b.NUMPY[src.name])
    got = apply(b, lambda x: x.to(dst), src, dst, x)
    if dst.name == "bf16":
        assert got.tolist() == [bfloat(float(np.float32(v))) for v in x.tolist()]
    elif dst.is_float:
        with np.errstate(over="ignore"):
            assert (got == x.astype(b.NUMPY[dst.name])).all()
    else:
        assert got.tolist() == [bool(v) if dst == u1 else wrapped(v, dst) for v in x.tolist()]


def test_halves_are_rounded_after_each_operation(b):
    """(2048 + 1) - 2048 is 0 in half precision, 1 in single."""
    x, y = np.array([2048.0], np.float16), np.array([1.0], np.float16)
    assert apply(b, lambda x, y: x + y - x, dtypes.f16, dtypes.f16, x, y)[0] == 0


def test_every_half_survives_the_way_through_f32(b):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    back = apply(b, lambda x: x.to(dtypes.f32).to(dtypes.f16), dtypes.f16, dtypes.f16, x)
    assert same(back, x)


def test_doubles_to_halves_round_once(b):
    """A double just above a tie of two halves becomes a tie when it is rounded to f32 first."""
    x = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 3 * 2.0**-11 - 2.0**-40, 2.0**-25 * (1 + 2.0**-40)])
    assert same(apply(b, lambda x: x.to(dtypes.f16), dtypes.f64, dtypes.f16, x), x.astype(np.float16))
    y = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 3 * 2.0**-8 - 2.0**-40])
    got = apply(b, lambda x: x.to(dtypes.bf16), dtypes.f64, dtypes.bf16, y)
    assert got.tolist() == [0x3F81, 0x3F80, 0x3F81]


def test_bits_are_kept_by_bitcasts(b):
    x = np.array([0.0, -1.5, math.inf], np.float32)
    assert (apply(b, lambda x: b.bitcast(x, dtypes.u32), dtypes.f32, dtypes.u32, x) == x.view(np.uint32)).all()


def test_logic(b):
    x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert (apply(b, lambda x, y: b.binary(BinOp.AND, x, b.unary(UnOp.NOT, y)), u1, u1, x, y) == (x & ~y)).all()
    assert (apply(b, lambda x, y: b.select(x, y, x), u1, u1, x, y) == (x & y)).all()
