"""What errors show: the user's lines before quadpy's, names that were meant, integers too long to print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
import types
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp

HUGE = 10**5000


def failure(kernel, *args):
    with pytest.raises(qp.QuadpyError) as caught:
        kernel(*args)
    return caught.value


def line_of(module, text):
    return Path(module.__file__).read_text().splitlines().index(text) + 1


NAMES = {
    "a function": ("y = qp.sinn(1.0)", "the module 'quadpy' has no attribute 'sinn'", "did you mean 'sin'?"),
    "a constant": ("y = qp.math.pii", "the module 'quadpy.math' has no attribute 'pii'", "did you mean 'pi'?"),
    "of another case": ("y = qp.vector([1])", "has no attribute 'vector'", "did you mean 'Vector'?"),
    "a module": ("y = math.squrt(2.0)", "the module 'math' has no attribute 'squrt'", "did you mean 'sqrt'?"),
    "a method": ("y = v.nrom()", "has no component or method 'nrom'", "did you mean 'norm'?"),
    "a variable": ("speed = 1.0\ny = sped", "the name 'sped' is not defined", "did you mean 'speed'?"),
    "a global": ("y = LIMITS", "the name 'LIMITS' is not defined", "did you mean 'LIMIT'?"),
    "a name of Python": ("y = lenn(v)", "the name 'lenn' is not defined", "did you mean 'len'?"),
    "a builtin without qp": ("y = atan2(1.0, 2.0)", "the name 'atan2' is not defined", "there is qp.atan2"),
    "an attribute of an array": ("y = x.shap", "an array has no attribute 'shap'", "did you mean 'shape'? there are shape, ndim"),
    "a member": ("y = p.mas", "has no member 'mas'", "did you mean 'mass'? there are mass, charge"),
    "a member that is set": ("q = P(1, 2)\nq.carge = 1.0", "has no member 'carge'", "did you mean 'charge'?"),
    "a member of an element": ("y = a[0].mas", "has no member 'mas'", "did you mean 'mass'?"),
    "a member that is given": ("y = P(mas=1.0)", "has no member 'mas'", "did you mean 'mass'?"),
    "an option": ("qp.loop_config(blok_dim=1)", "no option 'blok_dim'", "did you mean 'block_dim'?"),
    "nothing like it": ("y = math.zzzzzz", "the module 'math' has no attribute 'zzzzzz'", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", NAMES)
def test_names_that_were_meant(load, case):
    body, message, hint = NAMES[case]
    lines = "\n".join("    " + line for line in body.splitlines())
    module = load(f"""
import math
LIMIT = 5
P = qp.types.struct(mass=qp.f32, charge=qp.f32)

