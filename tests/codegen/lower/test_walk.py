"""Every operation on every type for every target goes through LLVM: which ends the process on what it cannot select.

Cases run in child processes, many in each; after a crash a new child goes on with the next case.  The processors of a
generation, for which LLVM selects instructions by the same rules, share the cases out, in turn for each size of wave;
``pytest --every-processor`` tries each case for each.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quadpy.codegen.compile import compile_kernel
from quadpy.core.dtypes import BY_NAME, SCALARS, u1
from quadpy.core.target import AMD_ARCHS, NVIDIA_ARCHS, parse_target
from quadpy.intrinsics import INSTRUCTIONS
from quadpy.ir.nodes import AtomicOp, BinOp, CmpOp, UnOp, Var
from quadpy.ir.verify import binary_takes, unary_takes

GENERATIONS = {"cpu": ["cpu"], "cpu:x86-64": ["cpu:x86-64"]}
for arch in AMD_ARCHS.values():
    GENERATIONS.setdefault(arch.series, []).extend(str(parse_target(f"{arch.name}:w{w}")) for w in arch.wave_sizes)
for name in NVIDIA_ARCHS:
    GENERATIONS.setdefault(f"sm_{name.rstrip('a')[3:-1]}x", []).append(name)


def expressions(b, t, x, y):
    """All that makes a value from values of type ``t``."""
    yield from (b.binary(op, x, y) for op in BinOp if binary_takes(op, t))
    yield from (b.binary(op, x, 3) for op in (BinOp.FLOORDIV, BinOp.RAWMOD, BinOp.SHR) if binary_takes(op, t))
    yield from (b.unary(op, x) for op in UnOp if unary_takes(op, t))
    yield from (b.select(b.compare(op, x, y), x, y) for op in CmpOp)
    yield from (x.to(other).to(t) for other in SCALARS)
    yield from (b.bitcast(b.bitcast(x, other), t) for other in SCALARS if other.bits == t.bits)
    for row in INSTRUCTIONS.values():
        if row.types.admits([t] * row.arity, t):
            yield b.intrinsic(row.name, t, *(x, y, x)[: row.arity])


def atomics(b, t, place, x):
    bitwise = {AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR}
    always = {AtomicOp.EXCHANGE, AtomicOp.CAS}
    for n, op in enumerate(AtomicOp):
        if op in always or (not t.is_float if op in bitwise else t != u1):
            old = Var(f"old{n}", t)
            yield b.atomic(op, place, x, old, expected=x if op is AtomicOp.CAS else None)
            yield b.atomic(op, place, b.value(old), expected=x if op is AtomicOp.CAS else None)


def everything(b, t, index, **options):
    """A kernel with all operations on ``t``."""
    i, x, y = Var("i", index), Var("x", t), Var("y", t)
    loads = [b.load(x, b.at("a", i, t=t)), b.load(y, b.at("b", i, t=t))]
    stores = [
        b.store(b.at("out", b.const(n, index), i, t=t), e)
        for n, e in enumerate(expressions(b, t, b.value(x), b.value(y)))
    ]
    updates = list(atomics(b, t, b.at("a", b.const(0, index), t=t), b.value(y)))
    axis = b.axis(i, b.const(0, index), b.extent("a", t=index), b.const(1, index))
    params = (b.array("a", t), b.array("b", t), b.array("out", t, 2))
    return b.kernel(params, b.parallel(axis, *loads, *stores, *updates), index=index, **options)


def builder():
    spec = importlib.util.spec_from_file_location("builder", Path(__file__).with_name("conftest.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def child():
    """Read cases, one a line, and answer each with a line."""
    b = builder()
    for line in sys.stdin:
        target, name, index, mode = line.split()
        kernel = everything(b, BY_NAME[name], BY_NAME[index], fast_math=mode == "fast")
        compile_kernel(kernel, parse_target(target))
        print("ok", flush=True)


def survivors(cases):
    """The cases that a child, and its successors, came through."""
    done, rest = [], list(cases)
    while rest:
        lines = "".join(" ".join(case) + "\n" for case in rest)
        ran = subprocess.run(
            [sys.executable, __file__],
            input=lines,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        passed = ran.stdout.count("ok\n")
        done += rest[:passed]
        rest = rest[passed + 1 :]
    return done


@pytest.mark.parametrize("generation", GENERATIONS)
def test_llvm_takes_every_operation(generation, request):
    targets, every = GENERATIONS[generation], request.config.getoption("--every-processor")
    kinds = [*((t.name, "i32", "strict") for t in SCALARS), ("f32", "i64", "strict")]
    kinds += [(name, "i32", "fast") for name in ("f16", "f32", "f64")]
    first = list(GENERATIONS).index(generation)
    cases = [
        (target, *kind)
        for number, kind in enumerate(kinds, first)
        if every or number % 2 == first % 4 // 2  # each kind in half of the generations
        for target in (targets if every else [targets[number % len(targets)]])
    ]
    assert survivors(cases) == cases


def test_a_crash_is_seen_and_the_next_case_still_runs():
    """What the walk rests on: an unknown type ends the child."""
    cases = [("cpu", name, "i32", "strict") for name in ("f32", "no-such-type", "i32")]
    assert survivors(cases) == [cases[0], cases[2]]


if __name__ == "__main__":
    child()
