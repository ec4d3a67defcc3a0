"""What ``qp.init`` decided for this process.  Owns: Config and the current one.  Imports: dtypes only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from quadpy.dtypes import Scalar, f32, i32

__all__ = ["Config", "current_config", "next_launch", "set_config"]


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


class _State:
    config: Config = Config()
    launches: Iterator[int] = itertools.count(1)


def current_config() -> Config:
    """The configuration in force."""
    return _State.config


def set_config(config: Config) -> None:
    """Put ``config`` in force; random numbers start again at its seed.

    Arrays and fields stay valid: on the CPU their memory belongs to them alone, so neither ``qp.init`` nor
    ``qp.reset`` takes it away.
    """
    _State.config, _State.launches = config, itertools.count(1)


def next_launch() -> int:
    """The number of this launch among those that draw random numbers, from 1 since the configuration was set."""
    return next(_State.launches)
