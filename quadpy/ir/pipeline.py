"""The passes that every kernel goes through after the trace, as a value: to insert a pass is to insert a row.

``codegen.pipeline`` has the passes that a target adds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from quadpy.core.light import dataclass
from quadpy.ir.meetings import check_meetings
from quadpy.ir.nodes import Kernel
from quadpy.ir.passes.accumulate import accumulate
from quadpy.ir.passes.atomics import demote_atomics, drop_unused_results
from quadpy.ir.passes.hold import hold_elements
from quadpy.ir.passes.split_tasks import split_tasks
from quadpy.ir.passes.watch_races import watch_races

Observer: TypeAlias = Callable[[str, Kernel], None]
"""Is called with the name of each pass, and with the kernel as that pass left it."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One step of the pipeline; a check returns its kernel unchanged, or raises."""

    name: str
    run: Callable[[Kernel], Kernel]
    doc: str


TRACE: Final = "trace"
"""The name under which an observer sees a kernel before its first pass."""

TASK_PASSES: Final = (
    Pass("split_tasks", split_tasks, "splits the body into tasks, one launch each"),
    Pass("drop_unused_results", drop_unused_results, "drops the old values of atomics that no statement reads"),
    Pass("demote_atomics", demote_atomics, "makes atomics plain where no other iteration can see the element"),
    Pass(
        "hold_elements", hold_elements, "keeps an iteration's own element in a variable while an inner loop updates it"
    ),
    Pass("accumulate", accumulate, "finds reductions, and arrays that a loop only accumulates into"),
    Pass(
        "check_meetings",
        check_meetings,
        "refuses barriers and wave operations that not all iterations of a block or wave reach",
    ),
    Pass("watch_races", watch_races, "under ``debug=True``, checks that no two iterations touch the same element"),
)
"""The last pass adds accesses: races are searched for before it."""


def run_passes(passes: Iterable[Pass], kernel: Kernel, observe: Observer | None = None) -> Kernel:
    """``kernel`` after ``passes``, in their order."""
    for each in passes:
        kernel = each.run(kernel)
        if observe is not None:
            observe(each.name, kernel)
    return kernel
