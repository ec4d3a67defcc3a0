"""``@qp.real_func``: compiled once and called, on every target; the same results as a ``@qp.func``.

Small functions are inlined; all but the tests of that call them, whatever their size.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.objects.metadata import read_metadata
from quadpy.core.target import parse_target
from quadpy.ir.printer import print_ir
from quadpy.jit.offline import compile_with_asm, trace_for


@pytest.fixture(autouse=True)
def always_called(request, monkeypatch):
    if "small_inlined" not in request.fixturenames:
        monkeypatch.setattr("quadpy.codegen.plans.inlining.CALLED_LINES", -1)


@pytest.fixture
def small_inlined():
    """For tests of the limit itself."""


FUNCTIONS = """
F = qp.types.ndarray(qp.f64, 1)
FIELD = qp.field(qp.f64, 4)
P = qp.types.struct(a=qp.f64, v=qp.types.vector(2, qp.f64))

@MARK
def collatz(n: qp.i32) -> qp.i32:
    count = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
        if count > 100:
            return -1
    return count

@MARK
def several(x: qp.f64, v: qp.types.vector(2, qp.f64), scale: qp.f64 = 2.0):
    if x > 2:
        return v * x, qp.sin(x) * scale
    for i in range(5):
        if i > x:
            return v + i, 1.0
    return v + collatz(qp.i32(x) + 5), 0.0

@MARK
def matrix(x: qp.f64) -> qp.types.matrix(2, 2, qp.f64):
    m = qp.Matrix([[x, 1.0], [0.0, 2.0]])
    m[1, 0] = m.determinant()
    return m @ m

@MARK
def struct(p: P) -> P:
    p.a += p.v.sum()
    return p

@MARK
def generic(x):
    return x * x

@MARK
def powers(x: qp.f64, n: qp.template()):
    y = x
    for _ in qp.static(range(n)):
        y *= x
    return y

@MARK
def applied(f: qp.template(), x: qp.f64):
    return f(x) + f(x + 1)

@MARK
def element(x, i):
    return x[i] * 2

@MARK
def of_field(i: qp.i32) -> qp.f64:
    return FIELD[i] + 1

@MARK
def add_to(a: qp.template(), b: qp.f64):
    a += b

@MARK
def noise(x: qp.f64) -> qp.f64:
    return x + 0 * qp.random()

@MARK
def nothing(x: qp.f64):
    y = x

@MARK
def constants(x: qp.f64):
    return (x, 3), qp.Vector([1.0, x])
