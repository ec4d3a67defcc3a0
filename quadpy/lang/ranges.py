"""A ``range`` whose bounds may be run-time values: what a loop runs over, also under a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quadpy.core.light import dataclass
from quadpy.core.source import Span
from quadpy.lang.context import Trace
from quadpy.lang.scalars import cast
from quadpy.lang.values import Value, is_runtime

ONLY_IN_LOOPS = "a run-time range can only be used in a for statement"


@dataclass(frozen=True, slots=True)
class Range:
    start: Value
    stop: Value
    step: Value

    @staticmethod
    def of(t: Trace, args: Sequence[Value], span: Span) -> Range:
        """``range(*args)``."""
        if not 1 <= len(args) <= 3:
            t.fail_type(f"range takes 1 to 3 arguments, not {len(args)}", span)
        if t.options.as_taichi:
            args = [_whole(t, arg, span) for arg in args]
        start, stop = (0, args[0]) if len(args) == 1 else args[:2]
        step = args[2] if len(args) == 3 else 1
        if step == 0 and isinstance(step, int):
            t.fail_type("the step of a range must not be 0", span)
        return Range(start, stop, step)

    def __quadpy_parts__(self) -> Value:
        return (self.start, self.stop, self.step)

    def __iter__(self) -> Iterator[int]:
        raise TypeError(ONLY_IN_LOOPS)


def _whole(t: Trace, value: Value, span: Span) -> Value:
    """``value``, cut if it is a float, as Taichi does it."""
    if isinstance(value, float):
        return int(value)
    return cast(t, value, t.defaults.ip, span) if is_runtime(value) and value.type.is_float else value
