"""Prints in machine code: every target and form, their order, and one atomic instruction for each."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import quadpy as qp
from quadpy.codegen.compile import compile_kernel
from quadpy.codegen.plans.phases import Meet, steps_of
from quadpy.codegen.schedule import PLAIN, Form
from quadpy.core.artifact import CodeObject
from quadpy.core.forms import Number
from quadpy.core.output import Field, Message
from quadpy.core.target import AMD_ARCHS, parse_target
from quadpy.errors import CodegenError
from quadpy.ir import nodes as ir
from quadpy.ir.fuse import fuse
from quadpy.ir.passes.unprinted import unprinted
from quadpy.ir.verify import verify
from quadpy.ir.walk import walk
from quadpy.jit.offline import trace_for

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
FLAG = qp.types.ndarray(qp.i32, 0)
GPUS = [
    *(str(parse_target(f"{a.name}:w{w}")) for a in AMD_ARCHS.values() for w in a.wave_sizes),
    "sm_70",
    "sm_90",
    "sm_120",
]


@qp.kernel
def shown(x: F32, n: qp.i32):
    print("begin", n)
    for i in x:
        x[i] += 1
        if x[i] > 2:
            print(f"{i:03d} {x[i]:.2f}", x[i] > 3, qp.f64(x[i]), qp.f16(x[i]))
    print("end", x.shape)


@qp.kernel(graph=True)
def repeated(x: F32, go: FLAG):
    while qp.graph.do_while(go):
        for i in x:
            print(i, x[i])
        for i in x:
            print(-i)
        for _ in range(1):
            go[None] -= 1


def ir_of(kernel):
    return trace_for(kernel, {}).kernel


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v2", "cpu:x86-64-v4", *GPUS])
def test_every_target(target):
    code = compile_kernel(ir_of(shown), parse_target(target))
    assert [hidden.name for hidden in code.hidden] == ["print"]
    assert len(code.messages) == 4  # with that of the loop's beginning
    again = CodeObject.from_parts(code.manifest(), code.image)
    assert [Message.from_text(text).key for text in again.messages] == [Message.from_text(t).key for t in code.messages]


@pytest.mark.parametrize("form", [Form(indirect=True), Form(predicated=True), Form(fused=True)], ids=str)
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201", "sm_70", "sm_90"])
def test_every_form(target, form):
    for kernel in (shown, repeated):
        assert compile_kernel(ir_of(kernel), parse_target(target), form).image


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_fused_kernels_have_a_ring_each(target):
    fused = fuse([[ir_of(shown), ir_of(shown)], [ir_of(shown)]])
    code = compile_kernel(fused, parse_target(target), Form(fused=True))
    assert [value.param for value in code.layout.values if "print" in value.param] == [f"k{k}.$print" for k in range(3)]


def test_one_atomic_addition_takes_the_place_of_a_record():
    ptx = compile_kernel(ir_of(shown), parse_target("sm_90")).image.decode()
    _, loop, _ = re.findall(r"\.entry \w+_t(\d).*?\n}", ptx, re.DOTALL), ptx.partition("_t1(")[2].partition("\n}")[0], 0
    assert loop.count("atom.global.add") == 2, "one for the place, one that counts what is lost"
    asm = compile_kernel(ir_of(shown), parse_target("gfx942"), want_asm=True).asm
    assert "global_atomic_add_x2" in asm
    assert "cmpswap" not in asm


def test_tasks_that_print_stay_in_their_order():
    """Nothing else orders the loops of ``repeated``; they do not touch what the other writes."""
    kernel = ir_of(repeated)
    effects = [dict(task.effects) for task in compile_kernel(kernel, parse_target("gfx942")).tasks]
    assert all(each.get("$print") == "rw" for each in effects[:4])
    (again,) = steps_of(kernel)
    printing = len([task for task in kernel.tasks if any(isinstance(n, ir.Print) for n in walk(task))])
    assert sum(isinstance(step, Meet) for step in again.body) >= printing - 1


def test_prints_do_not_count_where_they_would_change_bits():
    @qp.kernel
    def printing(x: F32, out: F32):
        for i in x:
            v = x[i] * 2
            if v > 1:
                print(v, x[i + 1] * 3)
            for j in range(3):
                print(j * v)
            out[i % 4] += v

    @qp.kernel
    def silent(x: F32, out: F32):
        for i in x:
            v = x[i] * 2
            out[i % 4] += v

    def shape(kernel):
        (task,) = (task for task in ir_of(kernel).tasks if isinstance(task, ir.ParallelTask))
        return [type(n).__name__ for n in walk(unprinted(task.body))], [each.op for each in task.privates]

    assert shape(printing) == shape(silent)


def changed(kernel, **changes):
    """``kernel`` with another first print."""
    task = kernel.tasks[0]
    body = replace(
        task.body, stmts=tuple(replace(s, **changes) if isinstance(s, ir.Print) else s for s in task.body.stmts)
    )
    return replace(kernel, tasks=(replace(task, body=body), *kernel.tasks[1:]))


def test_the_verifier_counts_the_words():
    kernel = ir_of(shown)
    verify(kernel)
    with pytest.raises(CodegenError, match="0 words for 1"):
        verify(changed(kernel, words=()))
    with pytest.raises(CodegenError, match="1 words for 2"):
        verify(changed(kernel, message=Message((Field(Number("int")), Field(Number("int"))))))


def test_what_does_not_print_has_no_hidden_argument():
    @qp.kernel
    def silent(x: F32):
        for i in x:
            x[i] = 1.0

    for target in ("cpu", "gfx942", "sm_90"):
        code = compile_kernel(ir_of(silent), parse_target(target), PLAIN)
        assert (code.hidden, code.messages) == ((), ())