"""
BODIES = {
    "loops and returns": ("x[i] = collatz(i + 1)", True),
    "several results": ("v, s = several(x[i], qp.Vector([1.0, i]))\nx[i] = v[0] + 10 * v[1] + s", True),
    "arguments by name": ("v, s = several(v=[1, 2], x=i, scale=0.5)\nx[i] = s + v.sum()", True),
    "a matrix": ("m = matrix(x[i])\nx[i] = m.sum() + m[1, 0]", True),
    "a struct": ("p = P(x[i], qp.Vector([1.0, 2.0]))\nq = struct(p)\nx[i] = q.a * 100 + p.a", True),
    "types": ("x[i] = generic(i) + generic(x[i]) + generic(qp.Vector([1.0, 2.0])).sum() + generic(3)", True),
    "templates": ("x[i] = powers(x[i], 2) + powers(x[i], 3)", True),
    "functions": ("x[i] = applied(generic, x[i]) + applied(lambda a: a - 1, x[i])", True),
    "nested results": ("(a, b), v = constants(x[i])\nx[i] = a + b + v.sum()", True),
    "calls in calls": ("x[i] = generic(generic(collatz(collatz(i + 1) + 1)))", True),
    "a call in a condition": ("if collatz(i + 1) > 1 and collatz(i + 2) > 0: x[i] = generic(x[i]) if x[i] > 1 else generic(2.0)", True),
    "an array": ("x[i] = element(x, i)", False),
    "a field": ("FIELD[i] = i\nx[i] = of_field(i)", False),
    "a reference": ("y = 1.0\nadd_to(y, x[i])\nadd_to(x[i], y)", False),
    "random numbers": ("x[i] = noise(x[i])", False),
    "no result": ("nothing(x[i])", False),
}  # fmt: skip


def kernel_of(load, mark, body):
    lines = "\n".join("        " + line for line in body.splitlines())
    return load(
        f"{FUNCTIONS.replace('@MARK', mark)}\n@qp.kernel\ndef kernel(x: F):\n    for i in range(x.shape[0]):\n{lines}\n"
    ).kernel


@pytest.mark.parametrize("case", BODIES)
def test_the_same_bits_as_inlined(load, case):
    body, _ = BODIES[case]
    results = []
    for mark in ("@qp.func", "@qp.real_func"):
        x = np.linspace(-1, 4, 4)
        kernel_of(load, mark, body)(x)
        results.append(x.tobytes())
    assert results[0] == results[1]


CALL = {
    "cpu": r"callq?\s+\S*fn\.",
    "gfx942": r"s_swappc_b64",
    "gfx90a": r"s_swappc_b64",
    "gfx1100": r"s_swappc_b64",
    "gfx1201": r"s_swappc_b64",
    "sm_80": r"call\.uni",
    "sm_90": r"call\.uni",
}


@pytest.mark.parametrize("target", CALL)
@pytest.mark.parametrize("case", ["loops and returns", "several results", "a struct", "functions"])
def test_the_code_has_calls(load, case, target):
    body, _ = BODIES[case]
    kernel = kernel_of(load, "@qp.real_func", body)
    asm = compile_with_asm(kernel, parse_target(target), {}).asm
    assert re.search(CALL[target], asm), asm[-2000:]
    inlined = compile_with_asm(kernel_of(load, "@qp.func", body), parse_target(target), {}).asm
    assert not re.search(CALL[target], inlined)


@pytest.mark.parametrize("target", ["cpu", "gfx942", "sm_90"])
def test_a_small_function_is_inlined_and_many_calls_stay_calls(load, small_inlined, target):
    """A call of a small function costs more than what the function does; inlining many costs the compiler."""
    few, many = (
        kernel_of(load, "@qp.real_func", f"for k in qp.static(range({count})): x[i] += collatz(qp.i32(x[i]) + k)")
        for count in (2, 100)
    )
    assert not re.search(CALL[target], compile_with_asm(few, parse_target(target), {}).asm)
    assert re.search(CALL[target], compile_with_asm(many, parse_target(target), {}).asm)


@pytest.mark.parametrize("mark", ["@qp.func", "@qp.real_func"])
def test_fast_math_reaches_called_functions(load, init, mark):
    """A quotient by a constant is a product there, as in the kernel itself."""
    module = load(f"""
        {mark}
        def third(x: qp.f32) -> qp.f32:
            return x / 3.0

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.f32, 1)):
            for i in x:
                x[i] = third(x[i]) + third(x[i] + 1)
    """)
    divides = []
    for fast_math in (False, True):
        init(fast_math=fast_math)
        divides.append("div" in compile_with_asm(module.kernel, parse_target("cpu"), {}).asm)
    assert divides == [True, False]


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_a_kernel_with_calls_has_a_stack_of_known_size(load, target):
    """LLVM takes functions for recursive that call others until they are inlined; no function of the language is."""
    text = """
        @qp.real_func
        def angle(x: qp.f64):
            return qp.tan(x) + x ** 0.3
    """
    kernel = load(f"""{textwrap.dedent(text)}
@qp.kernel
def kernel(x: qp.types.ndarray(dtype=qp.f64, ndim=1)):
    for i in x:
        x[i] = angle(x[i])
