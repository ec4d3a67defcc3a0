"""Parameters that a launch passes, and how a call's arguments become values of the argument block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias

import numpy as np

from quadpy.core.dtypes import BY_NAME, Scalar, bf16, element_text
from quadpy.core.light import dataclass
from quadpy.core.messages import counted
from quadpy.core.records import RecordType
from quadpy.errors import ArgumentError, DeviceError
from quadpy.hostmath import Elements, Struct, StructType
from quadpy.hostmath.struct_ndarray import record_of_key
from quadpy.hostmath.struct_types import struct_type_of
from quadpy.ir.types import Array, Layout, Member, array_of
from quadpy.jit.array_views import view_of
from quadpy.jit.numbers import number_of
from quadpy.jit.plan import ArgumentValue
from quadpy.lang.arguments import ArgType, ArrayArg, ScalarArg, StructArg, VecArg
from quadpy.runtime.arrays.foreign_host import ALIGNED, ALIGNED_ROWS, DEVICE_KINDS, DISTRIBUTED
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.view import ArrayView, TypeKey
from quadpy.runtime.device.current import current_config

Argument: TypeAlias = Any
"""An argument before it is checked; afterwards, the view of an array."""


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """A number by value."""

    name: str
    type: Scalar

    def arg_type(self, given: Argument = None) -> ArgType:
        return ScalarArg(self.type)

    def value(self, given: Argument) -> ArgumentValue:
        """``given`` as ``struct`` takes it.

        Raises:
            ArgumentError: it is not a number of this type.
        """
        return number_of(given, self.type, self.name)

    def values(self, given: Argument) -> list[ArgumentValue]:
        """The same as part of the argument block."""
        return [self.value(given)]


@dataclass(frozen=True, slots=True)
class CheckedParameter(ScalarParameter):
    """A truth value or a 16-bit float: ``struct`` would accept any number for it, so each value is checked."""


@dataclass(frozen=True, slots=True)
class SingleParameter(ScalarParameter):
    """A number of type f32: ``struct`` would round large integers twice, so only floats are passed to it unchecked."""

    def value(self, given: Argument) -> ArgumentValue:
        if isinstance(given, np.floating):
            return given  # type: ignore[return-value]  # ``struct`` takes it
        return number_of(given, self.type, self.name)


@dataclass(frozen=True, slots=True)
class VectorParameter:
    """A vector or matrix by value."""

    name: str
    type: Scalar
    shape: tuple[int, ...]

    def values(self, given: Argument) -> list[ArgumentValue]:
        """The components of ``given``, row-major."""
        if isinstance(given, Elements) and given.dtype == self.type and given.shape == self.shape and not self._as_bits:
            return list(given.entries)  # they are numbers of this type
        given = getattr(given, "__quadpy_bare__", given)
        try:
            components = np.asarray(given.to_numpy() if isinstance(given, Elements) else given)
        except ValueError:
            raise ArgumentError(f"{self.name} takes shape {self.shape}, not rows of different lengths") from None
        if components.shape != self.shape:
            raise ArgumentError(f"{self.name} takes shape {self.shape}, not {components.shape}")
        return [number_of(x, self.type, self.name) for x in components.reshape(-1).tolist()]

    @property
    def _as_bits(self) -> bool:
        return self.type.is_float and self.type.bits == 16

    def arg_type(self, given: Argument = None) -> ArgType:
        return VecArg(self.shape, self.type)


@dataclass(frozen=True, slots=True)
class StructParameter:
    """A struct by value."""

    name: str
    type: StructType
    record: RecordType

    def values(self, given: Argument) -> list[ArgumentValue]:
        """The numbers of ``given``, a struct or a dict, member by member."""
        given = getattr(given, "__quadpy_bare__", given)
        if not isinstance(given, (Struct, Mapping)):
            raise ArgumentError(
                f"{self.name} takes {self.type!r}, not {type(given).__name__}", hint="pass a struct or a dict"
            )
        if isinstance(given, Struct) and struct_type_of(given) is self.type:
            numbers = given.entries
        elif missing := self.type.missing(given):
            raise ArgumentError(f"{self.name} takes {self.type!r}: the member {missing!r} is missing")
        else:
            try:
                numbers = self.type(given).entries
            except ArgumentError as error:
                raise ArgumentError(f"{self.name}: {error.message}", hint=error.hint) from error.__cause__
        return [number_of(x, scalar, self.name) for x, scalar in zip(numbers, self.record.types, strict=True)]

    def arg_type(self, given: Argument = None) -> ArgType:
        return StructArg(self.record)


@dataclass(frozen=True, slots=True)
class ArrayParameter:
    """An array: quadpy's, NumPy's, a CPU tensor, or any object that exports its memory.

    ``rank`` is the rank of its elements, 1 for vectors and 2 for matrices, if only that is known; ``splits`` says that as
    many of the last axes of another library's array are those of its elements.  ``same`` is as in ``ArrayArg``.
    """

    name: str
    type: Scalar | None
    element: tuple[int, ...]
    ndim: int | None
    record: RecordType | None = None
    clamped: bool = False
    rank: int | None = None
    splits: bool = False
    same: str = ""

    def view(self, given: Argument) -> ArrayView:
        """``given`` as a launch sees it.

        Raises:
            ArgumentError: it is not an array, or one that cannot be read.
        """
        if isinstance(given, NDArray):
            return given
        if isinstance(given, OrderedNDArray):
            self._check_place(given)
            return given
        if isinstance(given, (int, float, str, bytes)) or given is None:
            hint = "make the array with needs_grad=True" if self.name.endswith(".grad") else ""
            raise ArgumentError(f"{self.name} takes an array, not {type(given).__name__}", hint=hint)
        try:
            return view_of(given, self._element_in, self.record)
        except ArgumentError as error:
            raise ArgumentError(f"{self.name}: {error.message}", hint=error.hint) from error.__cause__

    def _element_in(self, given: Argument) -> tuple[int, ...]:
        """The shape of an element of another library's array, whose last axes these are."""
        if not self.splits or not self.rank:
            return self.element
        shape = tuple(given.shape) if hasattr(given, "shape") else np.asarray(given).shape
        return shape[-self.rank :] if len(shape) >= self.rank else ()

    def values(self, given: ArrayView) -> tuple[int, ...]:
        """The part of the argument block."""
        return given.abi

    def arg_type(self, given: ArrayView) -> ArgType:
        """The type of an array with this view; raises as ``type_of``."""
        found = self.type_of(given.type_key, writable=given.writable)
        return replace(found, same=self.same) if isinstance(found, ArrayArg) else found

    def type_of(self, key: TypeKey, *, writable: bool) -> ArgType:
        """The type of an array with this key.

        Raises:
            ArgumentError: the parameter is declared otherwise.
            DeviceError: the array is where this kernel cannot reach it.
        """
        kind, scalar, ndim, element = key
        if kind in DEVICE_KINDS and current_config().arch == "cpu":
            self._refuse_gpu()
        record = record_of_key(scalar)
        if record is not None or self.record is not None:
            self.check_rank(-1, "structs")
            return self._struct_type(record, key, writable=writable)
        found = (BY_NAME[scalar], element)
        if (self.type or self.element) and found != (self.type or found[0], self.element):
            raise ArgumentError(
                f"{self.name} takes elements of {element_text(self.type or found[0], self.element)}, not {element_text(*found)}",
                hint="NumPy has no bf16: make a qp.ndarray(qp.bf16, shape), and copy with from_numpy and to_numpy"
                if self.type is bf16
                else "convert the array, or change the annotation",
            )
        self.check_rank(len(element), element_text(*found))
        self._check_ndim(ndim)
        rows = kind == ALIGNED_ROWS
        aligned = rows or kind == ALIGNED
        array = array_of(BY_NAME[scalar], ndim, element, strided=kind == "strided", aligned=aligned, aligned_rows=rows)
        return ArrayArg(array, writable, distributed=_staggered(kind), clamped=self.clamped)

    def check_rank(self, rank: int, text: str) -> None:
        """ArgumentError for elements of another rank, which are ``text``."""
        if self.rank not in (None, rank):
            kind = "vectors" if self.rank == 1 else "matrices"
            raise ArgumentError(f"{self.name} takes a field or an array of {kind}, not one of {text}")

    def _check_place(self, given: OrderedNDArray) -> None:
        """DeviceError for an array that a kernel on the CPU cannot reach; its type key does not tell."""
        if given.device is not None and current_config().arch == "cpu":
            self._refuse_gpu()

    def _refuse_gpu(self) -> NoReturn:
        raise DeviceError(
            f"{self.name} is in the memory of a GPU, but this kernel runs on the CPU",
            hint="pass x.to_numpy(), or call qp.init with the arch that the array was made under",
        )

    def _check_ndim(self, ndim: int) -> None:
        if self.ndim is not None and ndim != self.ndim:
            raise ArgumentError(
                f"{self.name} takes {counted(self.ndim, 'dimension')}, not {ndim}",
                hint=f"pass one with {counted(self.ndim, 'axis')}, or change the annotation",
            )

    def _struct_type(self, record: RecordType | None, key: TypeKey, *, writable: bool) -> ArgType:
        """The type of an array of structs; its methods are those of the declared struct."""
        kind, scalar, ndim, element = key
        wanted: object = self.record or (self.type and element_text(self.type, self.element)) or self.element or None
        given: object = record or element_text(BY_NAME[scalar], element)
        if wanted is not None and (record is None or self.record is None or record.members != self.record.members):
            raise ArgumentError(f"{self.name} takes elements of {wanted}, not {given}",
                                hint="convert the array, or change the annotation")  # fmt: skip
        assert record is not None
        self._check_ndim(ndim)
        aligned = kind in (ALIGNED, ALIGNED_ROWS)
        found = _array_of_structs(
            self.record or record, ndim, writable, strided=kind == "strided", aligned=aligned, rows=kind == ALIGNED_ROWS
        )
        return replace(found, distributed=_staggered(kind), clamped=self.clamped)

    def declared(self) -> ArgType | None:
        """The type that the annotation alone gives; None if it leaves something out."""
        if self.record is not None and self.ndim is not None:
            return replace(_array_of_structs(self.record, self.ndim, True), clamped=self.clamped)
        if self.type is None or self.ndim is None:
            return None
        return ArrayArg(array_of(self.type, self.ndim, self.element), clamped=self.clamped)


Parameter: TypeAlias = ScalarParameter | VectorParameter | StructParameter | ArrayParameter
"""A parameter that a launch packs."""


def _staggered(kind: str) -> str:
    """``ArrayArg.distributed`` of an array of this kind."""
    return kind.removeprefix(DISTRIBUTED) if kind.startswith(DISTRIBUTED) else ""


def _array_of_structs(
    record: RecordType, ndim: int, writable: bool, *, strided: bool = False, aligned: bool = False, rows: bool = False
) -> ArrayArg:
    members = tuple(
        Member(plain.type.scalar, plain.type.scalar.nbytes, plain.type.shape, plain.offset)
        for plain in record.plain_members()
    )
    array = Array(Layout(members, record.nbytes), ndim, strided=strided, aligned=aligned, aligned_rows=rows)
    return ArrayArg(array, writable, record)
