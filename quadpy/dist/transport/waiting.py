"""What engines of the host have in common: the errors of a rank that waits, and NumPy's functions for reductions."""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from quadpy.dist.transport.protocol import Operator
from quadpy.errors import RankLostError, TransportError
from quadpy.settings import variable

__all__ = ["FUNCTIONS", "closed", "lost"]

FUNCTIONS: Final[dict[Operator, np.ufunc]] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def closed(rank: int, process: int) -> TransportError:
    """The error for a call of rank ``rank`` after the end of its connection, which ``process`` created."""
    if os.getpid() != process:
        return TransportError(
            f"this process is a fork of rank {rank}, and not connected to the other ranks",
            hint="start processes before quadpy.dist.world(), or by spawn; distributed arrays are used by the rank itself",
        )
    return TransportError(f"rank {rank} has closed its transport")


def lost(rank: int, reason: str | None, here: int, timeout: float) -> RankLostError:
    """The error on rank ``here`` for a wait for ``rank``, which failed for a ``reason``.

    An empty ``reason`` means that the rank ended well; None means that it was silent for ``timeout`` seconds.
    """
    if reason is None:
        reason = f"it did not answer rank {here} within {timeout:g} s"
        message = f"rank {rank} does not answer: nothing came from it within {timeout:g} s"
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