@qp.kernel
def kernel(x: qp.types.ndarray(qp.f32, 1), p: P, a: qp.types.ndarray(P, 1)):
    v = qp.Vector([1.0, 2.0])
{lines}
""")
    error = failure(module.kernel, np.zeros(1, np.float32), module.P(1, 2), module.P.ndarray(1))
    assert message in error.message
    assert hint in error.hint if hint else not error.hint
    assert error.span.line == line_of(module, lines.splitlines()[-1])


PARTS = {
    "a step of a tuple": ("y = (1, 2, 3)[::0]", "the step of a slice must not be 0"),
    "a step of a vector": ("y = v[::0]", "the step of a slice must not be 0"),
    "no components": ("y = v[3:].sum()", "this slice of an f32x3 has no components"),
    "no components to set": ("v[3:] = 1.0", "this slice of an f32x3 has no components"),
    "no rows": ("y = m[2:, 0]", "this slice of an f32x2x2 has no components"),
    "no columns": ("y = m[:, 5:].sum()", "this slice of an f32x2x2 has no components"),
    "no components of an element": ("y = e[0][3:].sum()", "this slice of an f32x3 has no components"),
    "ends that are no integers": ("y = v[0.5:]", "this is not a slice of an f32x3"),
    "a matrix of nothing": ("y = qp.Matrix.identity(qp.f32, 0)", "integers from 1 on, not 0 by 0"),
    "a vector of nothing": ("y = qp.Vector.zero(qp.f32, 0)", "integers from 1 on, not 0"),
    "a matrix that is too large": ("y = qp.Matrix.zero(qp.f32, 300, 300)", "at most 65,536 components, not 300 by 300"),
}


@pytest.mark.parametrize("case", PARTS)
def test_parts_of_nothing(load, case):
    body, message = PARTS[case]
    module = load(f"""
        V3 = qp.types.vector(3, qp.f32)

        @qp.kernel
        def kernel(e: qp.types.ndarray(V3, 1)):
            v = qp.Vector([1.0, 2.0, 3.0])
            m = qp.Matrix([[1.0, 2.0], [3.0, 4.0]])
            {body}
    """)
    error = failure(module.kernel, qp.ndarray(module.V3, 1))
    assert message in error.message
    assert "hint" not in error.message
    assert "internal error" not in str(error)
    assert error.span.line == line_of(module, f"    {body}")


INTEGERS = {
    "a literal": "x[0] = 10**5000",
    "a global": "x[0] = HUGE",
    "a cast": "x[0] = qp.i32(HUGE)",
    "an index": "x[HUGE] = 1",
    "a component": "x[0] = v[HUGE]",
    "an item": "x[0] = (1, 2)[HUGE]",
    "a key": "x[0] = {1: 2}[HUGE]",
    "a bound": "for i in range(HUGE): pass",
    "an extent": "for i, j in qp.ndrange(HUGE, 2): pass",
    "a block": "qp.loop_config(block_dim=HUGE)",
    "a vector": "y = qp.Vector([HUGE, 1])",
    "text": "y = f'{HUGE}'",
    "printed text": "qp.static_print(HUGE)",
    "an assertion": "qp.static_assert(False, HUGE)",
    "an operation": "x[0] = x[0] + HUGE",
}


@pytest.mark.parametrize("case", INTEGERS)
def test_integers_of_five_thousand_digits_in_kernels(load, case):
    body = INTEGERS[case]
    module = load(f"""
        HUGE = 10**5000

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.i32, 1)):
            v = qp.Vector([1.0, 2.0, 3.0])
            {body}
    """)
    error = failure(module.kernel, np.zeros(1, np.int32))
    assert isinstance(error, qp.CompilationError)
    assert "internal error" not in str(error)
    assert error.span.line == line_of(module, f"    {body}")


@pytest.mark.parametrize(
    "act",
    [
        lambda: qp.field(qp.i32, 3).fill(HUGE),
        lambda: qp.field(qp.i32, 3).__setitem__(0, HUGE),
        lambda: qp.field(qp.i32, 3)[HUGE],
        lambda: qp.ndarray(qp.i32, 3).__setitem__(HUGE, 1),
        lambda: qp.ndarray(qp.f32, HUGE),
        lambda: qp.ndarray(qp.f32, (2, -HUGE)),
        lambda: qp.field(qp.f32, HUGE),
        lambda: qp.Vector([HUGE, 1]),
        lambda: qp.Vector([1, 2], qp.i32) + HUGE,
        lambda: qp.Vector([1, 2]).__setitem__(0, HUGE),
        lambda: qp.Vector.unit(HUGE, 1),
        lambda: qp.Vector.zero(qp.f32, HUGE),
        lambda: qp.Matrix.diag(HUGE, 1),
        lambda: qp.Matrix.identity(qp.f32, HUGE),
        lambda: qp.types.vector(HUGE, qp.f32),
        lambda: qp.math.vec2(HUGE, 1),
        lambda: qp.types.struct(a=qp.i32)(a=HUGE),
        lambda: qp.Struct(a=HUGE),
        lambda: qp.ndrange(HUGE),
        lambda: qp.sin(HUGE),
        lambda: qp.f32(HUGE),
        lambda: qp.init(cpu_max_num_threads=HUGE),
    ],
)
def test_integers_of_five_thousand_digits_outside_kernels(act):
    with pytest.raises(qp.QuadpyError) as caught:
        act()
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("type", ["i8", "i32", "u64", "f16", "f32", "f64"])
def test_parameters_take_no_integer_of_five_thousand_digits(load, sign, type):
    module = load(f"""
        @qp.kernel
        def kernel(a: qp.{type}):
            pass
    """)
    error = failure(module.kernel, sign * HUGE)
    assert isinstance(error, qp.ArgumentError)
    assert f"does not fit {type}" in str(error)


@pytest.mark.parametrize("rows", [[[1], [2, 3]], [1, [2]], "huge", "ab", None, [[1, 2, 3]]])
def test_parameters_that_take_no_matrix_of_these_rows(rows):
    @qp.kernel
    def kernel(m: qp.types.matrix(2, 2, qp.f32)):
        pass

    error = failure(kernel, [[1, 2], [HUGE, 1]] if rows == "huge" else rows)
    assert isinstance(error, qp.ArgumentError)
    assert error.message.startswith("kernel: m")


@pytest.mark.parametrize("act", ["fill", "set"])
def test_elements_take_no_rows_of_different_lengths(act):
    field = qp.Matrix.field(2, 2, qp.f32, 3)
    with pytest.raises(qp.ArgumentError, match="rows have different lengths"):
        field.fill([[1], [2, 3]]) if act == "fill" else field.__setitem__(0, [[1], [2, 3]])


LIBRARY = {
    "svd": "U, S, V = qp.svd(qp.Vector([1.0, 2.0]))",
    "cmul": "y = qp.math.cmul(1.0, 2.0)",
    "an inner call": "y = qp.math.refract(1.0, 2.0, 3.0)",
    "few arguments": "y = qp.math.cmul()",
}


@pytest.mark.parametrize("case", LIBRARY)
def test_errors_in_quadpys_functions_show_the_users_line(load, case):
    module = load(f"""
        @qp.func
        def f():
            {LIBRARY[case]}
            return 1

        @qp.kernel
        def kernel() -> qp.i32:
            return f()
    """)
    error = failure(module.kernel)
    assert error.span.file == module.__file__
    assert error.span.line == 6
    assert [(name, where.line) for name, where in error.calls] == [("f", 11)]
    assert str(error).startswith(f"{module.__file__}:6:")
    assert str(Path(qp.__file__).parent) not in str(error)


def test_both_lines_of_an_error_in_a_function_are_shown(load):
    module = load("""
        @qp.func
        def inner(v):
            return unknown + v

        @qp.func
        def outer(v):
            return inner(v)

        @qp.kernel
        def kernel(n: qp.i32) -> qp.i32:
            return outer(n)
    """)
    error = failure(module.kernel, 1)
    assert [line.strip() for line in str(error).splitlines()] == [
        f"{module.__file__}:6:12: the name 'unknown' is not defined",
        "return unknown + v",
        "^^^^^^^",
        "hint: names bound here: v",
        f"in inner, called at {module.__file__}:10:12",
        "return inner(v)",
        "^^^^^^^^",
        f"in outer, called at {module.__file__}:14:12",
        "return outer(n)",
        "^^^^^^^^",
    ]


def test_both_lines_are_shown_of_what_a_users_object_raises(load):
    module = load("""
        class Broken:
            def __eq__(self, other): raise OSError("my own")

        broken = Broken()

        @qp.func
        def inner():
            return broken == 1

        @qp.kernel
        def kernel() -> qp.i32:
            return inner()
    """)
    error = failure(module.kernel)
    assert [(name, where.line) for name, where in error.calls] == [("inner", 15)]
    assert isinstance(error.__cause__, OSError)
    assert [frame.name for frame in traceback.extract_tb(error.__cause__.__traceback__)] == ["__eq__"]


def test_long_chains_of_calls_are_cut(load):
    functions = "".join(f"\n@qp.func\ndef f{k}():\n    return f{k - 1}()\n" for k in range(1, 20))
    module = load(f"""
