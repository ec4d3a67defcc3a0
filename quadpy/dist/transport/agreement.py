"""Checks that all ranks say the same."""

from __future__ import annotations

from quadpy.dist.transport.protocol import Transport
from quadpy.errors import RanksDisagreeError

__all__ = ["agree"]


def agree(transport: Transport, subject: str, value: str) -> None:
    """Check on every rank that ``value`` is the same on all; all ranks call it together.

    Raises:
        RanksDisagreeError: it is not; the message has each value of ``subject`` and the ranks that have it.
    """
    answers = [answer.decode() for answer in transport.share(f"{subject}\0{value}".encode())]
    if len(set(answers)) > 1:
        raise RanksDisagreeError(
            f"ranks disagree about {subject}: {_told(answers)}",
            hint="every rank must make the same calls in the same order, with the same shapes and counts",
        )


def _told(answers: list[str]) -> str:
    """Each different answer with the ranks that gave it, in the order of ranks."""
    subjects = {answer.partition("\0")[0] for answer in answers}
    parts = []
    for answer in dict.fromkeys(answers):
        ranks = [str(rank) for rank, theirs in enumerate(answers) if theirs == answer]
        subject, _, value = answer.partition("\0")
        said = value if len(subjects) == 1 else f"{subject} {value}"
        parts.append(f"{said} on rank{'s' if len(ranks) > 1 else ''} {', '.join(ranks)}")
    return "; ".join(parts)
