"""What users see of a traceback: their own frames, and the one of quadpy that they called."""

from __future__ import annotations

from typing import TypeVar

from quadpy.interpreter.text import is_generated
from quadpy.runtime.device.current import current_config
from quadpy.settings import settings

__all__ = ["shortened"]

E = TypeVar("E", bound=BaseException)


def shortened(error: E) -> E:
    """``error``, to be raised again, without the frames that led to it inside quadpy; those of kernels that Python runs stay.

    With ``qp.init(print_full_traceback=True)`` or ``QUADPY_FULL_TRACEBACK=1`` it is unchanged.
    """
    if current_config().full_traceback or settings().full_traceback:
        return error
    error.__suppress_context__ = True
    frames = error.__traceback__
    while frames is not None and not is_generated(frames.tb_frame.f_globals):
        frames = frames.tb_next
    return error.with_traceback(frames)
