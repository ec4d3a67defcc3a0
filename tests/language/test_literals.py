"""One expression, of literals and of the same numbers at run time: the same bits."""

from __future__ import annotations

import itertools
import math
import struct

import numpy as np
import pytest

import quadpy as qp
from quadpy.intrinsics import GROUPS

FLOATS = [0.0, -0.0, 0.1, -2.5, 3.0, 1e308, -5e-324, -math.inf, math.nan]
FEW = [0.0, -0.0, 0.7, -2.5, math.inf, math.nan]
INTEGERS = [0, 1, -1, -7, 5, 64, -64]
TRUTHS = [True, False]
ARITHMETIC = ["a + b", "a - b", "a * b", "a / b", "a // b", "a % b"]
ORDER = ["a < b", "a == b", "a != b", "min(a, b)", "qp.max((a, b))"]
BITS = ["a << b", "a >> b", "a & b", "a | b", "a ^ b"]
UNARY = ["-a", "+a", "abs(a)", "not a", "qp.abs(a)", "qp.one(a)", "qp.i32(a)", "qp.u8(qp.f32(a))", "qp.f16(a)", "qp.bf16(a)",
         "qp.u1(a)", "bool(a)", "float(a)", "qp.select(a, 2.0, 1.0)", "1.5 if a else 2.5"]  # fmt: skip
ROUNDINGS = ["qp.floor(a)", "qp.ceil(a)", "qp.round(a)", "qp.trunc(a)", "qp.fma(a, a, 0.5)", "qp.copysign(2.0, a)"]
LIBRARY = [
    f"qp.{row.name}(a)" for row in GROUPS["Functions of one number"] if row.name not in ("sincos", "frexp")
]  # two numbers
TWO_FLOATS = ["qp.atan2(a, b)", "qp.hypot(a, b)", "qp.fmod(a, b)", "qp.pow(a, b)", "qp.copysign(a, b)"]


def bits(value) -> str:
    if isinstance(value, (float, np.floating)):
        return "nan" if math.isnan(value) else struct.pack("<d", float(value)).hex()
    return str(value)


def text_of(value) -> str:
    return {math.inf: "INF", -math.inf: "(-INF)"}.get(value, "NAN" if value != value else f"({value!r})")


def both(load, expression: str, pairs: list[tuple], result: str, left: str, right: str) -> tuple[list, list]:
    """The results for ``pairs`` as literals, and as elements of arrays."""
    lines = "\n".join(
        f"    out[{k}] = {fill(expression, text_of(a), text_of(b))}" for k, (a, b) in enumerate(pairs)
    )  # fmt: skip
    module = load(f"""
INF, NAN = float("inf"), float("nan")

@qp.kernel
def literals(out: qp.types.ndarray(qp.{result}, 1)):
{lines}

@qp.kernel
def loaded(out: qp.types.ndarray(qp.{result}, 1), x: qp.types.ndarray(qp.{left}, 1), y: qp.types.ndarray(qp.{right}, 1)):
    for i in out:
        out[i] = {fill(expression, "x[i]", "y[i]")}
""")
    numpy = {"f64": np.float64, "i64": np.int64, "u1": np.bool_}
    found = []
    for kernel, args in ((module.literals, ()), (module.loaded, tuple(np.array(c, numpy[t]) for c, t in
                                                 zip(zip(*pairs, strict=True), (left, right), strict=True)))):  # fmt: skip
        out = np.zeros(len(pairs), numpy[result])
        kernel(out, *args)
        found.append([bits(v) for v in out])
    return found[0], found[1]


def fill(expression: str, a: str, b: str) -> str:
    """``expression`` with its names ``a`` and ``b`` replaced."""
    return "".join({"a": a, "b": b}.get(part, part) for part in split_names(expression))


def split_names(expression: str) -> list[str]:
    return ["".join(run) for _, run in itertools.groupby(expression, lambda c: c.isalnum() or c in "_.")]


