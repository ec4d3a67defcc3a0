"""Several observers at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final

from quadpy.runtime.launch.observing import Observer, Submission


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


def _of_each(method: FunctionType) -> Callable[..., Submission | None]:
    """``method`` of each observer, in their order; their submissions as one."""
    name = method.__name__

    @functools.wraps(method)
    def tell(self: Observers, *told: Any, **options: Any) -> Submission | None:  # as the method has it
        found = [getattr(each, name)(*told, **options) for each in self.observers]
        return None if found[0] is None else _Submissions(found)

    return tell


class Observers(Observer):
    """Tells each of ``observers``; there is at least one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self.observers: Final = tuple(observers)


for _name, _method in vars(Observer).items():
    if isinstance(_method, FunctionType):
        setattr(Observers, _name, _of_each(_method))
