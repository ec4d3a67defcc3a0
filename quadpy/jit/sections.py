"""Parallel sections of kernels, which are checked for each set of arrays and extents when they are first called."""

from __future__ import annotations

from collections.abc import Sequence

from quadpy.core.flow import Flow, Fork, steps_of, tasks_of
from quadpy.core.importing import import_late
from quadpy.jit.plan import Plan
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.view import ArrayMemory, ArrayView

_MOST = 256
"""Most calls that are remembered as checked."""


def has_sections(flow: Flow) -> bool:
    """Whether a kernel of this flow has sections that run at once."""
    return any(isinstance(step, Fork) for step in steps_of(flow))


class Sections:
    """The sections of one specialised kernel."""

    def __init__(self, source: FunctionSource) -> None:
        self._source = source
        self._checked: dict[tuple[int, ...], object] = {}

    def check(self, plan: Plan, values: Sequence[float], views: Sequence[ArrayView]) -> None:
        """Compare what the sections of a call of ``plan`` touch, unless that was done before.

        Raises:
            HazardError: two of them certainly touch one element, which one of them writes.
        """
        observed = import_late("quadpy.jit.observed_call")
        tasks = observed.task_accesses(plan, values)
        arrays: Sequence[ArrayMemory] = (*views, *plan.fields)
        key = (id(tasks), *[array.pointer for array in arrays])
        if self._checked.get(key) is tasks:
            return
        forks = [step for step in steps_of(plan.code.flow) if isinstance(step, Fork)]
        sections = [
            [[(arrays[a.array], a) for number in tasks_of(branch) for a in tasks[number]] for branch in fork.branches]
            for fork in forks
        ]
        import_late("quadpy.hazards.sections").check_sections(self._source.name, self._source.span, sections)
        if len(self._checked) >= _MOST:
            self._checked.clear()
        self._checked[key] = tasks
