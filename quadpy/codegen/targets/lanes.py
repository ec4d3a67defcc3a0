"""The operations of a GPU's waves, as a protocol of their instructions."""

from __future__ import annotations

from typing import Protocol

from quadpy.core.dtypes import Scalar
from quadpy.ir.nodes import AtomicOp, WaveOp


class Writer(Protocol):
    """The function that is being lowered, to which rules write instructions."""

    def op(self, instruction: str) -> str:
        """Write an instruction with a result; the result's name."""

    def do(self, instruction: str) -> None:
        """Write an instruction without a result."""

    def intrinsic(self, name: str, result: str, *args: tuple[str, str], flags: str = "") -> str:
        """Call an intrinsic; its result's name."""


class Lanes(Protocol):
    """The lanes of a wave, all of which are active, and how they exchange words of 32 bits.

    Numbers of lanes, distances and masks are below ``size``.
    """

    @property
    def size(self) -> int: ...

    def why_not(self, op: WaveOp) -> str:
        """Why the target does not have ``op``, for the user; empty if it does."""

    def shuffle(self, word: str, lane: str) -> str:
        """The word of ``lane``."""

    def broadcast(self, word: str, lane: str) -> str:
        """The word of the lane that lane 0 names."""

    def flip(self, word: str, mask: int) -> str:
        """The word of the lane whose number differs in the bits of ``mask``."""

    def up(self, word: str, distance: str) -> str:
        """The word of the lane ``distance`` below; if there is none, the lane's own value."""

    def down(self, word: str, distance: str) -> str:
        """The word of the lane ``distance`` above; if there is none, the lane's own value."""

    def fold(self, word: str, distance: int, fill: str) -> str:
        """In the last lane of each group of twice ``distance``, the word of the group's other half.

        All lanes of each half have one word; elsewhere the result is arbitrary, or ``fill``.
        """

    def settle(self, word: str) -> str:
        """The last lane's word, if only that lane is known to be right."""

    def row_up(self, word: str, distance: int, fill: str) -> str:
        """The word of the lane ``distance`` below in the same row of 16, or ``fill``."""

    def last_of_row(self, word: str, fill: str) -> str:
        """In odd rows the word of the last lane of the row below, elsewhere ``fill``."""

    def last_of_half(self, word: str, fill: str) -> str:
        """In lanes from 32 on the word of lane 31, elsewhere ``fill``."""

    def one_up(self, word: str, fill: str) -> str:
        """The word of the lane below; in lane 0 ``fill``."""

    def ballot(self, truth: str) -> str:
        """A bit for each lane, i64."""

    def any(self, truth: str) -> str:
        """Whether it holds in any lane, i1."""

    def all(self, truth: str) -> str:
        """Whether it holds in all lanes, i1."""

    def reduced(self, op: AtomicOp, t: Scalar, word: str) -> str:
        """All lanes' words combined by an instruction of the target; empty if it has none."""

    def matched(self, bits: str, width: int) -> str:
        """The lanes with the same ``bits``, 32 or 64 of them, i64; empty if the target has no instruction for it."""

    def sync(self) -> None:
        """The lanes meet, and see what each of them wrote before."""
