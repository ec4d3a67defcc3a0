"""Tuples, lists and dicts that hold run-time values: Python's results, or an error; never what the compiler has."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp
from quadpy.ir import nodes

EXPRESSIONS = [
    "(i, 1) == (n, 1)", "(i, 1) != (n, 1)", "[i, n] == [2, 2]", "(i, n) == (n, i)", "(i, n) == [n, i]", "(i,) == (n, 1)",
    "((i, 1), n) == ((n, 1), i)", "(i, (n, 2)) != (2, (2, 2))", "(i, 1) < (n, 0)", "(i, 1) <= (n, 1)", "(n, i) > (2, 1)",
    "(n, i, 0) >= (n, i)", "[n, i] < [n, i, 1]", "(i,) < ()", "() < (i,)", "(1, i) < (2, n)", "(i, 'a') == (n, 'a')",
    "(i, None) == (2, None)", "2 in (i, n)", "i in (0, 3)", "i not in [1, n]", "i in ()", "i in {1: 0, 3: 0}",
    "(i, 1) in ((0, 1), (n, 1))", "i in [k * k for k in range(3)]", "not (i, n)", "not []", "bool(i) and (i, n) == (2, 2)",
    "x.shape == (4, 3)", "x.shape != (4, 3)", "x.shape == y.shape", "x.shape[0] in (3, 4)", "x.shape < y.shape",
    "x.shape == y.shape == (4, 3)", "any([i > 1, n > 5])", "all((i > 1, n > 1, True))", "any([])", "all([i >= 0])",
    "any((False, i == 1))", "max((i, n)) == 2", "min([i, n, 1]) == 1", "sum([i, n]) == 3", "sum((i, n), 10) == 12",
    "len((i, n)) == 2", "i is None", "(i, n) is None", "x is not None", "(i, n)[-1] == 2", "{'a': i}['a'] == 1",
    "{**{'a': 5}, 'b': i}['a'] == 5", "{**{'a': 5}, 'a': i}['a'] == 1", "{(1, 2): 7}[1, 2] == 7", "len({**{1: 2}, **{3: i}}) == 2",
    "isinstance((i, n), tuple)", "hasattr(x, 'shape')", "hasattr(x, 'nothing')", "getattr(x, 'shape')[0] == 4",
    "(i, n) + (3,) == (1, 2, 3)", "(i,) * 2 == (1, 1)", "[*(i, n)] == [1, 2]", "list(zip((i, n), (1, 2)))[0][0] == 1",
    "list(enumerate([i, n]))[1] == (1, 2)", "list(reversed((i, n)))[0] == 2", "len(f'{3:03d}') == 3", "len(f'{2.5:.3f}') == 5",
    "len(f'{\"a\"!r}') == 3", "f'{7:>{3}}' == '  7'", "len('%s' % 3) == 1",
]  # fmt: skip
ERRORS = {
    "a set": "len(set((i, n)))", "text": "len(str((i,)))", "an f-string": "len(f'{(i, n)}')", "a sorted list": "sorted((i, n))[0]",
    "text with %": "len('%s' % (i, n))", "a number's type": "isinstance(i, int)", "an array's type": "isinstance(x, tuple)",
    "an array as text": "len(str(x))", "an array as a condition": "1 if x else 0", "not of an array": "not x",
    "arrays": "x == y", "arrays by identity": "x is y", "numbers by identity": "i is n", "an array in a tuple": "x in (x, y)",
    "a run-time key": "len({i: 1})", "an item at run time": "(1, 2)[i]", "a number in an array": "i in x", "a number in text": "i in 'abc'",
    "a number in a range": "i in range(3)", "a number in a number": "3 in 5", "an array in an f-string": "len(f'{x}')",
    "vectors in tuples": "(qp.Vector([i, 1]), 1) == (qp.Vector([n, 1]), 1)", "an index of a tuple": "(i, n).index(2)",
    "a count": "(i, n).count(2)", "a tuple with a number": "(i, n) == 3", "the order of a list and a tuple": "(i,) < [n]",
    "a type": "type(i) == type(n)", "entries of no dict": "len({**(1, 2)})", "a bad format": "len(f'{3:q}')", "items of a number": "max(*i)",
    "a tuple in a condition of vectors": "1 if qp.Vector([i, n]) else 0", "a static condition": "qp.static((i, n) == (1, 2))",
}  # fmt: skip
TEXT = """
@qp.kernel
def kernel(out: qp.types.ndarray(qp.i32, 2), n: qp.i32, x: qp.types.ndarray(qp.f32, 2), y: qp.types.ndarray(qp.f32, 2)):
    for i in range(out.shape[0]):
{body}
"""


def run(load, *lines):
    out, x, y = np.full((4, len(lines)), -1, np.int32), np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32)
    load(TEXT.format(body="\n".join(f"        {line}" for line in lines))).kernel(out, 2, x, y)
    return out.T.tolist()


@pytest.fixture
def watched(monkeypatch):
    """No rule of the language may compare, hash or print the compiler's own objects: Python would take the result."""
    seen = []

    def watch(kind, name):
        real = getattr(kind, name)

        def look(self, *args):
            if Path(sys._getframe(1).f_code.co_filename).parent.name == "lang":
                seen.append((kind.__name__, name))
            return real(self, *args)

        monkeypatch.setattr(kind, name, look)

    for kind in (nodes.Const, nodes.VarRead, nodes.ParamRead, nodes.ShapeOf, nodes.Binary, nodes.Compare, nodes.Select):
        for name in ("__eq__", "__hash__", "__repr__"):
            watch(kind, name)
    yield
    assert not seen


@pytest.mark.parametrize(
    "form", ["out[i, {k}] = 1 if {text} else 0", "t{k} = {text}; out[i, {k}] = 2 if not t{k} else 1"]
)
def test_containers_compare_as_in_python(load, watched, form):
    x = y = np.zeros((4, 3))
    no = 2 if "not" in form else 0
    want = [[1 if eval(text, {"i": i, "n": 2, "x": x, "y": y}) else no for i in range(4)] for text in EXPRESSIONS]
    got = run(load, *(form.format(k=k, text=text) for k, text in enumerate(EXPRESSIONS)))
    assert dict(zip(EXPRESSIONS, got, strict=True)) == dict(zip(EXPRESSIONS, want, strict=True))


@pytest.mark.parametrize("case", ERRORS)
def test_what_would_look_at_a_run_time_value_at_compile_time_is_an_error(load, watched, case):
    with pytest.raises(qp.CompilationError) as caught:
        run(load, f"out[i, 0] = {ERRORS[case]}")
    assert "^" in str(caught.value)
    assert not any(word in str(caught.value).splitlines()[0] for word in ("VarRead", "ParamRead", "ArrayRef", "Const("))


def test_a_guard_on_shapes_looks_at_the_shapes(load):
    module = load("""
        F = qp.types.ndarray(qp.f32, 2)

        @qp.kernel
        def copy(to: F, source: F):
            for i, j in to:
                if to.shape == source.shape:
                    to[i, j] = source[i, j]
    """)
    for shape, want in (((3, 4), 12), ((4, 3), 0)):
        to = np.zeros((3, 4), np.float32)
        module.copy(to, np.ones(shape, np.float32))
        assert to.sum() == want
