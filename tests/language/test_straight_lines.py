"""Names assigned several times in a straight line: what each read finds, and loops with barriers of that many iterations."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp
from quadpy.lang.names import bound_once

HEAD = """
B = qp.simt.block
A = qp.types.ndarray

@qp.kernel
def k(out: A(qp.i32, 1), few: A(qp.i32, 1), many: A(qp.i32, 1), p: qp.template(), q: qp.template()):
    n_slots = few.shape[0]
"""
LOOP = """
    qp.loop_config(block_dim=32)
    for i in range(n_slots * 32):
        B.sync()
        out[i // 32] = n_slots
"""

LINES = {
    "": lambda p, q: 3,
    "n_slots = many.shape[0]": lambda p, q: 5,
    "n_slots += many.shape[0]": lambda p, q: 8,
    "n_slots *= 2\n    n_slots -= 1": lambda p, q: 5,
    "n_slots = min(n_slots + 3, many.shape[0])": lambda p, q: 5,
    "m = n_slots\n    n_slots = 7\n    n_slots = m + 1": lambda p, q: 4,
    "n_slots, m = many.shape[0], n_slots\n    n_slots, m = m, n_slots": lambda p, q: 3,
    "if qp.static(p):\n        n_slots = many.shape[0]": lambda p, q: 5 if p else 3,
    "if qp.static(not p):\n        n_slots += 1": lambda p, q: 3 if p else 4,
    "if not qp.static(p):\n        n_slots += 1": lambda p, q: 3 if p else 4,
    "if qp.static(p) and qp.static(q):\n        n_slots += 1": lambda p, q: 4 if p and q else 3,
    "if qp.static(p):\n        n_slots = many.shape[0]\n    else:\n        n_slots = 2": lambda p, q: 5 if p else 2,
    "if qp.static(p):\n        n_slots = 1\n    elif qp.static(q):\n        n_slots = 2\n    else:\n        n_slots = 4":
        lambda p, q: 1 if p else 2 if q else 4,
    "if qp.static(p):\n        n_slots += 1\n        if qp.static(q):\n            n_slots += many.shape[0]\n    n_slots += 1":
        lambda p, q: 3 + p + 5 * (p and q) + 1,
}  # fmt: skip


def arrays():
    return np.zeros(16, np.int32), np.zeros(3, np.int32), np.zeros(5, np.int32)


@pytest.mark.parametrize(("p", "q"), [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("line", LINES)
def test_the_last_value_is_how_often_the_loop_runs(load, line, p, q):
    out, few, many = arrays()
    load(f"{HEAD}    {line}\n{LOOP}").k(out, few, many, p, q)
    n = LINES[line](p, q)
    assert out.tolist() == [n] * n + [0] * (16 - n)


BRANCH = "if qp.static(p):\n        n_slots = many.shape[0]"


@pytest.mark.parametrize("options", [{"debug": True}, {"arch": "python"}, {"arch": "python", "debug": True}])
def test_so_in_debug_and_in_python(load, init, options):
    init(**options)
    out, few, many = arrays()
    load(f"{HEAD}    {BRANCH}\n{LOOP}").k(out, few, many, True, False)
    assert out.tolist() == [5] * 5 + [0] * 11


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
@pytest.mark.parametrize("line", LINES)
def test_so_for_gpus(load, target, line):
    module = load(f"{HEAD}    {line}\n{LOOP}".replace("p: qp.template(), q: qp.template()", "").replace("1), )", "1))"))
    module.p, module.q = True, False
    assert module.k.compile(target).image


SIMULATED = f"""import numpy as np, quadpy as qp
from running_gpu import running
{HEAD}    {BRANCH}
{LOOP}
with running():
    for p, n in ((True, 5), (False, 3)):
        out, few, many = (qp.ndarray(qp.i32, n) for n in (16, 3, 5))
        k(out, few, many, p, False)
        assert out.to_numpy().tolist() == [n] * n + [0] * (16 - n), out
print("as written")
"""


def test_on_a_simulated_gpu(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SIMULATED, encoding="utf-8")
    paths = [*sys.path, str(Path(__file__).parents[1] / "support")]
    line = f"import sys; sys.path[:] = {paths}; import runpy; runpy.run_path({str(program)!r})"
    done = subprocess.run(
        [sys.executable, "-c", line],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "QUADPY_CACHE": "0"},
    )
    assert done.stdout == "as written\n", done.stderr


def test_in_a_graph_and_in_a_function_called_from_it(load):
    module = load("""
    @qp.func
    def fill(out: qp.template(), few: qp.template(), many: qp.template(), p: qp.template()):
        n = few.shape[0]
        if qp.static(p):
            n = many.shape[0]
        qp.loop_config(block_dim=32)
        for i in range(n * 32):
            qp.simt.block.sync()
            qp.atomic_add(out[i // 32], 1)

    @qp.kernel(graph=True)
    def k(out: qp.types.ndarray(qp.i32, 1), few: qp.types.ndarray(qp.i32, 1), many: qp.types.ndarray(qp.i32, 1)):
        fill(out, few, many, True)
        fill(out, few, many, False)
        n = few.shape[0]
        n -= 1
        qp.loop_config(block_dim=32)
        for i in range(n * 32):
            qp.simt.block.sync()
            qp.atomic_add(out[i // 32], 1)
    """)
    out, few, many = (qp.ndarray(qp.i32, x.shape) for x in arrays())
    for times in (1, 2, 3):
        module.k(out, few, many)
        assert out.to_numpy()[:6].tolist() == [96 * times, 96 * times, 64 * times, 32 * times, 32 * times, 0]


@pytest.mark.parametrize(
    "lines",
    [
        "if few[0] > 0:\n        n_slots = 2",
        "for k in range(3):\n        n_slots += 1",
        "while n_slots < 9:\n        n_slots += 1",
        "n_slots = few[0]",
        "n_slots += 1\n    if few[0] > 0:\n        n_slots += 1",
        "qp.atomic_add(n_slots, 1)",
    ],
)
@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_what_memory_decides_is_refused(load, lines, target):
    module = load(f"{HEAD}    {lines}\n{LOOP}".replace(", p: qp.template(), q: qp.template()", ""))
    with pytest.raises(qp.KernelTypeError, match="must follow from arguments") as caught:
        module.k.compile(target)
    assert "outside run-time branches and loops" in caught.value.hint


# ---------------------------------------------------------------------- values of other kinds, in and out of iterations


@qp.kernel
def in_iterations(x: qp.types.ndarray(qp.f32, 1), p: qp.template()):
    for i in x:
        v = qp.Vector([x[i], 1.0, 2.0])
        w = v
        v = (x[i], 1.0, 2.0)
        if qp.static(p):
            v = v + w.yzx
        v *= 2
        n = 1.5
        n = i
        k = i
        for _ in range(2):
            y = k
            y = y + 1
            k = y
        x[i] = v[0] + w[0] + n + k


@pytest.mark.parametrize("p", [True, False])
def test_vectors_and_numbers_keep_what_was_read_before(p):
    x = np.arange(4, dtype=np.float32)
    i = np.arange(4)
    in_iterations(x, p)
    np.testing.assert_array_equal(x, 2 * (i + p) + i + i + i + 2)


def test_the_first_type_stays(load):
    module = load("""
    @qp.kernel
    def k(x: qp.types.ndarray(qp.f32, 1), p: qp.template()):
        for i in x:
            a = qp.f32(0.0)
            a = i
            x[i] = a / 2
            n = 1
            if qp.static(p):
                n = 2.5
            x[i] += n
    """)
    x = np.zeros(4, np.float32)
    module.k(x, False)
    assert x.tolist() == [1, 1.5, 2, 2.5]
    with pytest.raises(qp.KernelTypeError, match=r"'n' is i32 since line 10 and cannot become f32"):
        module.k(x, True)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("qp.Vector([1.0, 2.0])", "'v' cannot change its shape"),
        ("(1, 2, 3, 4)", "'v' cannot change its shape"),
        ("None", "'v' cannot become NoneType here"),
        ("x", "'v' cannot become"),
    ],
)
def test_other_shapes_are_refused(load, second, message):
    module = load(f"""
    @qp.kernel
    def k(x: qp.types.ndarray(qp.f32, 1)):
        for i in x:
            v = qp.Vector([1.0, 2.0, 3.0])
            v = {second}
            x[i] = v[0]
    """)
    with pytest.raises(qp.QuadpyError, match=message):
        module.k(np.zeros(4, np.float32))


def test_a_static_that_is_not_is_a_branch(load):
    """A function of the program may be called ``static``: what it decides, memory may decide."""
    module = load("""
    @qp.func
    def static(x):
        return x

    @qp.kernel
    def k(x: qp.types.ndarray(qp.i32, 1)):
        for i in x:
            n = 1
            if static(x[i] > 0):
                n = 2
            x[i] = n
    """)
    x = np.array([0, 1, 5], np.int32)
    module.k(x)
    assert x.tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a = 1\na = 2\nb = a", {"a": True, "b": False}),
        ("b = a\na = 1\na = 2", {"b": False}),
        ("a = 1\nfor i in x:\n  a = 2", {}),
        ("a = 1\nif c:\n  a = 2", {}),
        ("a = 1\nif static(c):\n  a = 2", {"a": True}),
        ("if static(c):\n  a = 1\nelse:\n  a = 2", {"a": True}),
        ("if static(c):\n  a = 1\nb = a", {"a": False, "b": False}),
        ("if static(c) or d:\n  a = 1\nb = a", {"b": False}),
        ("a = 1\na += 2", {"a": True}),
        ("a += 2", {}),
        ("a = 1\na[0] = 2", {}),
        ("a = 1\nwhile c:\n  b = a\n  a = 2", {"b": False}),
        ("a = (b := 1)\nb = 2", {"a": False}),
    ],
)
def test_which_names_need_no_variable(text, names):
    assert bound_once(ast.parse(text).body) == names
