"""Storage of quantised fields, whose numbers are parts of words in other fields' storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from quadpy.core.dtypes import Scalar
from quadpy.core.quantised import Member, Word
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.elements.numpy_types import STORAGE, Numbers, cast
from quadpy.runtime.memory.host_storage import Storage, Where

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.memory.allocators.block import Block


class _OnArrays:
    """The operations on NumPy's arrays, whose axes have one number at least."""

    def convert(self, x: Numbers, type: Scalar) -> Numbers:
        return cast(x, type)

    def bits(self, x: Numbers, type: Scalar) -> Numbers:
        return np.ascontiguousarray(x).view(STORAGE[type])

    def choose(self, condition: Numbers, a: Any, b: Any) -> Numbers:
        type = next(x.dtype for x in (a, b) if isinstance(x, np.ndarray))
        return np.where(condition, np.asarray(a, type), np.asarray(b, type))


_OPERATIONS: Final = _OnArrays()
_writing: Final = new_lock()
"""One thread at a time writes parts of words."""


class Lanes(NamedTuple):
    """How an axis of an array in words counts: ``extent`` numbers of a word, ``step`` lanes apart; in all words if these have the axis."""

    extent: int
    step: int
    in_words: bool


class PackedStorage:
    """The numbers ``members`` of each element, which are in ``words``: for each member, the storage of its word.

    The shape is that of the array, and ``element`` that of an element.  An array in words has ``lanes`` for each axis.
    """

    __slots__ = ("element", "lanes", "members", "name", "shape", "words")

    def __init__(
        self, members: Sequence[Member], words: Sequence[Storage], shape: tuple[int, ...], element: tuple[int, ...],
        lanes: Sequence[Lanes],
    ) -> None:  # fmt: skip
        self.members, self.words, self.shape, self.element, self.lanes = members, words, shape, element, lanes
        self.name = "an array"

    @property
    def device(self) -> Device | None:
        return self.words[0].device

    @property
    def block(self) -> Block | None:
        return self.words[0].block

    @property
    def pointer(self) -> int:
        return self.words[0].pointer

    def read(self, where: Where, stream: object = None) -> Numbers:
        """Like ``Storage.read``; always a copy."""
        found = [
            self._value(member, storage, where, stream)
            for member, storage in zip(self.members, self.words, strict=True)
        ]
        return np.stack(found, -1).reshape(found[0].shape + self.element)

    def _value(self, member: Member, storage: Storage, where: Where, stream: object) -> Numbers:
        assert member.word is not None
        lane: Any
        if not self.lanes:
            words, lane = np.asarray(storage.read(where, stream)), 0
        else:
            index, lane = self._places(where, member.word)
            words = np.atleast_1d(storage.read(..., stream))[index]
        return member.word.value(_OPERATIONS, np.atleast_1d(words), member, lane).reshape(words.shape)  # type: ignore[no-any-return]  # an array

    def number(self, where: tuple[int, ...]) -> int | float | None:
        """Only ``read`` can tell."""

    def put_number(self, where: tuple[int, ...], value: object) -> bool:
        """Only ``write`` can."""
        return False

    def write(self, where: Where, values: Numbers, stream: object = None) -> None:
        shape = np.empty(self.shape, np.bool_)[where].shape if where is not ... else self.shape
        spread = np.broadcast_to(values, shape + self.element).reshape((*shape, len(self.members)))
        changed: dict[int, tuple[Storage, dict[Member, Numbers]]] = {}
        for number, (member, storage) in enumerate(zip(self.members, self.words, strict=True)):
            changed.setdefault(id(member.word), (storage, {}))[1][member] = np.atleast_1d(spread[..., number])
        with _writing:
            for storage, numbers in changed.values():
                word = next(iter(numbers)).word
                assert word is not None
                if self.lanes:
                    self._write_lanes(storage, word, numbers, where, stream)
                    continue
                old = np.asarray(storage.read(where, stream))
                new = word.with_values(_OPERATIONS, np.atleast_1d(old), numbers)
                storage.write(where, new.reshape(old.shape), stream)

    def _write_lanes(
        self, storage: Storage, word: Word, numbers: dict[Member, Numbers], where: Where, stream: object
    ) -> None:
        """Writes one number of each word after the other."""
        whole = storage.read(..., stream).copy()
        words = np.atleast_1d(whole)
        index, lanes = self._places(where, word)
        for lane in np.unique(lanes):
            here = lanes == lane
            at = tuple(each[here] for each in index)
            chosen = {member: value.reshape(lanes.shape)[here] for member, value in numbers.items()}
            words[at] = word.with_values(_OPERATIONS, words[at], chosen, lane)
        storage.write(..., whole, stream)

    def _places(self, where: Where, word: Word) -> tuple[tuple[Numbers, ...], Numbers]:
        """The words of the numbers at ``where``, by their indices, and the lanes."""
        items = (slice(None),) * len(self.shape) if where is ... else where
        positions = [np.arange(n)[item] for n, item in zip(self.shape, items, strict=True)]
        spread = [each for each in positions if each.ndim]
        grids = iter(np.ix_(*spread))
        positions = [next(grids) if each.ndim else each for each in positions]
        lane = sum(at % own.extent * own.step for at, own in zip(positions, self.lanes, strict=True))
        index: list[Any] = [
            at // own.extent for at, own in zip(positions, self.lanes, strict=True) if own.in_words
        ] or [0]
        *index, lane = np.broadcast_arrays(*index, lane)
        return tuple(index), lane.astype(STORAGE[word.scalar])

    def copy_from(self, source: Storage, stream: object = None) -> None:
        self.write(..., source.read(..., stream), stream)
