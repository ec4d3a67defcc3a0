"""Fields of quantised numbers, and the words that hold them.

The words are ordinary fields of integers in layout trees.  A quantised field has no memory of its own: its numbers are
parts of words, on the host and in kernels.
"""

from __future__ import annotations

import math
from typing import Any, Final, NoReturn

import numpy as np

from quadpy.core.completion import shows
from quadpy.core.dtypes import Scalar, u32, u64
from quadpy.core.messages import counted, shown
from quadpy.core.public import made_by, public, public_init
from quadpy.core.quantised import Member, QuantFloat, QuantType, Word
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.field import Field
from quadpy.runtime.arrays.field_layout import Layout, Placement, StoredMember, strides_of
from quadpy.runtime.memory.blocked import Blocks
from quadpy.runtime.memory.packed import Lanes, PackedStorage

_WORDS: Final = {32: u32, 64: u64}


class WordField(Field):
    """The words of quantised fields."""

    __slots__ = ("fields", "word")

    def __init__(self, word: Word) -> None:
        super().__init__(word.scalar, (), "")
        self.word, self.fields = word, list[QuantField]()
        word.holder = self

    @property
    def is_differentiable(self) -> bool:
        """Words are not numbers."""
        return False

    def enter(self, node: Any) -> None:
        super().enter(node)
        for each in self.fields:
            each.settle(node, self.offset)


@shows("place")
@public_init
class BitpackedFields:
    """Words of ``max_num_bits``, 32 or 64, that hold the numbers of several quantised fields.

    ``qp.root.dense(...).place`` takes it as it takes a field.
    """

    def __init__(self, max_num_bits: int) -> None:
        self._words = WordField(Word(_word_type(max_num_bits)))

    def __repr__(self) -> str:
        return f"<BitpackedFields, {self._words.word.used} of {self._words.word.scalar.bits} bits>"

    def leaves(self) -> tuple[WordField, ...]:
        """The field of the words."""
        return (self._words,)

    @public
    def place(self, *fields: Any, shared_exponent: bool = False) -> None:
        """Give the numbers of quantised ``fields`` bits of the word, one after the other.

        With ``shared_exponent``, the floats among them have one exponent, that of the largest.

        Raises:
            ArgumentError: they do not fit, are not quantised, or are placed already.
        """
        found = [_quantised(field) for field in fields]
        members = [member for field in found for member in field.members]
        self._words.word.add(members, shares_exponent=shared_exponent)
        for field in found:
            self._words.fields += [field] if field.whole is None else [field, field.whole]


