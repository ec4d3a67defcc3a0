"""Imports of other libraries' memory by DLPack."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

from quadpy.core.dtypes import BY_NAME, Scalar, bf16, u1
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.dlpack import CODES, NAMES, READ_ONLY, Managed, Versioned
from quadpy.runtime.device.reaper import Death

_NEWEST: Final = (1, 1)  # later ones of version 1 only add flags
_USED: Final = {name: b"used_" + name for name in NAMES}  # these bytes must live as long as a capsule with the name
_STRUCTS: Final[dict[bytes, type[Managed | Versioned]]] = {NAMES[0]: Managed, NAMES[1]: Versioned}
_KINDS: Final = {CODES["int"]: "i", CODES["uint"]: "u", CODES["float"]: "f"}

_DELETER: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.py_object)  # it reads only its first argument
_is_valid: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)


class ImportedTensor:
    """A tensor; its producer's deleter is called when the last reference to this object dies.

    ``shape`` and ``strides`` count numbers.
    """

    __slots__ = ("__weakref__", "pointer", "scalar", "shape", "strides", "writable")

    def __init__(self, struct: Managed | Versioned) -> None:
        tensor = struct.tensor

        self.pointer = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
        self.strides = tuple(tensor.strides[: tensor.ndim]) if tensor.ndim and tensor.strides else _dense(self.shape)
        self.writable = not (isinstance(struct, Versioned) and struct.flags & READ_ONLY)
        self.scalar = _scalar_of(tensor.code, tensor.bits, tensor.lanes)


def import_tensor(producer: Any, stream: int | None = None) -> ImportedTensor:
    """The tensor of ``producer``; later work of ``stream`` comes after the producer's work on it so far.

    ``stream`` is DLPack's number of a stream; None for host memory.

    Raises:
        ArgumentError: the producer cannot share the tensor, or quadpy does not have its type.
    """
    options = {} if stream is None else {"stream": stream}
    try:
        try:
            capsule = producer.__dlpack__(max_version=_NEWEST, **options)
        except TypeError:  # a producer of version 0 has no max_version
            capsule = producer.__dlpack__(**options)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"the {type(producer).__name__} cannot be shared through DLPack: {error}",
            hint="for a tensor that records gradients, pass tensor.detach(); or pass a copy",
        ) from error
    for name, struct in _STRUCTS.items():
        if _is_valid(capsule, name):
            found = struct.from_address(_pointer_of(capsule, name))
            if isinstance(found, Versioned) and found.major > _NEWEST[0]:
                raise ArgumentError(f"the {type(producer).__name__} uses DLPack {found.major}, which is too new")
            imported = ImportedTensor.__new__(ImportedTensor)
            _take_over(imported, found, capsule, name)
            imported.__init__(found)  # type: ignore[misc]  # if it fails, for example for an unknown type, it is given back
            return imported
    raise ArgumentError(
        f"the __dlpack__ of {type(producer).__name__} returned no tensor, or one that was already taken"
    )


def _take_over(imported: ImportedTensor, struct: Managed | Versioned, capsule: Any, name: bytes) -> None:
    """From here on, the deleter is called when ``imported`` dies, not when ``capsule`` does.

    The interpreter itself calls it, so no signal can interrupt the call.
    """
    if not struct.deleter:
        _rename(capsule, _USED[name])
        return
    delete = functools.partial(_DELETER(struct.deleter), ctypes.addressof(struct))
    death = Death(imported, delete)
    try:
        _rename(capsule, _USED[name])
        _deaths[death] = None
    except BaseException:
        if death not in _deaths:
            _rename(capsule, name)
        raise
    if len(_deaths) >= _Room.deaths:
        for one in list(_deaths):
            if one() is None:
                _deaths.pop(one, None)
        _Room.deaths = 2 * len(_deaths) + _LEAST


_LEAST: Final = 64


class _Room:
    """The number of entries in ``_deaths`` at which past ones are removed."""

    deaths = _LEAST


_deaths: Final[dict[Death, None]] = {}
"""The deaths of imported tensors, past ones included until they are removed."""


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of C order, which missing strides mean."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _scalar_of(code: int, bits: int, lanes: int) -> Scalar:
    if lanes == 1 and (code, bits) == (CODES["bfloat"], 16):
        return bf16
    if lanes == 1 and (code, bits) == (CODES["bool"], 8):
        return u1
    found = BY_NAME.get(f"{_KINDS.get(code)}{bits}") if lanes == 1 and bits >= 8 else None  # smaller types are packed
    if found is None:
        known = ", ".join(map(str, BY_NAME.values()))
        raise ArgumentError(
            f"an array with DLPack's type code {code}, {bits} bits and {lanes} lanes cannot be passed to a kernel",
            hint=f"convert it to one of {known}",
        )
    return found
