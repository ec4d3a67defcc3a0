"""Programs that are no kernels: each is an error of quadpy's with file, line and text, in a short time.

A table, run in one test for each group: what a line of Python in a kernel may be wrong in.  None may leave the compiler as
one of Python's own exceptions, or be called an internal error.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import quadpy as qp

HEAD = """
import math
F = qp.types.ndarray(dtype=qp.f32, ndim=1)
V3 = qp.types.vector(3, qp.f32)
TABLE = np.arange(4.0)
SCALAR = qp.field(qp.f32, (4, 4))

class Broken:
    __hash__ = None
    def __getattr__(self, name): raise OSError(name)
    def __getitem__(self, key): raise OSError("item")
    def __bool__(self): raise OSError("bool")
    def __eq__(self, other): raise OSError("eq")
    def __len__(self): raise OSError("len")
    def __iter__(self): raise OSError("iter")

class Endless:
    def __getattr__(self, name): return getattr(self, name + "_")

broken, endless = Broken(), Endless()

@qp.func
def f(a, b=2):
    return a + b

@qp.func
def f0(x):
    return x + 1
"""
TREE = "".join(f"\n@qp.func\ndef f{k}(x):\n    return f{k - 1}(x) + f{k - 1}(x + 1)\n" for k in range(1, 25))
CHAIN = "".join(f"\n@qp.func\ndef g{k}(x):\n    return {'f0' if k == 1 else f'g{k - 1}'}(x)\n" for k in range(1, 300))

EXPRESSIONS = {
    "casts": "v.cast(3)|v.cast()|v.cast(qp.f32, 1)|v.cast('x')|qp.cast(o, qp.f32)|qp.cast(1, 2)|qp.f32()|qp.f32('x')|"
    "qp.f32(o)|qp.bit_cast(1.0, qp.i64)|qp.bit_cast(o, qp.i32)|int(o)|int('x')|V3(1, 2)|V3('a')|V3(o)",
    "literals": "10**400|o[i] + 10**400|((2**1000)**1000)**1000|1 << 10**10|qp.f32(10**400)|qp.u8(300)|1j|b'x'|"
    "2**70|0x10000000000000000|pow(2, 10**9)",
    "builtins": "round(o[i], 2)|qp.floor(o[i], 1.5)|qp.sin()|qp.sin(1, 2)|qp.sin(x=1)|qp.sin('x')|qp.sin(o)|qp.atan2(1)|"
    "qp.atan2(v, m)|qp.fma()|qp.fma(1, 2)|qp.copysign(1)|qp.select(1)|qp.select(n, 'a', 'b')|qp.raw_div(1.5, 2)|"
    "qp.raw_div(v, m)|qp.popcnt(1.5)|qp.ffs('x')|qp.zero()|qp.zero(o)|qp.one([1])|qp.random(3)|qp.random('x')|qp.randn(1, 2)|"
    "abs()|abs(o)|max()|max([])|max(o)|max(1, 'a')|min(o[i], 'a')|qp.static(n)|qp.static()|qp.static_assert(0)|"
    "qp.ndrange(3)[0]|qp.grouped()|qp.atomic_add()|qp.atomic_add(1, 2)|qp.atomic_add(o, 1)|qp.atomic_and(o[i], 1)|"
    "qp.atomic_cas(o[i], 1)|qp.nothing|math.nothing|math.sin('x')|np.sin(o[i])|open('x')|eval('1')|k(o, 1)",
    "python": "len()|len(1)|len(o, o)|sum(1)|sum(o)|sorted([n, 1])|list(n)|zip(n)|enumerate(n)|reversed(3)|range('x')|"
    "isinstance(n)|getattr(n, 'x')|3 in 5|3 in o|1 < 'a'|1 < n < 'a'|n < None|n == 'a'|'a' + 1|'abc'[n]|f'{3:zz}'|f'{n:zz}'|"
    "{}['a']|{[1]: 2}|[1][5]|[*3]|[*n]|[*o]|f(*n)|f(**{'q': 1})|f(**3)|f()|f(1, 2, 3)|f(c=1)|f(o)|f(None)|"
    "(lambda: n)(1)|(lambda *a: 1)()|(yield)|{n}|{n for j in (1,)}|{n: 1 for j in (1,)}|{*n}|[j for j in 3]|[j for j in range(n)]|[j for j, k in [1]]|undefined|undefined.x",
    "arrays": "o + 1|1 + o|-o|~o|o == o|o @ o|o()|o.x|o.shape()|o.shape[1]|o.shape[n]|o[0, 0]|o['a']|o[1.5]|o[0:1:2]|o[m]|o[o]|"
    "o[-1]|SCALAR[0]|SCALAR + 1|SCALAR.foo|SCALAR.fill()|TABLE[i]|TABLE[n, n]|TABLE[10]|TABLE['x']|o if o else 1",
    "vectors": "v[3]|v[-4]|v[1.5]|v['x']|v[o[i]]|v[0, 0]|v[None]|v[::0]|v[n:]|m[0, 0, 0]|m[5, 0]|m[0][5]|v.xyzw|v.x.y|"
    "v.norm('x')|v.dot()|v.dot(m)|m.cross(m)|v.transpose()|v.inverse()|v.foo()|v()|v + m|v @ 1|m @ v|v and 1|1 if v else 2|"
    "qp.Vector()|qp.Vector(3)|qp.Vector([])|qp.Vector(['a'])|qp.Vector([1, 2], 3)|qp.Vector([[1, 2], [3]])|qp.Matrix([[]])|"
    "qp.Vector([v, 1])|qp.types.vector(0, qp.f32)|qp.Matrix.zero(qp.f32, n)",
    "work without end": "sum(range(10**10))|qp.static(sum(range(10**10)))|[0] * 10**9|'a' * 10**10|list(range(10**12))|"
    "sorted(range(10**10))|max(range(10**10))|[j for j in range(10**10)]|[[0] * 10**5] * 10**6|dict(zip(range(10**9), range(10**9)))|"
    "qp.Matrix.zero(qp.f32, 10**5, 10**5)|5 in range(10**30)[:3] * 2|f24(o[i])|len(range(10**30))",
    "depth": f"{'1.0 if n > 1 else ' * 900}0.0|g299(o[i])|endless.x|{'-' * 950}o[i]",
    "python of the user's": "broken.x|broken[0]|broken == 1|broken + 1|not broken|len(broken)|[j for j in broken]|1 in broken|broken()",
}  # fmt: skip
STATEMENTS = {
    "assignments": "o[i] = o|o[i] = v|o[i] = 'a'|v[5] = 1|v[0] = 'a'|v.xx = 1 if n else 'a'|v.foo = 1|m[0] = V3(1)|n[0] = 1|"
    "n.x = 1|f.x = 1|TABLE[0] = 1|a, b = 1|a, b = v|a, b = 1, 2, 3|a, *b = n|a, b, *c = (1,)|a: 3 = 1|a: qp.f32|o[i] += 'a'|o[i] += v|"
    "n += 'a'|z += 1|v += m|v @= m|f += 1|del o|n = 1.5; n = V3(1)",
    "statements": "break|raise ValueError|import os|global n2|with o: pass|with open('x') as f2: pass|def g(): pass|class D: pass|"
    "if v: pass|if broken: pass|while 'a' < n: pass|assert 0|return 1|qp.loop_config(3)|qp.loop_config(x=3)|try: pass\nfinally: pass",
    "loops": "for j in 3: pass|for j in n: pass|for j, k in SCALAR, 1: pass|for j in qp.grouped(3): pass|for j in qp.ndrange('a'): pass|"
    "for j in range(1.5): pass|for j in range('a'): pass|for j in range(0, 5, 0): pass|for j in range(10**30): pass|"
    "for j in range(n, step=2): pass|for j in qp.static(range(10**9)): pass|for j in qp.static(3): pass|for j in None: pass|"
    "for j in qp.static(qp.ndrange(10**5, 10**5)): pass|for j in qp.static(zip(range(10**10), range(10**10))): pass|for o in range(3): pass|"
    "for j in zip(range(10**10)): pass|for j, k in qp.static([1, 2]): pass|for j in f: pass",
    "work": "x = [0]\nfor j in qp.static(range(60)): x = x + x|x = 'a'\nfor j in qp.static(range(60)): x = x + x|"
    "for j in qp.static(range(10**5)):\n    for l in qp.static(range(10**5)): o[i] += 1",
}  # fmt: skip


def kernels():
    for group, table in (EXPRESSIONS | STATEMENTS).items():
        for text in table.split("|"):
            yield group, text, ("y = " if group in EXPRESSIONS else "") + text


@pytest.mark.timeout(120)
@pytest.mark.parametrize("group", [*EXPRESSIONS, *STATEMENTS])
def test_each_is_an_error_with_its_line(load, group):
    bodies = [body for of, _, body in kernels() if of == group]
    text = HEAD + (TREE + CHAIN if group in ("depth", "work without end") else "")
    for number, body in enumerate(bodies):
        lines = "\n".join(f"        {line}" for line in body.replace("; ", "\n").split("\n"))
        text += f"""