def same(load, expression, values, *, second=None, result="f64", kind="f64", other=None, keep=lambda a, b: True):
    pairs = [(a, b) for a in values for b in (second or values) if keep(a, b)]
    at_compile_time, at_run_time = both(load, expression, pairs, result, kind, other or kind)
    assert dict(zip(map(repr, pairs), at_compile_time, strict=True)) == dict(
        zip(map(repr, pairs), at_run_time, strict=True)
    )


@pytest.fixture
def wide(init):
    init(default_ip=qp.i64, default_fp=qp.f64)


@pytest.mark.parametrize("expression", [*ARITHMETIC, *ORDER])
def test_floats(load, wide, expression):
    same(load, expression, FLOATS)


@pytest.mark.parametrize("expression", [*ARITHMETIC, *ORDER, *BITS])
def test_integers(load, wide, expression):
    """Literals are exact: what i64 cannot hold would be refused, where it wraps at run time."""
    same(load, expression, INTEGERS, result="f64" if "/ " in expression and "//" not in expression else "i64", kind="i64",
         keep=lambda a, b: expression != "a << b" or b < 50 or not a)  # fmt: skip


@pytest.mark.parametrize("expression", [*ARITHMETIC, *ORDER, *BITS, "a ** b", "a and b", "a or b", "~a"])
def test_truth_values(load, wide, expression):
    same(load, expression, TRUTHS, kind="u1", result="f64")


@pytest.mark.parametrize(
    "expression", ["a * b", "a + b", "a // b", "a % b", "a < b", "min(a, b)", "max(a, b)", "a / b"]
)
def test_floats_with_integers(load, wide, expression):
    same(load, expression, FLOATS, second=INTEGERS, other="i64")


def test_powers(load, wide):
    same(load, "a ** b", FLOATS, second=[*INTEGERS, -1074, -1024, 1023, -3, 2**40, -(2**40)], other="i64")
    same(
        load,
        "pow(a, b)",
        INTEGERS,
        second=[0, 1, 2, 3, 7],
        kind="i64",
        result="i64",
        keep=lambda a, b: abs(a**b) < 2**63,
    )
    for n in (-1, -3, -64, -65, -200):
        same(load, f"a ** {n}", INTEGERS, second=[0], kind="i64")
    for n in (0, 2, 5, 7, 64, 65, 100, -2, -7, -65, -1074):
        same(load, f"a ** {n}", FLOATS, second=[0.0])


@pytest.mark.parametrize("group", [UNARY, ROUNDINGS], ids=["unary", "roundings"])
def test_functions_of_one_number(load, wide, group):
    for expression in group:
        same(load, expression, [x for x in FLOATS if abs(x) < 200 or "i32" not in expression], second=[0.0])
        if group is UNARY:
            values = [n for n in INTEGERS if 0 <= n < 128]
            same(load, expression, values, second=[0], kind="i64")


@pytest.mark.parametrize("expression", TWO_FLOATS)
def test_functions_of_two_numbers(load, wide, expression):
    same(load, expression, FEW)


@pytest.mark.parametrize("part", range(4))
def test_the_math_library(load, wide, part):
    for expression in LIBRARY[part::4]:
        same(load, expression, [0.0, -0.0, 0.3, -2.5, math.inf, math.nan], second=[0.0])


@qp.kernel
def returned() -> tuple[qp.f64, qp.u8, qp.i64, qp.f32]:
    return 0.1, 200, 2**40, 2**60 + 2**36 + 1


@qp.func
def in_a_function() -> qp.f64:
    return 0.1


@qp.func
def on_two_paths(c, x: qp.f64) -> qp.f64:
    if c:
        return 0.1
    return x


@qp.func
def without_annotation(c, x: qp.f64):
    if c:
        return 0.1
    return x


@qp.func
def several() -> tuple[qp.f64, qp.types.vector(2, qp.f64)]:
    return 0.1, [0.2, 0.3]


@qp.kernel
def from_functions(c: qp.i32) -> tuple[qp.f64, qp.f64, qp.f64]:
    return in_a_function(), on_two_paths(c, 0.7), without_annotation(c, 0.7)


@qp.kernel
def from_annotations() -> tuple[qp.f64, qp.f64]:
    a, v = several()
    return a, v[1]


