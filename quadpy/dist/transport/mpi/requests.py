"""Waits for requests of MPI."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from quadpy.dist.transport.waits import Waits
from quadpy.errors import QuadpyError, TransportError

__all__ = ["Requests"]


class Requests:
    """Waits for requests on one rank."""

    def __init__(self, mpi: Any, waits: Waits) -> None:
        self._mpi, self._waits = mpi, waits

    def complete(self, requests: Sequence[Any], peers: Collection[int], call: object) -> list[Any]:
        """Wait until ``requests``, which need ``peers``, are complete; returns their statuses.  Errors name ``call``.

        Raises:
            RankLostError, RanksDisagreeError: as ``Waits.until``.
            TransportError: MPI reports an error.
        """
        statuses = [self._mpi.Status() for _ in requests]
        self._waits.until(lambda: self._test(requests, statuses, call), peers, call)
        return statuses

    def _test(self, requests: Sequence[Any], statuses: list[Any], call: object) -> bool:
        try:
            return bool(self._mpi.Request.Testall(requests, statuses))
        except self._mpi.Exception as error:
            raise self._failed(error, call) from error

    def _failed(self, error: Any, call: object) -> QuadpyError:
        """The error for an exception of MPI."""
        codes = {status.Get_error() for status in getattr(error, "statuses", ())} | {error.Get_error_class()}
        if self._mpi.ERR_TRUNCATE in codes:
            hint = "the ranks must agree on the shape of the grid, the halos and the dtype"
            return TransportError(f"in {call}, a rank sent more than this rank receives", hint=hint)
        return TransportError(f"MPI failed in {call}: {error.Get_error_string()}")
