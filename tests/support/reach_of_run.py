"""A plugin of pytest: of how many arrays of the kernels that the tests run the host knows more than that they are touched.

``PYTHONPATH=tests/support pytest -p reach_of_run tests/language tests/examples`` prints the figure at the end, for each kernel
once, whatever the types of its arguments.
"""

from __future__ import annotations

import functools

import pytest
from reach import Reach, reach_of

from quadpy.ir import nodes as ir
from quadpy.jit import compiler

_found: dict[tuple[str, str], Reach] = {}


def pytest_configure() -> None:
    trace = compiler.trace_kernel

    @functools.wraps(trace)
    def traced(*args, **kwargs):
        found = trace(*args, **kwargs)
        _note(found.kernel)
        return found

    compiler.trace_kernel = traced


def _note(kernel: ir.Kernel) -> None:
    key = kernel.name, str(kernel.tasks[0].span) if kernel.tasks else ""
    if key not in _found:
        try:
            _found[key] = reach_of([kernel])
        except RecursionError:
            _found[key] = Reach(1, 0, (f"{kernel.name}: nested too deeply",))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    pairs, known = (sum(getattr(reach, part) for reach in _found.values()) for part in ("pairs", "known"))
    terminalreporter.section("arrays with boxes")
    terminalreporter.line(f"{known} of {pairs} in {len(_found)} kernels, {known / max(pairs, 1):.1%}")
    for reach in _found.values():
        for line in reach.unknown:
            terminalreporter.line(f"  {line}")
