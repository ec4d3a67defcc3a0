"""``qd.lang.impl.get_runtime()``: what programs ask Quadrants' runtime for, and the steps of it that they replace."""

from __future__ import annotations

import quadpy
from quadpy.core.dtypes import Scalar
from quadpy.runtime.arrays.field import FIELD_HOOKS
from quadpy.runtime.device.current import current_config


class _Program:
    """``get_runtime().prog``."""

    def synchronize(self) -> None:
        """Like ``quadpy.sync``."""
        quadpy.sync()


class PyQuadrants:
    """The class of the runtime, of which there is one.

    Programs replace ``materialize``, which is called when fields have got memory, before anything reads them, and
    ``clear``, which ``qd.reset`` calls.
    """

    def __init__(self) -> None:
        self.prog = _Program()

    @property
    def default_fp(self) -> Scalar:
        """The type of floats."""
        return current_config().default_fp

    @property
    def default_ip(self) -> Scalar:
        """The type of integers."""
        return current_config().default_ip

    def materialize(self) -> None:
        """Nothing: fields get their memory one by one."""

    def clear(self) -> None:
        """Nothing: arrays and fields outlive ``qd.reset``."""


_RUNTIME = PyQuadrants()


def get_runtime() -> PyQuadrants:
    """The runtime."""
    return _RUNTIME


FIELD_HOOKS.append(lambda: _RUNTIME.materialize())  # noqa: PLW0108 - as it is when it is called
quadpy.on_reset(lambda: _RUNTIME.clear())  # noqa: PLW0108 - as above
