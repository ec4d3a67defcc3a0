"""Control flow, loops, arrays and tasks, run on the CPU."""

from __future__ import annotations

import ctypes
import itertools
import platform
import struct

import numpy as np
import pytest

from quadpy.core import dtypes
from quadpy.core.dtypes import f32, f64, i8, i32, i64, u1, u8, u32
from quadpy.core.source import NOWHERE
from quadpy.ir.nodes import AtomicOp, Break, CallMany, Continue, LabelledBlock, Leave, SlotRead, Var
from quadpy.runtime.cpu.loader import load_object
from quadpy.runtime.cpu.orc import assemble

I, J, K, N, X, ACC = (Var(name, i32) for name in ("i", "j", "k", "n", "x", "acc"))
RANGES = [(0, 5, 1), (5, 0, -1), (0, 10, 3), (10, 0, -3), (3, 3, 1), (4, 2, 1), (0, 5, 0), (-7, 8, 5), (2, 1, -9)]


@pytest.mark.parametrize("t", [i8, i32, i64, u8, u32], ids=repr)
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "variable"])
def test_ranges(b, t, constant):
    """Sequential and parallel loops take Python's values, up to the ends of the type; a step of 0 takes none."""
    ends = [
        (t.max_int - 2, t.max_int, 1),
        (t.max_int - 9, t.max_int, 4),
        (t.min_int + 9, t.min_int, -4),
        (t.min_int, t.min_int + 3, 2),
    ]
    ranges = [r for r in RANGES + ends if all(t.min_int <= x <= t.max_int for x in r)]
    i, k = Var("i", t), Var("k", i32)
    for start, stop, step in ranges:
        bounds = (start, stop, step) if constant else tuple(b.param(name, t) for name in ("p", "q", "r"))
        note = (b.atomic(AtomicOp.ADD, b.at("count", 0, t=i32), 1, k), b.store(b.at("out", k, t=t), b.value(i)))
        params = (b.array("out", t), b.array("count", i32), *(b.scalar(name, t) for name in ("p", "q", "r")))
        inner = b.for_(i, bounds[0], bounds[1], *note, step=bounds[2])
        tasks = [b.serial(inner), b.parallel(b.axis(i, *bounds), *note)]
        want = list(range(start, stop, step)) if step else []
        for task in tasks:
            out, count = (
                np.zeros(16, b.NUMPY[t.name]),
                np.zeros(1, np.int32),
            )
            b.Loaded(b.kernel(params, task))(out, count, start, stop, step)
            assert sorted(out[: count[0]].tolist()) == sorted(want), (start, stop, step)


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (700, 3), (3, 70000), (0, 4), (4, 0), (50, 60, 7), (2, 3, 2, 5)])
def test_several_axes_visit_every_index_once(b, shape):
    """Pieces begin and end inside rows; the largest of these is shared between threads."""
    names = [Var(n, i32) for n in "ijkl"[: len(shape)]]
    axes = tuple(b.axis(var, 0, b.extent("x", n)) for n, var in enumerate(names))
    old = Var("old", i32)
    digits = b.const(0)
    for n, var in enumerate(names):
        digits = digits * 3 + b.value(var) * (n + 1)
    place = b.at("x", *names, t=i32)
    k = b.kernel(
        (b.array("x", i32, len(shape)),), b.parallel(axes, b.load(old, place), b.store(place, b.value(old) + digits))
    )
    x = np.ones(shape, np.int32)
    want = np.zeros(shape, np.int32)
    for n, index in enumerate(np.indices(shape)):
        want = want * 3 + index * (n + 1)
    b.Loaded(k)(x)
    assert (x == want + 1).all()


def test_axes_with_steps_and_offsets(b):
    axes = (b.axis(I, 8, 0, -3), b.axis(J, -2, 5, 2))
    k = b.kernel(
        (b.array("x", i32, 2),),
        b.parallel(axes, b.store(b.at("x", I, b.value(J) + 2, t=i32), b.value(I) * 10 + b.value(J))),
    )
    x = np.zeros((9, 8), np.int32)
    b.Loaded(k)(x)
    assert [(r, c - 2, x[r, c]) for r, c in np.argwhere(x)] == sorted(
        (i, j, 10 * i + j) for i, j in itertools.product((8, 5, 2), (-2, 0, 2, 4))
    )