@qp.kernel
def matrices(out: qp.types.ndarray(qp.f64, 1), x: qp.f64):
    a = qp.Matrix([[0.1, 0.2], [0.3, 0.4]], dt=qp.f64)
    b = qp.Matrix([[0.1, x], [0.2, 0.3]])
    out[0], out[1], out[2], out[3] = a[0, 0], a[1, 1], b[0, 0], b[1, 1]
    out[4] = qp.f64([0.1, 0.2])[0]
    out[5] = qp.types.vector(2, qp.f64)(0.1, 0.2)[1]


def test_a_literal_is_rounded_once_to_the_type_that_it_meets():
    assert returned() == (0.1, 200, 2**40, float(np.array(2**60 + 2**36 + 2**30).astype(np.float32)))
    assert from_functions(1) == (0.1, 0.1, 0.1)
    assert from_functions(0) == (0.1, 0.7, 0.7)
    assert from_annotations() == (0.1, 0.3)
    out = np.zeros(6)
    matrices(out, 0.5)
    assert out.tolist() == [0.1, 0.4, 0.1, 0.3, 0.1, 0.2]


@qp.kernel
def shifts(x: qp.i8, y: qp.u8, z: qp.i32) -> tuple[qp.i8, qp.i8, qp.u8, qp.i32, qp.i32, qp.i32]:
    return x << 300, x >> 300, y << -1, z << 2**40, z >> -1, 1 << z


@pytest.mark.parametrize("expression", ["a ** b", "qp.pow(a, b)", "pow(a, b)"])
def test_powers_without_a_real_result_or_out_of_range(load, expression):
    """Whatever the default float is: f32 would hold neither the base nor the result."""
    same(load, expression, [-1e300, -1.5, -1e-300, 0.0, -0.0, 1e300, 1e-300, 1.000000000001, -2.0],
         second=[-7.25, 7.25, 1e-30, 1e30, -1e30, -3.0, 301.0, math.inf, -math.inf],
         keep=lambda a, b: not 1e-310 < power_of(a, b) < 1e300)  # fmt: skip


def power_of(a, b):
    try:
        return abs(math.pow(a, b))
    except (ValueError, OverflowError):
        return math.inf


def test_powers_of_literals_that_no_float_can_hold(load):
    module = load("""
@qp.kernel
def run() -> qp.f64:
    return (10 ** 400) ** 0.5
""")
    with pytest.raises(qp.KernelValueError, match="no type can hold this literal"):
        module.run()


def test_a_literal_shifts_everything_out_by_a_count_that_the_type_cannot_hold():
    assert shifts(-3, 7, -5) == (0, -1, 0, 0, -1, 0)


@qp.kernel
def integer_powers(b: qp.u32, e: qp.u64, i: qp.i32, n: qp.i32, x: qp.f64, m: qp.i64) -> tuple[qp.u32, qp.i32, qp.f64]:
    return b**e, i**n, x**m


def test_powers_with_exponents_of_all_sizes():
    for b, e in ((3, 2**63 + 5), (7, 2**64 - 1), (0, 0), (0, 9), (2, 31), (2, 32)):
        assert integer_powers(b, e, 1, 1, 1.0, 1)[0] == pow(b, e, 2**32)
    for i, n, want in (
        (65537, -65536, 0),
        (-1, -3, -1),
        (1, -(2**31), 1),
        (0, -1, 0),
        (2, -1, 0),
        (-2, 31, -(2**31)),
        (-1, -2, 1),
    ):
        assert integer_powers(1, 1, i, n, 1.0, 1)[1] == want
    for x, m, want in ((2.0, -(2**63), 0.0), (2.0, -1074, 5e-324), (2.0, -1024, 2.0**-1024), (-0.5, 1073, -(2.0**-1073)),
                       (-2.0, -1073, -(2.0**-1073)), (10.0, -3, 0.001), (-0.0, -3, -math.inf), (math.inf, -2, 0.0),
                       (-1.0, -(2**63), 1.0), (1e200, -2, 0.0), (1e160, -2, 1e-320)):  # fmt: skip
        assert integer_powers(1, 1, 1, 1, x, m)[2] == want
