"""What engines of the host have in common: the errors of a rank that waits, and NumPy's functions for reductions."""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from quadpy.dist.calls import SAME_CALLS
from quadpy.dist.transport.protocol import Operator
from quadpy.errors import DistributedError, QuadpyError, RankLostError, RanksDisagreeError, TransportError
from quadpy.settings import variable

ALL: Final = -1
"""In place of the rank that has failed: ranks disagree."""
_SILENT: Final = "nothing came from it within"

FUNCTIONS: Final[dict[Operator, np.ufunc]] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def closed(rank: int, process: int) -> TransportError:
    """The error for a call of rank ``rank`` after the end of its connection, which ``process`` created."""
    if os.getpid() != process:
        return TransportError(
            f"this process is a fork of rank {rank}, and not connected to the other ranks",
            hint="start processes before quadpy.dist.world(), or by spawn; distributed arrays are used by the rank itself",
        )
    return TransportError(f"rank {rank} has closed its transport")


def told_of(error: BaseException, rank: int) -> tuple[int, str]:
    """The rank that has failed, and why, as ``rank`` tells the others of ``error``: the first known cause.

    The rank is ``ALL`` if they disagree.
    """
    if isinstance(error, RankLostError) and error.rank >= 0:
        return error.rank, error.reason
    text = (error.message if isinstance(error, QuadpyError) else str(error)).partition("\n")[0]
    if isinstance(error, RanksDisagreeError):
        return ALL, text
    return rank, f"{type(error).__name__}: {text}" if text else type(error).__name__


def lost(rank: int, reason: str | None, here: int, timeout: float) -> DistributedError:
    """The error on rank ``here`` for a wait for ``rank``, which failed for a ``reason``, as ``told_of`` gave them.

    An empty ``reason`` means that the rank ended well; None means that it was silent for ``timeout`` seconds.
    """
    if rank == ALL:
        return RanksDisagreeError(reason or "ranks disagree", hint=SAME_CALLS)
    if reason is None:
        reason = f"{_SILENT} {timeout:g} s"
    if reason.startswith(_SILENT) and rank != here:
        message = f"rank {rank} does not answer: {reason}"
        hint = f"if its work takes longer between exchanges, raise {variable('rank_timeout')}, in seconds"
    elif not reason:
        reason = f"it ended while rank {here} waited for it"
        message = f"rank {rank} has ended, while this rank waits for it"
        hint = "all ranks must make the same calls: look for one that only some ranks reach"
    elif rank == here:
        message, hint = f"the other ranks have given up this rank, {rank}: {reason}", ""
    else:
        message, hint = f"rank {rank} has failed: {reason}", "fix that error first; this rank only waited for it"
    error = RankLostError(message, hint=hint)
    error.rank, error.reason = rank, reason
    return error
