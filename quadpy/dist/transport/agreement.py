"""Checks that all ranks say the same."""

from __future__ import annotations

from typing import Final

from quadpy.dist.calls import SAME_CALLS, Calls, first_difference
from quadpy.dist.transport.protocol import Transport
from quadpy.errors import RanksDisagreeError

_END: Final = b"\0"


def agree(transport: Transport, subject: str, value: str, calls: Calls | None = None) -> None:
    """Check on every rank that ``value`` is the same on all, and so are its ``calls`` so far; all ranks call it together.

    Raises:
        RanksDisagreeError: the values differ; the message has each value of ``subject`` and the ranks that have it.
    """
    share_in(transport, subject, value, b"", calls)


def share_in(transport: Transport, subject: str, value: str, mine: bytes, calls: Calls | None = None) -> list[bytes]:
    """What each rank passes as ``mine``, in the order of ranks; raises as ``agree``."""
    state = b"" if calls is None else calls.state()
    answers = transport.share(_END.join((subject.encode(), value.encode(), state, mine)))
    parts = [(*answer.split(_END, 3), b"", b"", b"")[:4] for answer in answers]
    said = [(subject.decode(errors="replace"), value.decode(errors="replace")) for subject, value, *_ in parts]
    if len(set(said)) > 1:
        raise RanksDisagreeError(f"ranks disagree about {subject}: {_told(said)}", hint=SAME_CALLS)
    if calls is not None and len({state for _, _, state, _ in parts}) > 1:
        told = transport.share(calls.told().encode())
        difference = first_difference({rank: each.decode() for rank, each in enumerate(told)}, whole=True)
        raise RanksDisagreeError(
            f"before {value}, ranks have made different calls with distributed arrays: {difference}", hint=SAME_CALLS
        )
    return [mine for *_, mine in parts]


def _told(answers: list[tuple[str, str]]) -> str:
    """Each different answer with the ranks that gave it, in the order of ranks."""
    subjects = {subject for subject, _ in answers}
    parts = []
    for answer in dict.fromkeys(answers):
        ranks = [str(rank) for rank, theirs in enumerate(answers) if theirs == answer]
        subject, value = answer
        said = value if len(subjects) == 1 else f"{subject} {value}"
        parts.append(f"{said} on rank{'s' if len(ranks) > 1 else ''} {', '.join(ranks)}")
    return "; ".join(parts)