@qp.func
def f0():
    return unknown
{functions}

@qp.kernel
def kernel() -> qp.i32:
    return f19()
""")
    text = str(failure(module.kernel))
    assert text.count("called at") == 8
    assert text.endswith("… and 12 more calls")


PROMISES = {
    "a kernel": ("def kernel() -> qp.f32:\n    y = 1.0", "kernel returns nothing, but its annotation says f32"),
    "a bare return": ("def kernel() -> qp.f32:\n    return", "kernel returns nothing"),
    "a branch": ("def kernel() -> qp.f32:\n    if qp.static(False):\n        return 1.0", "kernel returns nothing"),
    "a function": ("def kernel():\n    f()", "f returns nothing, but its annotation says f32"),
    "a tuple": ("def kernel() -> tuple[qp.f32, qp.f32]:\n    pass", "annotation says"),
    "a vector": ("def kernel() -> qp.types.vector(2, qp.f32):\n    pass", "annotation says vector(2, f32)"),
    "loop options of a kernel": ("def kernel():\n    qp.loop_config(block_dim=64)", "no loop follows this loop_config"),
    "loop options of a branch": (
        "def kernel(n: qp.i32):\n    if n > 1:\n        qp.loop_config(serialize=True)\n    for i in range(3): pass",
        "no loop follows",
    ),
    "loop options in a loop": (
        "def kernel(n: qp.i32):\n    for i in range(3):\n        qp.loop_config(name='a')",
        "no loop follows",
    ),
    "loop options in a while": (
        "def kernel(n: qp.i32):\n    while n > 1:\n        n -= 1\n        qp.loop_config(name='a')",
        "no loop follows",
    ),
    "loop options of a function": ("def kernel():\n    g()", "no loop follows"),
}


@pytest.mark.parametrize("case", PROMISES)
def test_promises_that_are_not_kept(load, case):
    body, message = PROMISES[case]
    module = load(f"""