@qp.kernel
def k{number}(o: F, n: qp.i32):
    for i in o:
        v = V3(1.0, 2.0, 3.0)
        m = qp.Matrix([[1.0, 2.0], [3.0, o[i]]])
{lines.replace(" k(o", f" k{number}(o")}
"""
    module, wrong = load(text), []
    for number, body in enumerate(bodies):
        kernel, began = getattr(module, f"k{number}"), time.monotonic()
        try:
            kernel(np.ones(4, np.float32), 3)
        except qp.CompilationError as error:
            if error.span is None or not error.message or "internal error" in error.message:
                wrong.append((body[:80], str(error)[:300]))
        except Exception as error:  # noqa: BLE001 - any other is what the test looks for
            wrong.append((body[:80], f"{type(error).__name__}: {error}"[:300]))
        else:
            wrong.append((body[:80], "compiled and ran"))
        if time.monotonic() - began > 30:
            wrong.append((body[:80], "took long"))
    assert not wrong, "\n".join(map(str, wrong))


def test_what_a_users_object_raises_is_named(load):
    """Also where the exception is one that arithmetic of literals raises."""
    kernel = load("""
        class Broken:
            def __eq__(self, other): raise ZeroDivisionError("my own")

        broken = Broken()

        @qp.kernel
        def k(o: qp.types.ndarray(qp.f32, 1)):
            o[0] = broken == 1
    """).k
    with pytest.raises(qp.CompilationError, match=r"raised ZeroDivisionError: my own"):
        kernel(np.ones(4, np.float32))


def test_a_limit_says_how_to_raise_it(load):
    kernel = load("""
        @qp.kernel
        def k():
            for j in qp.static(range(10**9)):
                pass
    """).k
    with pytest.raises(qp.KernelValueError, match=r"more than the limit of 500,000 steps") as caught:
        kernel()
    assert "QUADPY_COMPILE_STEPS=5000000 raises the limit" in caught.value.hint


def test_long_sums_are_no_limit(load):
    kernel = load(f"""
        @qp.kernel
        def k(x: qp.types.ndarray(dtype=qp.f64, ndim=1)):
            for i in x:
                x[i] = {" + ".join(["x[i]"] * 900)} - ({" * ".join(["1.0"] * 900)})
    """).k
    found = np.array([2.0])
    kernel(found)
    assert found[0] == 1799.0


def test_a_sum_to_two_decimals_is_answered_with_a_way(load):
    kernel = load("""
        @qp.kernel
        def k(x: qp.f32) -> qp.f32:
            return round(x, 2)
    """).k
    with pytest.raises(qp.KernelTypeError, match="number of digits") as caught:
        kernel(1.0)
    assert caught.value.hint


def test_components_are_cast_to_pythons_own_types(load):
    kernel = load("""
        @qp.kernel
        def k(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            v = qp.Vector([1.75, 2.5])
            for i in x:
                w = v.cast(int)
                x[i] = w[0] + w.cast(float)[1] / 4
    """).k
    found = np.zeros(1, np.float32)
    kernel(found)
    assert found[0] == 1.5


@pytest.mark.parametrize(
    "wrong", ["qp.func(qp.func(g))", "qp.func(len)", "qp.func(qp.kernel(g))", "qp.kernel(qp.func(g))"]
)
def test_what_is_no_function_cannot_be_decorated(load, wrong):
    with pytest.raises(qp.KernelSourceError):
        load(f"""
            def g(a):
                return a
            h = {wrong}
        """)


@pytest.mark.parametrize("annotation", ["[1]", "{}", "'qp.f33'", "'1/0'", "'x y'", "list", "complex", "qp.template"])
def test_wrong_annotations_are_errors_of_the_kernel(load, annotation):
    kernel = load(f"""
        @qp.kernel
        def k(x: {annotation}):
            pass
    """).k
    with pytest.raises(qp.KernelTypeError) as caught:
        kernel(1)
    assert caught.value.span.line == kernel.source.span.line + 1
    assert caught.value.span.excerpt().splitlines()[1].index("^") == len("    def k(")