""").kernel
    (info,) = read_metadata(compile_with_asm(kernel, parse_target(target), {}).image).kernels
    assert not info.dynamic_stack


@pytest.mark.parametrize("target", CALL)
def test_every_kind_of_function_compiles(load, target):
    for body, _ in BODIES.values():
        assert kernel_of(load, "@qp.real_func", body).compile(target).image


def test_a_function_is_compiled_once_however_often_it_is_called(load):
    text = FUNCTIONS.replace("@MARK", "@qp.real_func")
    lines = "".join(f"        x[i] += collatz(qp.i32(x[i]) + {k})\n" for k in range(300))
    kernel = load(f"{text}\n@qp.kernel\ndef kernel(x: F):\n    for i in range(x.shape[0]):\n{lines}").kernel
    traced = trace_for(kernel, {}, parse_target("cpu"))
    assert [function.is_called for function in traced.kernel.functions] == [True]
    x = np.zeros(3)
    kernel(x)
    assert (x == x[0]).all()


def test_functions_that_are_called_are_told_from_inlined_ones_in_the_ir(load):
    body = BODIES["loops and returns"][0]
    texts = [
        print_ir(trace_for(kernel_of(load, mark, body), {}, parse_target("cpu")).kernel)
        for mark in ("@qp.func", "@qp.real_func")
    ]
    assert "called function @collatz." in texts[1]
    assert "called function" not in texts[0]


def test_static_prints_print_once(load, capsys):
    module = load("""
        @qp.real_func
        def called(x: qp.f64) -> qp.f64:
            qp.static_print("called")
            return x

        @qp.real_func
        def in_place(x: qp.template(), i: qp.i32):
            qp.static_print("in place")
            return x[i]

        @qp.real_func
        def random(x: qp.f64) -> qp.f64:
            qp.static_print("random")
            return x + qp.random() * 0

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.f64, 1)):
            for i in x:
                x[i] = called(1.0) + called(2.0) + in_place(x, i) + random(3.0)
            qp.static_print("end")
    """)
    module.kernel(np.zeros(3))
    assert capsys.readouterr().out.splitlines() == ["called", "in place", "random", "end"]


@pytest.mark.parametrize("debug", [False, True])
def test_checks_inside_are_kept(load, init, debug):
    """Under ``debug=True`` a function with checks is traced in place."""
    module = load("""
        @qp.real_func
        def f(x: qp.i32) -> qp.i32:
            assert x < 3, "too large"
            return x + 1

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.i32, 1)):
            for i in x:
                x[i] = f(x[i])
    """)
    init(debug=debug)
    x = np.array([1, 2, 5], np.int32)
    if debug:
        with pytest.raises(qp.KernelAssertionError, match="too large"):
            module.kernel(x)
    else:
        module.kernel(x)
        assert x.tolist() == [2, 3, 6]


def test_recursion_stays_an_error(load):
    module = load("""
        @qp.real_func
        def even(n: qp.i32) -> qp.i32:
            return 1 if n == 0 else odd(n - 1)

        @qp.real_func
        def odd(n: qp.i32) -> qp.i32:
            return 0 if n == 0 else even(n - 1)

        @qp.kernel
        def kernel(n: qp.i32) -> qp.i32:
            return even(n)
    """)
    with pytest.raises(qp.KernelSyntaxError, match="even calls itself more than 32 times") as caught:
        module.kernel(3)
    assert [name for name, _ in caught.value.calls][:3] == ["odd", "even", "odd"]
    assert "qp.static(n > 0)" in caught.value.hint


def test_an_error_in_a_called_function_shows_both_lines(load):
    module = load("""
        @qp.real_func
        def f(x: qp.f32) -> qp.f32:
            return x.nothing

        @qp.kernel
        def kernel(x: qp.f32) -> qp.f32:
            return f(x)
    """)
    with pytest.raises(qp.KernelTypeError, match="no attribute 'nothing'") as caught:
        module.kernel(1.0)
    assert caught.value.span.line == 6
    assert [(name, where.line) for name, where in caught.value.calls] == [("f", 10)]


@pytest.mark.parametrize("call", ["f()", "f(1, 2)", "f(y=1)", "f('a')", "f(x)"])
def test_wrong_arguments(load, call):
    module = load(f"""
        @qp.real_func
        def f(a: qp.f32) -> qp.f32:
            return a

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.f32, 1)):
            for i in x:
                x[i] = {call}
    """)
    with pytest.raises(qp.KernelTypeError) as caught:
        module.kernel(np.zeros(1, np.float32))
    assert caught.value.span.line == 11


def test_arguments_that_hold_values_of_the_caller(load):
    """Names of the caller are not those of the function, even where they are alike."""
    module = load("""
        P = qp.types.struct(a=qp.f64)

        @qp.dataclass
        class Scale:
            a: qp.f64

            @qp.func
            def apply(self, x):
                return self.a * x

        @qp.real_func
        def applied(f: qp.template(), x: qp.f64):
            y = 100.0
            n = y + x
            return f(n) + y

        @qp.real_func
        def total(items, n: qp.f64):
            return sum(items) + n

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.f64, 1), n: qp.f64):
            for i in x:
                y = x[i] + 1
                fs = [lambda a: a + y, lambda a: a * n]
                x[i] = applied(lambda a: a + y + n, x[i]) + applied(Scale(y).apply, n) + total([y, n, 3], y)
                x[i] += applied(fs[0], 0.0) + applied(fs[1], 0.0) + total((y,), 1.0)
    """)

    def inlined(x, n):
        y = x + 1
        applied = lambda f, a: f(100.0 + a) + 100.0  # noqa: E731
        result = applied(lambda a: a + y + n, x) + applied(lambda a: a * y, n) + (y + n + 3) + y
        return result + applied(lambda a: a + y, 0.0) + applied(lambda a: a * n, 0.0) + y + 1.0

    x = np.array([1.0, 2.0])
    module.kernel(x, 5.0)
    assert x.tolist() == [inlined(1.0, 5.0), inlined(2.0, 5.0)]


def test_methods_of_classes_and_structs(load):
    module = load("""
        @qp.dataclass
        class Ball:
            radius: qp.f64

            @qp.real_func
            def volume(self) -> qp.f64:
                return 4.0 * self.radius ** 3

        @qp.data_oriented
        class Model:
            def __init__(self):
                self.scale = 3.0
                self.offset = qp.field(qp.f64, ())

            @qp.real_func
            def scaled(self, x: qp.f64) -> qp.f64:
                return self.scale * x

            @qp.real_func
            def moved(self, x: qp.f64) -> qp.f64:
                return self.offset[None] + x

            @qp.kernel
            def run(self, x: qp.types.ndarray(qp.f64, 1)):
                for i in x:
                    x[i] = self.scaled(x[i]) + self.moved(1.0) + Ball(x[i]).volume()
    """)
    x = np.array([1.0, 2.0])
    model = module.Model()
    model.offset[None] = 10
    model.run(x)
    assert x.tolist() == [3 + 11 + 4, 6 + 11 + 32]


def test_joined_kernels_with_functions_of_one_name(load):
    """A graph of kernels as one launch has the functions of all of them."""
    module = load("""
        F = qp.types.ndarray(qp.f64, 1)

        def make(n):
            @qp.real_func
            def f(x: qp.f64) -> qp.f64:
                y = x
                while y < n:
                    y += n
                return y

            @qp.kernel
            def kernel(x: F):
                for i in x:
                    x[i] = f(x[i])

            return kernel

        first, second = make(3.0), make(50.0)
    """)
    graph = qp.graph.Graph()
    x = qp.ndarray(qp.f64, 4)
    x.fill(1.0)
    graph.add_kernel(module.first, x)
    graph.add_kernel(module.second, x)
    graph.instantiate().launch()
    qp.sync()
    assert x.to_numpy().tolist() == [54.0] * 4


def test_a_changed_function_is_compiled_again_in_another_process(tmp_path):
    program = """
