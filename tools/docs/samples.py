"""The kernels that pages show, with their IR and reports, so that neither gets out of date."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import textwrap

import numpy as np

import quadpy as qp
from quadpy.codegen.report import format_reports, report_tasks
from quadpy.core.target import parse_target
from quadpy.ir.footprints.text import print_footprints
from quadpy.ir.printer import print_ir
from quadpy.jit.offline import compile_with_asm, trace_for

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
PLANE = qp.types.ndarray(dtype=qp.f32, ndim=2)


@qp.kernel
def saxpy(a: qp.f32, x: F32, y: F32):
    for i in x:
        y[i] = a * x[i] + y[i]


@qp.kernel
def mean(x: F32) -> qp.f32:
    total = 0.0
    for i in x:
        total += x[i]
    return total / x.shape[0]


@qp.kernel
def halve(x: F32):
    print("halve", x.shape[0], "numbers")
    for i in x:
        v, steps = x[i], 0
        while v > 1.0:
            v *= 0.5
            steps += 1
        if steps > 2:
            print(f"x[{i}] = {x[i]:7.2f}: {steps} steps to", qp.Vector([v, v * v]))


@qp.kernel
def relax(p: PLANE, q: PLANE, wall: qp.types.ndarray(dtype=qp.i32, ndim=2), work: F32):
    for i, j in qp.ndrange((1, p.shape[0] - 1), (1, p.shape[1] - 1)):
        q[i, j] = 0.25 * (p[i - 1, j] + p[i + 1, j] + p[i, j - 1] + p[i, j + 1])
        if wall[i, j] == 1:
            q[i, j] = 0.0
        work[i % 8] += 1.0


KERNELS = {"saxpy": saxpy, "mean": mean, "halve": halve, "relax": relax}


def print_source_of(name: str) -> str:
    lines = inspect.getsource(KERNELS[name].source.fn)
    return _fenced("py", textwrap.dedent(lines))


def print_ir_of(name: str) -> str:
    return _fenced("text", print_ir(trace_for(KERNELS[name], {}).kernel))


def print_effects_of(name: str) -> str:
    """What each task touches, without the places, which are lines of this file."""
    text = print_footprints(trace_for(KERNELS[name], {}).kernel, {})
    return _fenced("text", re.sub(" +line [0-9]+$", "", text, flags=re.MULTILINE))


def print_output_of(name: str) -> str:
    """What the kernel prints for a few squares."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        KERNELS[name](np.arange(8, dtype=np.float32) ** 2)
    return _fenced("text", text.getvalue())


def print_report_of(name: str) -> str:
    reports = []
    for target in map(parse_target, ("gfx942", "gfx1100")):
        code = compile_with_asm(KERNELS[name], target, {})
        reports += report_tasks(code.image, code.asm, target)
    return _fenced("text", format_reports(reports))


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