@qp.func
def f() -> qp.f32:
    y = 1.0

@qp.func
def g():
    qp.loop_config(serialize=True)

@qp.kernel
{body}
""")
    error = failure(module.kernel, *([2] if "n:" in body else []))
    assert message in error.message
    assert error.span.file == module.__file__
    assert error.hint


def test_promises_that_are_kept(load):
    module = load("""
        from typing import Any

        @qp.func
        def f() -> Any:
            pass

        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.i32, 1)) -> None:
            if qp.static(True):
                qp.loop_config(serialize=True)
            n = x.shape[0]
            for i in range(n):
                x[i] += 1
            qp.loop_config(name="second")
            qp.loop_config(block_dim=64)
            for i in x:
                x[i] += 1
            f()
    """)
    x = np.zeros(3, np.int32)
    module.kernel(x)
    assert x.tolist() == [2, 2, 2]


def frames_of(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


WRONG_CALLS = {
    "the kernel": lambda module: module.kernel(1),
    "an argument": lambda module: module.kernel("text"),
    "too many arguments": lambda module: module.kernel(1, 2),
    "the graph": lambda module: module.kernel.prepare(1),
    "a method": lambda module: module.Model().method(1),
    "compiling": lambda module: module.kernel.compile("gfx942"),
    "an annotation": lambda module: module.untyped(1),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_tracebacks_have_the_users_frames_and_one_of_ours(load, case):
    module = load("""
        @qp.kernel
        def kernel(n: qp.i32):
            y = qp.sinn(1.0)

        @qp.kernel
        def untyped(n):
            pass

        @qp.data_oriented
        class Model:
            @qp.kernel
            def method(self, n: qp.i32):
                y = qp.sinn(1.0)
    """)
    error = failure(lambda: WRONG_CALLS[case](module))
    ours = [file for file in frames_of(error) if file.startswith(str(Path(qp.__file__).parent))]
    assert len(ours) <= (3 if case == "too many arguments" else 2)
    assert "During handling" not in "".join(traceback.format_exception(error))
    assert "direct cause" not in "".join(traceback.format_exception(error))


def test_an_option_shows_all_frames(load, init):
    module = load("""
        @qp.kernel
        def kernel(n: qp.i32):
            y = qp.sinn(1.0)
    """)
    short = frames_of(failure(module.kernel, 1))
    init(print_full_traceback=True)
    full = frames_of(failure(module.kernel, 1))
    assert len(full) > len(short) + 5


def test_notebook_cells_are_called_by_their_names(load, monkeypatch):
    module = load("""
        @qp.kernel
        def kernel(n: qp.i32):
            y = qp.sinn(1.0)
    """)
    names = {module.__file__: ("Cell", "In[3]")}
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert str(failure(module.kernel, 1)).startswith("Cell In[3]:6:9: the module 'quadpy'")
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert str(failure(module.kernel, 1)).startswith(f"{module.__file__}:6:9")


def test_a_setting_shows_all_frames(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import quadpy as qp, sys, traceback\n"
        "@qp.kernel\n"
        "def kernel():\n"
        "    y = qp.sinn(1.0)\n"
        "try:\n"
        "    kernel()\n"
        "except qp.QuadpyError as error:\n"
        "    print(len(traceback.extract_tb(error.__traceback__)))\n"
    )
    counts = []
    for flag in ("0", "1"):
        env = {**os.environ, "QUADPY_FULL_TRACEBACK": flag}
        ran = subprocess.run([sys.executable, path], env=env, capture_output=True, text=True, timeout=120, check=True)
        counts.append(int(ran.stdout))
    assert counts[0] == 2
    assert counts[1] > 10


@pytest.mark.parametrize(
    ("text", "meant"),
    [("qp.sinn(1.0)", "sin"), ("qp.Vector([1, 2]).norn()", "norm"), ("qp.field(qp.f32, 3).shpae", "shape")],
)
def test_python_says_which_attribute_was_meant(text, meant):
    program = f"import quadpy as qp\n{text}\n"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert re.findall(r"[Dd]id you mean:? '(\w+)'\?", ran.stderr) == [meant]  # quadpy or Python says it, not both


INSTEAD = {
    "a ufunc": ("np.sqrt(n)", "sqrt", "there is qp.sqrt"),
    "NumPy's other name": ("np.arctan2(n, 2.0)", "arctan2", "there is qp.atan2"),
    "a choice": ("np.where(n > 1, 1, 2)", "where", "there is qp.select"),
    "a reduction": ("np.sum(x)", "sum", "write a loop over the elements"),
    "an array": ("np.zeros(3)", "zeros", "arrays are made outside of kernels"),
    "a scalar type": ("np.float32(n)", "float32", "there is qp.f32"),
    "linear algebra": ("np.linalg.norm(n)", "norm", "there is v.norm() of vectors"),
    "Python's random": ("random.random()", "random", "qp.random()"),
    "a uniform number": ("random.uniform(0, 1)", "uniform", "there are qp.random()"),
    "an integer at random": ("random.randint(0, 6)", "randint", "there is qp.random(qp.i32)"),
    "a normal number": ("random.gauss(0, 1)", "gauss", "there is qp.randn()"),
    "NumPy's random": ("np.random.rand()", "rand", "there are qp.random()"),
    "a generator of NumPy": ("RNG.normal()", "normal", "there is qp.randn()"),
    "the clock": ("time.perf_counter()", "perf_counter", "read the clock outside"),
    "a list": ("LIST.append(3)", "append", "fixed when it compiles"),
}


@pytest.mark.parametrize("case", INSTEAD)
def test_functions_of_other_libraries_say_what_there_is_instead(load, case):
    call, name, hint = INSTEAD[case]
    module = load(f"""
