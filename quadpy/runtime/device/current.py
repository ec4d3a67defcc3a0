"""What ``qp.init`` decided for this process.  Owns: Config, State.  Imports: dtypes, locks."""

from __future__ import annotations

from dataclasses import dataclass

from quadpy.dtypes import Scalar, f32, i32
from quadpy.runtime.device.locks import new_lock

__all__ = ["Config", "State", "current_config", "launches_so_far", "next_launch", "set_config", "take_back_launches"]


@dataclass(frozen=True, slots=True)
class Config:
    """The options of ``qp.init``; what they are before it is called is what they are by default.

    ``ordinal`` is the number of the device among those of ``arch``.
    """

    arch: str = "cpu"
    ordinal: int = 0
    default_fp: Scalar = f32
    default_ip: Scalar = i32
    fast_math: bool = False
    debug: bool = False
    random_seed: int = 0
    num_threads: int | None = None


class State:
    """What is in force; ``State.config`` is the quickest way to it."""

    config: Config = Config()
    launches: int = 0
    lock = new_lock()


def current_config() -> Config:
    """The configuration in force."""
    return State.config


def set_config(config: Config) -> None:
    """Put ``config`` in force; random numbers start again at its seed.

    Arrays and fields stay valid: on the CPU their memory belongs to them alone, so neither ``qp.init`` nor
    ``qp.reset`` takes it away.
    """
    State.config, State.launches = config, 0


def next_launch() -> int:
    """The number of this launch among those that draw random numbers, from 1 since the configuration was set."""
    with State.lock:
        State.launches += 1
        return State.launches


def launches_so_far() -> int:
    """How many numbers ``next_launch`` has given out."""
    return State.launches


def take_back_launches(before: int, after: int) -> None:
    """Launches that were noted and will never run: what runs in their place gets their numbers, ``before`` to ``after``.

    Where another thread has drawn meanwhile there is no order to keep.
    """
    with State.lock:
        if State.launches == after:
            State.launches = before
