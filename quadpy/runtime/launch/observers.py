"""Several observers at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeVar, cast

from quadpy.runtime.launch.observing import Observer, Submission

__all__ = ["Observers"]

F = TypeVar("F", bound=Callable[..., object])


class _Submissions:
    """One submission of which several observers were told."""

    __slots__ = ("_told", "node_timer", "task_times")

    def __init__(self, told: Sequence[Submission]) -> None:
        self._told = told
        self.task_times = next((each.task_times for each in told if each.task_times is not None), None)
        self.node_timer = next((each.node_timer for each in told if each.node_timer is not None), None)

    def done(self) -> None:
        """Like ``Submission.done``, in reverse order: the observer that was told last may measure time."""
        for each in reversed(self._told):
            each.done()


def _of_each(method: F) -> F:
    """``method`` of each observer, in their order; their submissions as one."""
    name = method.__name__

    @functools.wraps(method)
    def tell(self: Observers, *told: Any, **options: Any) -> Submission | None:  # as the method has it
        found = [getattr(each, name)(*told, **options) for each in self.observers]
        return None if found[0] is None else _Submissions(found)

    return cast(F, tell)


class Observers(Observer):
    """Tells each of ``observers``; there is at least one."""

    checks: ClassVar[bool] = True

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers: Final = tuple(observers)

    launching = _of_each(Observer.launching)
    reading = _of_each(Observer.reading)
    writing = _of_each(Observer.writing)
    copying = _of_each(Observer.copying)
    recorded = _of_each(Observer.recorded)
    waited = _of_each(Observer.waited)
    completed = _of_each(Observer.completed)
    synchronized = _of_each(Observer.synchronized)
    device_synchronized = _of_each(Observer.device_synchronized)
    launching_graph = _of_each(Observer.launching_graph)
    graph_synchronized = _of_each(Observer.graph_synchronized)
    report = _of_each(Observer.report)
    allocated = _of_each(Observer.allocated)
    freeing = _of_each(Observer.freeing)
    host_reads = _of_each(Observer.host_reads)
    followed = _of_each(Observer.followed)
    exported = _of_each(Observer.exported)
