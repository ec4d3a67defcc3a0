"""Arguments that the launch adds: a row of the table and a use in the code are all that a new one takes."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.compile import compile_kernel
from quadpy.core.artifact import CodeObject
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.walk import map_children
from quadpy.jit import hidden_arguments
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.hidden_arguments import HiddenArguments, Row
from quadpy.jit.offline import trace_for
from quadpy.runtime.arrays.foreign_host import describe_host_array

INTS = qp.types.ndarray(dtype=qp.u64, ndim=1)


@qp.kernel
def put(x: INTS, answer: qp.u64):
    for i in x:
        x[i] = answer


@qp.kernel
def draw(x: INTS):
    for i in x:
        x[i] = qp.random(qp.u64)


total = qp.field(qp.i32, ())


@qp.kernel
def add(x: INTS) -> qp.i32:
    s = 0
    for _i in x:
        s += 1
        total[None] += 1
    return s


def hide(node: ir.Node) -> ir.Node:
    """``put`` with its parameter ``answer`` as a hidden argument."""
    if isinstance(node, (ir.ScalarParam, ir.ParamRead)) and node.name == "answer":
        return replace(node, name="$answer")
    return map_children(node, hide)


def code_of(kernel: qp.Kernel, target: str) -> CodeObject:
    spec = parse_target(target)
    return compile_kernel(hide(trace_for(kernel, {}, spec).kernel), spec)


@pytest.fixture
def answers(monkeypatch):
    """The hidden argument ``answer``: 42, 43, … for the launches of each plan."""
    numbers = iter(range(42, 50))
    monkeypatch.setitem(hidden_arguments.ROWS, "answer", Row(of_launch=lambda: next(numbers)))


def test_on_the_cpu(answers):
    x, plan = np.zeros(3, np.uint64), CpuPlan(code_of(put, "cpu"))
    for want in (42, 43):
        plan.run([x.ctypes.data, x.size], [], None)
        assert (x == want).all()


def test_on_a_gpu(answers, plan_of):
    code, found = code_of(put, "gfx942"), []
    plan = plan_of(code, {code.tasks[0].symbol: lambda block: found.append(struct.unpack("@Qiq", block)[2])})
    x = describe_host_array(np.zeros(256, np.uint64))
    for _ in range(2):
        plan.run(list(x.abi), [x], None)
    plan.device.synchronize()
    assert found == [42, 43]


@pytest.mark.parametrize(
    ("kernel", "target", "names"),
    [
        (put, "cpu", ["answer"]),
        (draw, "cpu", ["seed", "launch"]),
        (add, "cpu", ["field"]),
        (draw, "gfx942", ["seed", "launch"]),
        (add, "gfx942", ["field", "scratch", "results"]),
        (add, "sm_90", ["field", "scratch", "results"]),
    ],
)
def test_code_lists_what_the_launch_adds(kernel, target, names):
    code = code_of(kernel, target)
    assert [hidden.name for hidden in code.hidden] == names
    offsets = {slot.param: slot.offset for slot in code.layout.values if slot.param.startswith("$")}
    assert [hidden.offset for hidden in code.hidden] == [*offsets.values(), code.layout.size, code.layout.size + 8][
        : len(names)
    ]
    assert CodeObject.from_parts(code.manifest(), code.image) == code


def test_scratch_memory_and_results_come_after_the_layout():
    """Scratch memory begins with the results, unless the launch has other memory for them."""
    code = code_of(add, "gfx942")
    hidden = HiddenArguments(code, [total], 7)
    block = hidden.with_scratch(bytes(code.layout.size - 4), 0x1234)
    assert len(block) == code.block_bytes == code.layout.size + 16
    assert block[code.layout.size :] == 2 * (0x1234).to_bytes(8, "little")
    again = bytearray(len(block))
    hidden.pack_scratch(again, 0x1234)
    assert again[code.layout.size :] == block[code.layout.size :]
    assert list(hidden.values()) == [total.pointer]
    assert not hidden.counts


def test_the_sources_say_what_the_values_are():
    hidden = HiddenArguments(code_of(draw, "cpu"), (), 7)
    names: dict[str, object] = {}
    first = [eval(source, names) for source in hidden.expressions(names)]
    assert [first[0], first[1] + 1] == hidden.values()
    assert hidden.counts