@made_by("qp.field(qp.types.quant.int(...)) makes one")
@shows(
    "copy_from", "device", "dtype", "element_shape", "fill", "from_numpy", "from_torch", "get_scalar_field", "name",
    "nbytes", "ndim", "offset", "placed", "parent", "quant", "shape", "size", "snode", "to_numpy", "to_torch",
)  # fmt: skip
class QuantField(Field):
    """A field of quantised numbers, in the words of BitpackedFields or of a ``quant_array``.

    On the host and in kernels its numbers have the type ``dtype`` in which the quantised type ``quant`` computes.
    """

    __slots__ = ("lanes", "members", "quant", "whole")
    __quadpy_quantised__ = True

    def __init__(
        self, quant: QuantType, element: tuple[int, ...], name: str, members: tuple[Member, ...] = (),
        whole: QuantField | None = None,
    ) -> None:  # fmt: skip
        super().__init__(quant.compute, element, name)
        self.quant, self.whole, self.lanes = quant, whole, tuple[Lanes, ...]()
        self.members = members or tuple(Member(quant) for _ in range(math.prod(element)))

    @property
    def words(self) -> tuple[WordField, ...]:
        """The fields that hold the numbers, one for each number of an element."""
        return tuple(member.word.holder for member in self.members if member.word is not None)

    def settle(self, node: Any, offset: object, lanes: tuple[Lanes, ...] = ()) -> None:
        """Take the shape of the cells of ``node`` as soon as all numbers of an element are in these."""
        words = self.words
        if (
            self.container is not None
            or len(words) < len(self.members)
            or any(word.container is None for word in words)
        ):
            return
        if not lanes and any(word.container is not node for word in words):
            raise ArgumentError(f"the components of {self!r} are in different nodes", hint="place them in one")
        self.container, self.lanes = node, lanes
        self.span(node.shape, offset)

    @property
    def is_differentiable(self) -> bool:
        """Quantised fields have no derivatives."""
        return False

    @public
    def get_scalar_field(self, *index: int) -> QuantField:
        """The field of the numbers at ``index`` in each vector or matrix, in the same memory; also before it is placed.

        Raises:
            ArgumentError: the elements have no such component.
        """
        try:
            at = int(np.ravel_multi_index(index, self.element_shape)) if self.element_shape else -1
        except (TypeError, ValueError):
            at = -1
        if at < 0:
            raise ArgumentError(f"{shown(index)} is not a component of {self!r}")
        found = self.components.get(at)
        if found is None:
            found = QuantField(
                self.quant, (), f"{self.name}[{at}]" if self.name else "", self.members[at : at + 1], self
            )
            self.components[at] = found
            if self.container is not None:
                found.settle(self.container, self.offset, self.lanes)
        return found  # type: ignore[return-value]  # only these are there

    @property
    def placed(self) -> bool:
        """Whether it has memory."""
        return len(self.words) == len(self.members) and all(word.placed for word in self.words)

    @property
    def placement(self) -> Placement:
        """Where its first word is; as of other fields, the first use allocates the memory."""
        self._memory()
        return self.words[0].placement

    @property
    def blocks(self) -> Blocks:
        """As of other fields; the last level of an axis may be in the words."""
        cells = {} if self.container is None else self.container.cells
        return tuple(cells.values()) if any(len(levels) > 1 for levels in cells.values()) else ()

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers alone."""
        return -(-self.size * sum(member.bits for member in self.members) // 8)

    def stored_members(self) -> list[StoredMember]:
        """As if the numbers had the memory of their type."""
        self._memory()
        item = self.dtype.nbytes
        *axes, component = strides_of(self.shape, list(range(self.ndim)), math.prod(self.element_shape), Layout.AOS)
        return [StoredMember(self.dtype, component * item, self.element_shape, 0, tuple(n * item for n in axes))]

    def _memory(self) -> PackedStorage:
        words = self.words
        if not hasattr(self, "shape") or len(words) < len(self.members):
            raise ArgumentError(
                f"{self!r} has no memory", hint="place it in qp.BitpackedFields, and these under qp.root"
            )
        storages = tuple(word.storage for word in words)
        found = PackedStorage(self.members, storages, self.shape, self.element_shape, self.lanes)
        found.name = self.described
        return found

    def __quadpy_fingerprint__(self) -> str:
        words = {id(word): word.__quadpy_fingerprint__() for word in self.words}
        order = list(words)
        where = [
            (order.index(id(member.word.holder)), member.key) for member in self.members if member.word is not None
        ]
        shape = getattr(self, "shape", None)
        return f"quantised:{self.quant}:{self.element_shape}:{shape}:{self.blocks}:{self.lanes}:{where}:{list(words.values())}"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled: pickle x.to_numpy(), and copy it back by from_numpy")


def made_of(quant: QuantType, element: tuple[int, ...], name: str) -> QuantField:
    """A field of these elements, which is not placed yet."""
    return QuantField(quant, element, name)


def _word_type(max_num_bits: object) -> Scalar:
    if max_num_bits not in _WORDS:
        raise ArgumentError(f"max_num_bits={shown(max_num_bits)} is not 32 or 64")
    return _WORDS[max_num_bits]


def _quantised(field: object) -> QuantField:
    if not isinstance(field, QuantField):
        raise ArgumentError(f"{shown(field)} is not a quantised field", hint="qp.field(qp.types.quant.int(bits=5))")
    return field


def put_in_words(node: Any, max_num_bits: object) -> None:
    """Make the cells of ``node`` parts of words."""
    node.words = WordField(Word(_word_type(max_num_bits), is_array=True))
    node.outer.place(node.words)


def place_in_words(node: Any, fields: tuple[Any, ...], offset: object) -> None:
    """Put the one field in the words of a ``quant_array``."""
    word, count = node.words.word, math.prod(extent for _, extent in node.levels)
    if len(fields) != 1 or word.members:
        raise ArgumentError("a quant_array takes one field", hint="use qp.BitpackedFields for several")
    field = _quantised(fields[0])
    if field.element_shape or isinstance(field.quant, QuantFloat):
        raise ArgumentError("a quant_array takes integers and fixed-point numbers", hint="use qp.BitpackedFields")
    if field.quant.bits * count > word.scalar.bits:
        raise ArgumentError(
            f"{counted(count, 'number')} of {field.quant.bits} bits do not fit max_num_bits={word.scalar.bits}"
        )
    word.add(field.members, shares_exponent=False)
    lanes, step = dict[int, Lanes](), count
    for axis, extent in node.levels:
        step //= extent
        lanes[axis] = Lanes(extent, step, axis in node.outer.cells)
    field.settle(node, offset, tuple(lanes.get(axis, Lanes(1, 0, True)) for axis in node.cells))
