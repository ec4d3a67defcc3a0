"""Fast calls while the hazard checker is on: each is reported to it before the launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from quadpy.core.importing import import_late
from quadpy.core.public import shortened
from quadpy.core.source import Span
from quadpy.errors import QuadpyError
from quadpy.jit.fast_call.arguments import FastCall
from quadpy.jit.parameters import Argument
from quadpy.jit.plan import Plan
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.launch.observing import NOT_NOTED, ObservedCall, ObservedStream, Submission

Tell = Callable[[ObservedStream, tuple[ArrayMemory, ...], list[float]], Submission]
"""Reports a call to the checker: its stream, its arrays, and its values."""


class ObservedCalls:
    """The fast call of ``plan`` for arrays of the forms ``forms`` during observation.

    ``generate`` makes the function from the first such call, and from the function that reports to the checker.
    """

    __slots__ = ("_accesses", "_call", "_config", "_device", "_forms", "_generate", "_plan", "_source")

    def __init__(
        self, source: FunctionSource, plan: Plan, device: Device, forms: object,
        generate: Callable[[Sequence[Argument], Tell], FastCall | None],
    ) -> None:  # fmt: skip
        self._source, self._plan, self._device, self._forms, self._generate = source, plan, device, forms, generate
        self._config = current_config()
        self._call: FastCall | None = None

    def __call__(self, stream: object, *args: Argument) -> bool | tuple[object] | None:
        """As a fast call: False, and nothing is launched, also where there are observers besides the checker."""
        checker = CAPTURES.checker
        if checker is None or checker is not CAPTURES.observer or CAPTURES.count or self._device.life.ended is not None:
            return False
        if self._call is None:
            alike = forms_of(args) == self._forms and current_config() is self._config
            self._accesses = partial(import_late("quadpy.jit.observed_call").call_accesses, self._plan)
            self._call = self._generate(args, self._tell) if alike else None
        try:
            return self._call is not None and self._call(stream, *args)
        except QuadpyError as error:
            raise shortened(error)

    def _tell(self, on: ObservedStream, arrays: tuple[ArrayMemory, ...], values: list[float]) -> Submission:
        """Raises HazardError if the checker refuses the call."""
        checker, source = CAPTURES.checker, self._source
        if checker is None:
            return NOT_NOTED
        call = ObservedCall(
            source.name, source.span, (*arrays, *self._plan.fields), self._accesses, values, False, _no_tasks
        )
        return checker.launching(on, call)


def forms_of(args: Sequence[Argument]) -> tuple[object, ...]:
    """A key that differs for calls that need different functions."""
    return tuple(getattr(given, "form", None) for given in args)


def _no_tasks() -> Sequence[Span | None]:
    return ()
