"""Operations that are being submitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from quadpy.hazards.operations import Operation
from quadpy.runtime.launch.observing import NodeTimer, TaskTimes


class Submitted:
    """Operations that are in doubt until ``done``, which then calls ``complete``, if the host has waited for them."""

    __slots__ = ("_complete", "_operations")

    task_times: ClassVar[TaskTimes | None] = None
    node_timer: ClassVar[NodeTimer | None] = None

    def __init__(self, operations: Sequence[Operation], complete: Callable[[], None] | None = None) -> None:
        self._operations, self._complete = operations, complete

    def done(self) -> None:
        """Like ``Submission.done``."""
        for operation in self._operations:
            operation.done()
        if self._complete is not None:
            self._complete()