import random
import time

LIST = [1]
RNG = np.random.default_rng(1)

@qp.kernel
def kernel(n: qp.i32, x: qp.types.ndarray(qp.f32, 1)):
    y = {call}
""")
    error = failure(module.kernel, 1, np.zeros(1, np.float32))
    assert error.message == f"{name} cannot be called inside a kernel"
    assert hint in error.hint


CALLS = {
    "too many": ("f(1, 2, 3)", "f: too many positional arguments: it takes 2, not 3"),
    "too few": ("f(1)", "f: missing a required argument: 'second'"),
    "another name": ("f(1, secnd=2)", "f: there is no parameter 'secnd'; did you mean 'second'?"),
    "a method of vectors": ("v.norm(1, 2)", "norm: too many arguments: it takes 1, not 2"),
    "an argument of a method is missing": ("v.dot()", "dot: an argument is missing"),
    "an array that is filled": ("x.fill(1, 2)", "fill takes 1 argument, the value, not 2"),
    "a builtin": ("qp.sin(1.0, 2.0)", "sin takes 1 argument, not 2"),
    "indices": ("x[1, 2]", "2 indices for an array of 1 dimension"),
}


@pytest.mark.parametrize("case", CALLS)
def test_messages_count_what_the_user_wrote(load, case):
    call, message = CALLS[case]
    module = load(f"""
@qp.func
def f(first, second):
    return first + second

@qp.kernel
def kernel(x: qp.types.ndarray(qp.f32, 1)):
    v = qp.Vector([1.0, 2.0])
    {call}
""")
    assert failure(module.kernel, np.zeros(1, np.float32)).message == message


def test_calls_of_kernels_count_what_the_user_wrote(load):
    module = load("""
        @qp.kernel
        def kernel(first: qp.i32, second: qp.i32):
            qp.static_assert(True)
    """)
    with pytest.raises(qp.ArgumentError, match="kernel: too many positional arguments: it takes 2, not 3"):
        module.kernel(1, 2, 3)
    with pytest.raises(qp.ArgumentError, match=r"kernel: there is no parameter 'secnd'; did you mean 'second'\?"):
        module.kernel(1, secnd=2)


@pytest.mark.parametrize(
    ("arch", "error", "message"),
    [
        ("cdua", qp.NoDeviceError, r"there is no backend 'cdua'\n.*did you mean 'cuda'\?"),
        ("gfx942", qp.NoDeviceError, r"'gfx942' is a target, not a backend\n.*use qp.amdgpu or qp.cuda"),
        (3, qp.ArgumentError, "arch must be the name of a backend, or several, not 3"),
        (["cuda", 3], qp.ArgumentError, "arch must be the name of a backend"),
    ],
)
def test_backends_that_were_meant(arch, error, message):
    with pytest.raises(error, match=message):
        qp.init(arch=arch)
