"""Kernels that Python runs: turns a request into a function that is called like machine code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quadpy.codegen.compile import code_object, schedule_for
from quadpy.errors import ArgumentError
from quadpy.interpreter.plans import numbered, plan_kernel
from quadpy.interpreter.program import PythonKernel
from quadpy.interpreter.text import Origin
from quadpy.ir.nodes import Kernel
from quadpy.ir.pipeline import TASK_PASSES, TRACE, run_passes
from quadpy.jit.compilation import Compiled, Request
from quadpy.jit.compiler import digest_of, spans_of, traced_for
from quadpy.jit.race_warnings import warn_of_races
from quadpy.jit.races import races_in
from quadpy.lang.guard import guarded
from quadpy.lang.members_found import MembersFound
from quadpy.lang.trace import trace_kernel
from quadpy.runtime.printing.records import Output, show


def python_kernel(request: Request) -> tuple[Compiled, Callable[..., int]]:
    """The kernel of ``request`` as Python code, and all that a launch needs to know of it.

    It is traced twice.  The first trace is that of compiled kernels, and says what they do; the second keeps the lines
    of the source, and becomes the code.
    """
    with guarded(request.source.name, lambda: request.source.span, but=(MembersFound, ArgumentError)):
        compiled, entry = _python_kernel(request)
    if compiled.races:
        warn_of_races(compiled.races)
    return compiled, entry


def _python_kernel(request: Request) -> tuple[Compiled, Callable[..., int]]:
    before: list[Kernel] = []
    source, options = request.source, request.options

    def observe(name: str, kernel: Kernel) -> None:
        if name == TRACE:
            before.append(kernel)

    traced = trace_kernel(source, request.args, options, request.before, observe)
    with_lines = traced_for(replace(request, options=replace(options, lines=True), before=traced.dependencies))
    # Races are not watched for, which would add tasks: iterations run one after another.
    kernel = run_passes(TASK_PASSES, replace(numbered(before[-1]), debug=False))
    schedule = schedule_for(kernel, request.target)
    plan = plan_kernel(with_lines.kernel, kernel.tasks, schedule)
    origin = Origin(source.name, source.span.file, source.span.line)
    entry = PythonKernel(plan, origin, source.fn.__globals__, _show)
    code = code_object(schedule, request.target, b"")
    digest = digest_of(traced.kernel, request.target)
    spans = spans_of(replace(traced, kernel=kernel), code, request)
    races = races_in(traced.unwatched, source.name)
    return Compiled(code, digest, traced.fields, traced.outline, spans, traced.dependencies, races), entry


def _show(text: str, flush: bool) -> None:
    show(Output(text, flush))
