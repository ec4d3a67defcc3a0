"""What engines of the host have in common: the errors of a rank that waits, and NumPy's functions for reductions."""

from __future__ import annotations

from typing import Final

import numpy as np

from quadpy.dist.transport.protocol import Operator
from quadpy.errors import RankLostError
from quadpy.settings import variable

__all__ = ["FUNCTIONS", "lost"]

FUNCTIONS: Final[dict[Operator, np.ufunc]] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def lost(rank: int, reason: str | None, timeout: float) -> RankLostError:
    """The error for a wait for ``rank``: it ended, for a ``reason`` if it failed; None if it is only silent."""
    if reason is None:
        message = f"rank {rank} does not answer: nothing came from it within {timeout:g} s"
        hint = f"if its work takes longer between exchanges, raise {variable('rank_timeout')}, in seconds"
    elif reason:
        message, hint = f"rank {rank} has failed: {reason}", "mend that error first; this rank only waited for it"
    else:
        message = f"rank {rank} has ended, while this rank waits for it"
        hint = "all ranks must make the same calls: look for one that only some ranks reach"
    error = RankLostError(message, hint=hint)
    error.rank = rank
    return error
