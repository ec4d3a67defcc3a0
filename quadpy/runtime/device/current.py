"""The configuration of this process, which ``qp.init`` sets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ClassVar, Final, NamedTuple

from quadpy.core.dtypes import Scalar, f32, i32
from quadpy.core.public import Tracebacks
from quadpy.errors import ArgumentError
from quadpy.runtime.device.blocks import ThreadValue
from quadpy.runtime.device.locks import new_lock


class Config(NamedTuple):
    """The options of ``qp.init``.

    ``ordinal`` is the number of the device among those of ``arch``; ``wave_size`` is None for the device's own.
    ``interpreted`` says that Python runs the kernels; everything else is as on the CPU.  ``check_out_of_bound`` asks
    for checks of indices when ``debug`` is off.  ``gpu_block_dim``, ``unrolling_limit`` and
    ``raise_on_templated_floats`` are options of the other languages.  ``as_taichi`` says that arrays of the host are
    cast to the type of the array that takes them, and that vectors are true, as there; quadpy's own rules are stricter.
    ``synchronous`` says that launches on a GPU return when their work is done.
    """

    arch: str = "cpu"
    ordinal: int = 0
    default_fp: Scalar = f32
    default_ip: Scalar = i32
    fast_math: bool = False
    debug: bool | None = None
    random_seed: int = 0
    num_threads: int | None = None
    full_traceback: bool = False
    print_buffer: int = 1 << 20
    wave_size: int | None = None
    interpreted: bool = False
    check_out_of_bound: bool = False
    gpu_block_dim: int | None = None
    unrolling_limit: int = 0
    raise_on_templated_floats: bool = False
    as_taichi: bool = False
    synchronous: bool = False


def require_wave_size(size: int | None) -> None:
    """Raise ArgumentError unless there are waves of ``size`` lanes; None asks for the device's own size."""
    if size not in (None, 32, 64):
        raise ArgumentError(f"wave_size must be 32 or 64, not {size!r}", hint="leave it out for the device's own")


class _Launches:
    """The numbers of launches that draw random numbers, in turn; further ones are those of the launches ``around``."""

    def __init__(self, numbers: list[int], around: _Launches | None) -> None:
        self.numbers, self.around, self.position = numbers, around, 0

    def next(self) -> int:
        if self.position == len(self.numbers):
            self.numbers.append(_counted() if self.around is None else self.around.next())
        self.position += 1
        return self.numbers[self.position - 1]


_REPEATED: Final[ThreadValue[int]] = ThreadValue()
_LAUNCHES: Final[ThreadValue[_Launches]] = ThreadValue()

as_launch: Final = _REPEATED.during
"""Context manager: launches of this thread have a number that ``next_launch`` gave before, so they draw the same random
numbers."""


class State:
    """The current configuration, as attributes of the class for fast access, and the count of launches that draw.

    ``device`` is the configuration's ``arch`` and ``ordinal``, by which most calls find their device.

    ``forget`` is called when results that depend on the configuration must be dropped.
    """

    config: Config = Config()
    device: tuple[str, int] = ("cpu", 0)
    launches: int = 0
    forget: ClassVar[list[Callable[[], None]]] = []
    lock = new_lock()


def current_config() -> Config:
    """The current configuration."""
    return State.config


def set_config(config: Config) -> None:
    """Set the current configuration; random numbers start again from its seed.  Arrays and fields stay valid."""
    State.config, State.device, State.launches = config, (config.arch, config.ordinal), 0
    Tracebacks.whole = config.full_traceback


def renew_config() -> None:
    """Renew what depends on the configuration: kernels forget their plans, and are specialised again when they are called."""
    State.config = State.config._replace()
    for forget in State.forget:
        forget()


def next_launch() -> int:
    """The number of a launch among those that draw random numbers: 1 for the first since the configuration was set."""
    if (repeated := _REPEATED.get()) is not None:
        return repeated
    launches = _LAUNCHES.get()
    return _counted() if launches is None else launches.next()


def _counted() -> int:
    with State.lock:
        State.launches += 1
        return State.launches


def same_launches(numbers: list[int]) -> AbstractContextManager[None]:
    """Context manager: launches of this thread have ``numbers`` in turn; those of further ones are added, for the next time."""
    return _LAUNCHES.during(_Launches(numbers, _LAUNCHES.get()))


def repeated_launch() -> int:
    """The number of the launch whose random numbers a backward kernel draws again.

    Raises:
        ArgumentError: it is not called by a tape.
    """
    if (number := _REPEATED.get()) is None:
        raise ArgumentError(
            "a backward kernel that draws random numbers must draw those of the forward call, which only a tape knows",
            hint="call the kernel on a tape: with qp.ad.Tape(loss):",
        )
    return number


def launches_so_far() -> int:
    """How many numbers ``next_launch`` has returned."""
    launches = _LAUNCHES.get()
    return State.launches if launches is None else launches.position


def take_back_launches(before: int, after: int) -> None:
    """Reuse the numbers ``before`` to ``after`` of launches that were recorded but will never run.

    Does nothing if another thread drew a number meanwhile: then there is no order to keep.
    """
    if (launches := _LAUNCHES.get()) is not None:
        launches.position = before
        return
    with State.lock:
        if State.launches == after:
            State.launches = before