import numpy as np, quadpy as qp

@qp.real_func
def f(x: qp.f64) -> qp.f64:
    y = x
    while y < 10:
        y += NUMBER
    return y

@qp.kernel
def kernel(x: qp.types.ndarray(qp.f64, 1)):
    for i in x:
        x[i] = f(x[i])

x = np.zeros(1)
kernel(x)
print(x[0])
"""
    path, found = tmp_path / "program.py", []
    for number in (3, 3, 4):
        path.write_text(program.replace("NUMBER", str(number)))
        env = {**os.environ, "QUADPY_CACHE_DIR": str(tmp_path / "cache")}
        ran = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, timeout=120, check=True)
        found.append(float(ran.stdout))
    assert found == [12, 12, 12]
    path.write_text(program.replace("NUMBER", "7"))
    ran = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, timeout=120, check=True)
    assert float(ran.stdout) == 14


def test_a_function_that_is_traced_in_place_calls_others():
    """What reads a field is compiled into its caller, and the function that it calls is not."""
    field = qp.field(qp.f32, 4)

    @qp.real_func
    def doubled(x: qp.i32) -> qp.i32:
        return 2 * x

    @qp.real_func
    def element(x: qp.i32) -> qp.f32:
        return field[doubled(x)]

    @qp.kernel
    def k(x: qp.i32) -> (qp.f32, qp.i32):
        return element(x), doubled(x)

    field[2] = 7.0
    assert tuple(k(1)) == (7, 2)


@qp.real_func
def ignores_its_second(a: qp.f64, b: qp.f64) -> qp.i64:
    found = qp.i64(0)
    if a > 3.0:
        found = qp.i64(a * 2.0) + 7
    return found


@qp.kernel
def calls_beside_a_loop(x: qp.Array1D[qp.f64], y: qp.Array1D[qp.i64]):
    for i in range(3):
        found = ignores_its_second(x[i], 2.5)
        for j in range(64):
            y[j + 64 * i] = found * 3 + qp.i64(x[j])


def test_a_parameter_that_does_nothing():
    """LLVM would drop it from the function, but not from its form for several values, and then end the process."""
    x, y = np.arange(64.0), np.zeros(192, np.int64)
    calls_beside_a_loop(x, y)
    first = [3 * (int(a * 2) + 7 if a > 3 else 0) for a in x[:3]]
    assert y.tolist() == [found + int(a) for found in first for a in x]
