"""Every function of the language becomes machine code on every kind of target, or an error that names it.

Operations of waves and blocks are in ``tests/codegen/lower/test_waves.py``; instructions of each type on every single
processor in ``tests/codegen/lower/test_walk.py``.  ``--every-processor`` compiles for each, not for one of each kind.
"""

from __future__ import annotations

import runpy
import subprocess
import sys

import pytest

import quadpy as qp
from quadpy.core.target import AMD_ARCHS, NVIDIA_ARCHS
from quadpy.intrinsics import BUILTINS, ROWS
from quadpy.intrinsics.rows import Library, Syntax, Types

TARGETS = ["cpu", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_70", "sm_90"]
FORMS = {
    "cast": "qp.cast(v, qp.f32)", "bit_cast": "qp.bit_cast(v, qp.{u})", "select": "qp.select(v > w, v, w)",
    "random": "qp.random({t})", "randn": "qp.randn({f})", "atomic_cas": "qp.atomic_cas(y[1], v, w)",
    "ndrange": "many(v)", "grouped": "places(x, v)", "static": "qp.static(3)", "static_assert": "qp.static_assert(True)",
    "static_print": None, "sincos": "qp.sincos(v)[1]", "frexp": "qp.frexp(v)[0]", "block_local": "qp.block_local(x)", "cache_read_only": "qp.cache_read_only(x)",
    "assume_in_range": "qp.assume_in_range(i, i, 0, 1)", "loop_unique": "qp.loop_unique(i)",
    "is_active": "qp.select(qp.is_active(cells, i % 8), v, w)", "activate": "qp.activate(cells, i % 8)",
    "deactivate": "qp.deactivate(cells, i % 8)", "append": "qp.append(lists.parent(), i % 4, 1)",
    "length": "qp.length(lists.parent(), i % 4)", "rescale_index": "qp.rescale_index(sparse, cells, i)[0]",
    "no_activate": "qp.no_activate(sparse)", "volatile_load": "qp.volatile_load(x[0])",
    "clock_counter": "qp.clock_counter()", "get_addr": "qp.get_addr(x, i)",
    "global_thread_idx": "qp.global_thread_idx()", "ifte": "qp.ifte(v > w, v, w)",
}  # fmt: skip
"""How a call is written that is not ``qp.name`` of a value for each parameter; None: it has no code."""
STATEMENTS = {"static_assert", "block_local", "cache_read_only", "activate", "deactivate", "no_activate"}
HEAD = """
import quadpy as qp
A = qp.types.ndarray
sparse, lists = qp.field(qp.f32), qp.field(qp.i32)
cells = qp.root.pointer(qp.i, 8)
cells.dense(qp.i, 4).place(sparse)
qp.root.dense(qp.i, 4).dynamic(qp.j, 8).place(lists)

@qp.func
def many(v):
    total = v
    for a, b in qp.ndrange(2, 3):
        total += v
    return total

@qp.func
def places(x, v):
    total = v
    for at in qp.grouped(x):
        total += x[at]
    return total

"""
UNSIGNED = {
    "f16": "u16",
    "f32": "u32",
    "f64": "u64",
    "i8": "u8",
    "i16": "u16",
    "i32": "u32",
    "i64": "u64",
    "u32": "i32",
}
ELSEWHERE = {
    name for group in ("block", "subgroup", "warp", "grid") for name in BUILTINS if name.startswith(f"{group}.")
}
CALLED = [
    row for row in ROWS if row.name in BUILTINS and row.name not in ELSEWHERE and not isinstance(row.lowering, Syntax)
]


def takes(row, t):
    floats = t.startswith("f")
    if row.types is Types.FLOATS or row.name in ("floor", "ceil", "round", "trunc", "randn"):
        return floats
    whole = row.types in (Types.INTEGERS, Types.COUNT) or row.name in ("ffs", "atomic_and", "atomic_or", "atomic_xor")
    if row.name == "random":
        return t in ("i32", "u32", "i64", "f32", "f64")
    return not (floats and whole)


def call_of(row, t):
    if row.name in FORMS:
        form = FORMS[row.name]
        f = t if t in ("f32", "f64") else "f32"
        return form and form.format(u=UNSIGNED[t], t=f"qp.{t}", f=f"qp.{f}")
    place, *_ = row.parameters.split(", ") or [""]
    if row.name.startswith("atomic_"):
        return f"qp.{row.name}(y[0], v)"
    arity = 2 if place == "*args" else sum("=" not in p for p in row.parameters.split(", "))
    return f"qp.{row.name}({', '.join(['v', 'w', 'v'][:arity])})"


def module_of(t, rows):
    lines = []
    for row in rows:
        call = call_of(row, t)
        if call is None or not takes(row, t):
            continue
        lines.append(call if row.name in STATEMENTS else f"y[i] += qp.cast({call}, qp.{t})")
    body = "\n".join(f"        {line}" for line in lines)
    return f"""{HEAD}
@qp.kernel
def k(x: A(dtype=qp.{t}, ndim=1), y: A(dtype=qp.{t}, ndim=1)):
    for i in range(x.shape[0]):
        v, w = x[i], y[i]
{body}
"""


def test_every_function_is_called_here_or_with_the_waves():
    assert {row.name for row in CALLED} | ELSEWHERE | {
        row.name for row in ROWS if isinstance(row.lowering, Syntax)
    } >= set(BUILTINS)
    for row in CALLED:
        assert call_of(row, "f32") is None or any(takes(row, t) for t in UNSIGNED), row.name


CHILD = """
import runpy, sys
for line in sys.stdin:
    file, target = line.split()
    assert runpy.run_path(file)["k"].compile(target).image
    print(line.strip(), flush=True)
"""
CASES = [("f32", target) for target in TARGETS] + [
    (t, target) for t in ("f16", "f64", "i8", "i64") for target in ("gfx90a", "gfx1100", "sm_70")
]
"""The functions of the library with f32 alone: whatever their type, they are the same few operations."""


def test_they_become_machine_code(tmp_path, request):
    """In a child process, which LLVM ends where it cannot select an instruction."""
    lines, cases = [], CASES
    if request.config.getoption("--every-processor"):
        cases = [(t, target) for t in ("f32", "f64", "i32") for target in ("cpu", *AMD_ARCHS, *NVIDIA_ARCHS)]
    for t, target in cases:
        rows = [row for row in CALLED if t == "f32" or not isinstance(row.lowering, Library)]
        file = tmp_path / f"of_{t}.py"
        file.write_text(module_of(t, rows), encoding="utf-8")
        lines.append(f"{file} {target}")
    command = [sys.executable, "-c", CHILD]
    ran = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == lines, ran.stderr


def test_what_a_type_or_a_target_lacks_is_a_named_error(tmp_path):
    """Each function that does not take floats."""
    whole = [row for row in CALLED if not takes(row, "f32") and takes(row, "i32")]
    assert len(whole) > 8
    for row in whole:
        file = tmp_path / f"{row.name}.py"
        file.write_text(module_of("i32", [row]).replace("dtype=qp.i32", "dtype=qp.f32"), encoding="utf-8")
        with pytest.raises(qp.KernelTypeError, match=row.name.removeprefix("atomic_")):
            runpy.run_path(str(file))["k"].compile("gfx942")