def test_control_flow(b):
    """while with break and continue, nested for, a block left early, if and else: the Collatz lengths up to 100."""
    v, steps = Var("v", i32), Var("steps", i32)
    body = (
        b.assign(v, I), b.assign(steps, 0),
        b.while_(b.value(v) > 1,
            b.assign(steps, b.value(steps) + 1),
            b.if_((b.value(v) % 2).eq(0), [b.assign(v, b.value(v) // 2), Continue(span=NOWHERE)]),
            b.assign(v, b.value(v) * 3 + 1),
            b.if_(b.value(steps) > 1000, [Break(span=NOWHERE)])),
        LabelledBlock("r", b.block(b.if_(b.value(I).eq(97), [b.store(b.at("x", I, t=i32), -1), Leave("r", span=NOWHERE)]),
                            b.store(b.at("x", I, t=i32), b.value(steps))), span=NOWHERE),
    )  # fmt: skip

    def collatz(n):
        steps = 0
        while n > 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    x = np.zeros(101, np.int32)
    b.Loaded(b.kernel((b.array("x", i32),), b.parallel(b.axis(I, 0, b.extent("x")), *body)))(x)
    assert x.tolist() == [-1 if n == 97 else collatz(n) for n in range(101)]


def test_variables_start_at_zero_in_each_iteration(b):
    body = (b.if_(b.value(I).eq(0), [b.assign(ACC, 7)]), b.store(b.at("x", I, t=i32), b.value(ACC)))
    x = np.full(5, 9, np.int32)
    b.Loaded(b.kernel((b.array("x", i32),), b.parallel(b.axis(I, 0, b.extent("x")), *body)))(x)
    assert x.tolist() == [7, 0, 0, 0, 0]


def test_continue_ends_the_iteration(b):
    body = (b.if_((b.value(I) % 2).eq(0), [Continue(span=NOWHERE)]), b.store(b.at("x", I, t=i32), 1))
    x = np.zeros(5, np.int32)
    b.Loaded(b.kernel((b.array("x", i32),), b.parallel(b.axis(I, 0, b.extent("x")), *body)))(x)
    assert x.tolist() == [0, 1, 0, 1, 0]


def test_functions(b):
    """One result and several, early returns, a loop inside."""
    n, r = Var("n", i32), Var("r", i32)
    power = b.function("power", (X, n), (i32,), b.assign(r, 1), b.for_(K, 0, b.value(n), b.assign(r, b.value(r) * b.value(X))),
                       b.if_(b.value(r) > 1000, [b.returns(b.const(1000))]), b.returns(r))  # fmt: skip
    divmod_ = b.function(
        "divmod", (X, n), (i32, f64), b.returns(b.value(X) // b.value(n), (b.value(X) % b.value(n)).to(f64))
    )
    q, m = Var("q", i32), Var("m", f64)
    body = (
        CallMany((q, m), "divmod", (b.value(I).node, b.const(3).node), span=NOWHERE),
        b.store(b.at("x", I, t=f64), b.call("power", i32, I, b.const(3)).to(f64) + b.value(q).to(f64) + b.value(m)),
    )
    k = b.kernel((b.array("x", f64),), b.parallel(b.axis(I, 0, b.extent("x")), *body), functions=(power, divmod_))
    x = np.zeros(20)
    b.Loaded(k)(x)
    assert x.tolist() == [min(i**3, 1000) + i // 3 + i % 3 for i in range(20)]


def test_results_and_scratch(b):
    """A serial task computes a bound in a slot, a loop runs to it, a last task returns what it finds."""
    n, got = Var("n", i32), Var("got", i32)
    first = b.serial(b.load(n, b.at("x", 0, t=i32)), b.store(b.slot(2, i32), b.value(n) * 2))
    loop = b.parallel(
        b.axis(I, 0, b.value(SlotRead(2, i32, span=NOWHERE))), b.atomic(AtomicOp.ADD, b.slot(3, i32), b.value(I))
    )
    last = b.serial(b.load(got, b.slot(3, i32)), b.returns(b.value(got), b.value(got).to(f32)))
    run = b.Loaded(b.kernel((b.array("x", i32),), first, loop, last, results=(i32, f32), slots=4))
    assert run(np.array([50], np.int32)) == (4950, 4950.0)


def test_scalars_of_every_type_arrive(b):
    params = [b.scalar(f"p{n}", t) for n, t in enumerate(dtypes.SCALARS)]
    stores = [b.store(b.at("out", n, t=f64), b.param(f"p{n}", t).to(f64)) for n, t in enumerate(dtypes.SCALARS)]
    run = b.Loaded(b.kernel((*params, b.array("out", f64)), b.serial(*stores)))
    out = np.zeros(len(params))
    values = [True, -128, -32768, -(2**31), -(2**62), 255, 65535, 2**32 - 1, 2**63, 1.5, 0x3FC0, -0.25, 1e300]
    run(*values, out)
    assert out.tolist() == [1.5 if v == 0x3FC0 else float(v) for v in values]


@pytest.mark.parametrize("index", [i32, i64], ids=repr)
def test_layouts(b, index):
    """Components of elements, static strides with a component stride, run-time strides, negative ones included."""
    i = Var("i", index)
    aos = b.array("aos", f32, element=(2, 2))
    soa = b.array("soa", f32, shape=(6,), element=(3,), strides=(4, 24))
    view = b.array("view", f32, 2, strided=True)
    a, c = Var("a", f32), Var("c", f32)
    body = (
        b.load(a, b.at("aos", i, t=f32, component=3)),
        b.load(c, b.at("view", i, b.const(1, index), t=f32)),
        b.store(b.at("soa", i, t=f32, component=2), b.value(a) + b.value(c)),
    )
    k = b.kernel(
        (aos, soa, view),
        b.parallel(b.axis(i, b.const(0, index), b.extent("aos", t=index), b.const(1, index)), *body),
        index=index,
    )
    aos_data, soa_data = np.arange(24, dtype=np.float32).reshape(6, 4), np.zeros(18, np.float32)
    view_data = (np.arange(60, dtype=np.float32) * 100).reshape(6, 10)[::-1, ::3]
    b.Loaded(k)(aos_data, soa_data, view_data)
    assert soa_data[12:].tolist() == (aos_data[:, 3] + view_data[:, 1]).tolist()
    assert not soa_data[:12].any()


def test_fields_without_axes_and_booleans(b):
    flag = Var("flag", u1)
    total, mask = b.array("total", i32, 0, shape=()), b.array("mask", u1)
    body = (
        b.load(flag, b.at("mask", I, t=u1)),
        b.if_(b.value(flag), [b.atomic(AtomicOp.ADD, b.at("total", t=i32), 1)]),
    )
    total_data, mask_data = np.zeros((), np.int32), np.arange(10) % 3 == 0
    b.Loaded(b.kernel((total, mask), b.parallel(b.axis(I, 0, b.extent("mask")), *body)))(total_data, mask_data)
    assert total_data == 4


ATOMICS = {
    AtomicOp.ADD: (3, 4, 7), AtomicOp.SUB: (3, 4, -1), AtomicOp.MUL: (3, 4, 12), AtomicOp.MIN: (3, 4, 3),
    AtomicOp.MAX: (3, 4, 4), AtomicOp.AND: (6, 3, 2), AtomicOp.OR: (6, 3, 7), AtomicOp.XOR: (6, 3, 5),
    AtomicOp.EXCHANGE: (3, 4, 4),
}  # fmt: skip


def bfloats(values):
    return (np.array(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def floats(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).tolist()


@pytest.mark.parametrize("t", [t for t in dtypes.SCALARS if t != u1], ids=repr)
def test_atomics_return_the_old_value(b, t):
    ops = {
        op: case for op, case in ATOMICS.items() if not (t.is_float and op in (AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR))
    }
    body = []
    for n, (op, (_, operand, _)) in enumerate(ops.items()):
        old = Var(f"old{n}", t)
        body += [b.atomic(op, b.at("x", n, t=t), b.const(operand, t), old), b.store(b.at("y", n, t=t), b.value(old))]
    k = b.kernel((b.array("x", t), b.array("y", t)), b.serial(*body))
    pack, unpack = (
        (bfloats, floats) if t == dtypes.bf16 else (lambda v: np.array(v, b.NUMPY[t.name]), np.ndarray.tolist)
    )
    x, y = pack([case[0] for case in ops.values()]), pack([0] * len(ops))
    b.Loaded(k)(x, y)
    assert unpack(y) == [case[0] for case in ops.values()]
    assert unpack(x) == unpack(pack([case[2] % 2**t.bits if t.kind == "uint" else case[2] for case in ops.values()]))


def test_compare_and_swap(b):
    old, flag = Var("old", f32), Var("flag", u1)
    body = (b.atomic(AtomicOp.CAS, b.at("x", I, t=f32), 9.0, old, expected=2.0), b.store(b.at("y", I, t=f32), b.value(old)),
            b.atomic(AtomicOp.CAS, b.at("m", I, t=u1), True, flag, expected=False), b.atomic(AtomicOp.XOR, b.at("m", 0, t=u1), True))  # fmt: skip
    k = b.kernel(
        (b.array("x", f32), b.array("y", f32), b.array("m", u1)), b.parallel(b.axis(I, 0, b.extent("x")), *body)
    )
    x, y, m = np.array([1, 2, 3], np.float32), np.zeros(3, np.float32), np.array([True, False, False])
    b.Loaded(k)(x, y, m)
    assert (x.tolist(), y.tolist(), m.tolist()) == ([1, 9, 3], [1, 2, 3], [False, True, True])


@pytest.mark.parametrize("t", [i32, f32, dtypes.f16], ids=repr)
@pytest.mark.parametrize("op", [AtomicOp.ADD, AtomicOp.MAX])
def test_threads_lose_no_update(b, t, op):
    """f16 counts to 2048 exactly; it runs through the compare-and-swap loop."""
    n = 2048
    operand = b.const(1, t) if op is AtomicOp.ADD else (b.value(I) % n).to(t)
    loop = b.for_(J, 0, 1 if op is AtomicOp.ADD else 40, b.atomic(op, b.at("x", 0, t=t), operand))
    x = np.zeros(1, {"i32": np.int32, "f32": np.float32, "f16": np.float16}[t.name])
    b.Loaded(b.kernel((b.array("x", t),), b.parallel(b.axis(I, 0, n), loop)))(x)
    assert x[0] == (n if op is AtomicOp.ADD else n - 1)


@pytest.mark.cpu_only
def test_long_kernels_return_between_tasks(b):
    """The entry gives control back after some milliseconds, and goes on with the task it is told."""
    spin = b.serial(b.for_(J, 0, 2_000_000, b.atomic(AtomicOp.ADD, b.at("x", 0, t=i32), 1)))
    run = b.Loaded(b.kernel((b.array("x", i32),), *[spin] * 8))
    x, returns = np.zeros(1, np.int32), []
    block = struct.pack(run.layout.format, x.ctypes.data, 1)
    following = 0
    while following >= 0:
        following = run.entry(block, run.scratch.ctypes.data, following)
        returns.append(following)
    assert x[0] == 16_000_000
    assert len(returns) > 1
    assert returns == [*sorted(returns[:-1]), -1]


@pytest.mark.cpu_only
@pytest.mark.skipif(platform.machine() != "x86_64", reason="sets x86's MXCSR")
def test_the_callers_floating_point_modes_do_not_matter(b):
    """A caller that flushes subnormals to zero gets them kept in kernels, and its own modes back."""
    run = b.Loaded(
        b.kernel(
            (b.array("x", f32), b.scalar("h", f32)),
            b.parallel(b.axis(I, 0, b.extent("x")), b.store(b.at("x", I, t=f32), b.param("h", f32) * 0.5)),
        )
    )
    modes = load_object(assemble(MXCSR_IR))
    get = ctypes.CFUNCTYPE(ctypes.c_uint32)(modes.address("get_modes"))
    set_ = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(modes.address("set_modes"))
    x, before = np.zeros(3, np.float32), get()
    try:
        set_(before | 0x8040)
        run(x, 2.0**-126)
        during = get()
    finally:
        set_(before)
    assert during & 0x8040 == 0x8040
    assert x.tolist() == [2.0**-127] * 3


MXCSR_IR = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define i32 @get_modes() {
  %p = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %p)
  %v = load i32, ptr %p
  ret i32 %v
}
define void @set_modes(i32 %v) {
  %p = alloca i32
  store i32 %v, ptr %p
  call void @llvm.x86.sse.ldmxcsr(ptr %p)
  ret void
}
"""
