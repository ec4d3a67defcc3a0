"""Random expressions over scalars of random types: a kernel computes what NumPy computes, bit for bit."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import HealthCheck, given, settings, strategies as st

from quadpy.core.dtypes import BY_NAME

TYPES = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"]
NUMPY = {t: np.dtype(("float" if t[0] == "f" else "int" if t[0] == "i" else "uint") + t[1:]) for t in TYPES}
N = 8


def meet(a: str, b: str) -> str:
    """The language's rule for two operands."""
    if (a[0] == "f") != (b[0] == "f"):
        return a if a[0] == "f" else b
    wide = max(int(a[1:]), int(b[1:]))
    kinds = {t[0] for t in (a, b) if int(t[1:]) == wide}
    return ("f" if "f" in kinds else "u" if "u" in kinds else "i") + str(wide)


class Node:
    """Text of an expression, its type, and its values for the N rows of the inputs."""

    def __init__(self, text, type, values):
        self.text, self.type, self.values = text, type, values

    def to(self, type):
        return self.values.astype(NUMPY[type])


def extreme(op, x, y):
    """IEEE 754-2019 minimumNumber and maximumNumber; NumPy leaves open which of two zeros it gives."""
    values = np.fmin(x, y) if op == "min" else np.fmax(x, y)
    first = np.signbit(x) == (op == "min") if x.dtype.kind == "f" else True
    return np.where((x == 0) & (y == 0), np.where(first, x, y), values)


def binary(op, a, b):
    type = meet(a.type, b.type)
    if op in "&|^" and type[0] == "f":
        op = "+"
    if op == "/" and type[0] != "f":
        type = "f32"
    x, y = a.to(type), b.to(type)
    with np.errstate(all="ignore"):
        match op:
            case "//" | "%":
                values = np.floor_divide(x, y) if op == "//" else np.remainder(x, y)
            case "min" | "max":
                values = extreme(op, x, y)
            case _:
                values = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "&": np.bitwise_and,
                          "|": np.bitwise_or, "^": np.bitwise_xor}[op](x, y)  # fmt: skip
    text = f"{op}({a.text}, {b.text})" if op in ("min", "max") else f"({a.text} {op} {b.text})"
    return Node(text, type, values.astype(NUMPY[type]))


def choose(op, a, b, c, d):
    meeting, type = meet(a.type, b.type), meet(c.type, d.type)
    x, y = a.to(meeting), b.to(meeting)
    hit = {"<": x < y, "==": x == y, ">=": x >= y}[op]
    return Node(f"({c.text} if {a.text} {op} {b.text} else {d.text})", type, np.where(hit, c.to(type), d.to(type)))


def shift(op, a, count):
    if a.type[0] == "f":
        return a
    inside = count < int(a.type[1:])
    x = a.values
    if op == "<<":
        values = x << np.array(count, x.dtype) if inside else np.zeros_like(x)
    else:
        values = x >> np.array(min(count, int(a.type[1:]) - 1), x.dtype)
        values = values if inside or a.type[0] == "i" else np.zeros_like(x)
    return Node(f"({a.text} {op} {count})", a.type, values)


def negate(a):
    return Node(f"(-{a.text})", a.type, -a.values)


def cast(a, type):
    if a.type[0] == "f" and type[0] != "f":
        return a  # saturation has tests of its own
    with np.errstate(all="ignore"):
        return Node(f"qp.{type}({a.text})", type, a.to(type))


def leaves(inputs):
    literals = st.one_of(
        st.integers(0, 100).map(lambda v: Node(f"({v})", "i32", np.full(N, v, np.int32))),
        st.sampled_from([0.5, -1.25, 3.0, 0.1]).map(
            lambda v: Node(f"({v})", "f32", np.full(N, v))
        ),  # exact until it meets an input
    )
    # An expression of literals alone is folded as Python does it: here each one meets an input first.
    anchored = st.builds(binary, st.sampled_from(["+", "*", "-"]), st.sampled_from(inputs), literals)
    return st.one_of(st.sampled_from(inputs), anchored)


def trees(children):
    simple = st.sampled_from(["+", "-", "*", "/", "&", "|", "^", "min", "max"])
    return st.one_of(
        st.builds(binary, simple, children, children),
        st.builds(choose, st.sampled_from(["<", "==", ">="]), children, children, children, children),
        st.builds(shift, st.sampled_from(["<<", ">>"]), children, st.integers(0, 70)),
        st.builds(negate, children),
        st.builds(cast, children, st.sampled_from(TYPES)),
    )


def columns():
    """One input of each type, with the edges of its range among its values."""
    rng = np.random.default_rng(3)
    for name in TYPES:
        t = BY_NAME[name]
        if t.is_float:
            values = np.array([0.0, 1.5, -2.25, 1e3, -0.1, 7e-3, -65.0, 12.0])
        else:
            values = rng.integers(t.min_int, t.max_int, N, NUMPY[name], endpoint=True)
            values[:4] = t.min_int, t.max_int, 0, 1
        yield Node(f"{name}[i]", name, values.astype(NUMPY[name]))


INPUTS = list(columns())
EXAMPLES = 5 if "ROCJITSU_RUNTIME_DIR" in os.environ else 40  # an emulator is slow at it


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.recursive(leaves(INPUTS), trees, max_leaves=10), min_size=12, max_size=12))
def test_expressions(load, nodes):
    params = ", ".join(f"{t}: qp.types.ndarray(qp.{t}, 1)" for t in TYPES)
    results = ", ".join(f"r{k}: qp.types.ndarray(qp.{n.type}, 1)" for k, n in enumerate(nodes))
    body = "".join(f"        r{k}[i] = {n.text}\n" for k, n in enumerate(nodes))
    module = load(f"@qp.kernel\ndef kernel({params}, {results}):\n    for i in range({N}):\n{body}")
    outputs = [np.zeros(N, NUMPY[n.type]) for n in nodes]
    module.kernel(*(column.values for column in INPUTS), *outputs)
    for node, got in zip(nodes, outputs, strict=True):
        same = (got == node.values) | (np.isnan(got) & np.isnan(node.values))
        assert same.all(), f"{node.text}: {got[~same]}, not {node.values[~same]}"
