"""Memory of other libraries.  Owns: Taken, take, which takes DLPack's tensors over.  Imports: errors, dtypes, dlpack, deaths."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

from quadpy.dtypes import BY_NAME, Scalar, bf16, u1
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.dlpack import CODES, NAMES, READ_ONLY, Managed, Versioned
from quadpy.runtime.device.reaper import Death

__all__ = ["Taken", "take"]

_NEWEST: Final = (1, 1)  # later ones of version 1 only add flags
_USED: Final = {name: b"used_" + name for name in NAMES}  # these bytes live as long as a capsule that has the name
_STRUCTS: Final[dict[bytes, type[Managed | Versioned]]] = {NAMES[0]: Managed, NAMES[1]: Versioned}
_KINDS: Final = {CODES["int"]: "i", CODES["uint"]: "u", CODES["float"]: "f"}

_DELETER: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.py_object)  # which reads its first argument alone
_is_valid: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_rename: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)


class Taken:
    """A tensor whose producer is told when the last reference to it dies.

    ``shape`` and ``strides`` count numbers; ``place`` is DLPack's kind and number of the device.
    """

    __slots__ = ("__weakref__", "place", "pointer", "scalar", "shape", "strides", "writable")

    def __init__(self, struct: Managed | Versioned) -> None:
        tensor = struct.tensor
        self.place = (tensor.device_type, tensor.device_id)
        self.pointer = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
        self.strides = tuple(tensor.strides[: tensor.ndim]) if tensor.ndim and tensor.strides else _dense(self.shape)
        self.writable = not (isinstance(struct, Versioned) and struct.flags & READ_ONLY)
        self.scalar = _scalar_of(tensor.code, tensor.bits, tensor.lanes)


def take(producer: Any, stream: int | None = None) -> Taken:
    """The tensor of ``producer``, whose work on it so far comes before the work that ``stream`` is given from now on.

    ``stream`` is as DLPack counts streams; None is for memory of the host.

    Raises:
        ArgumentError: the producer does not share it, or it is of a type that quadpy has not.
    """
    options = {} if stream is None else {"stream": stream}
    try:
        try:
            capsule = producer.__dlpack__(max_version=_NEWEST, **options)
        except TypeError:  # a producer of version 0 knows no max_version
            capsule = producer.__dlpack__(**options)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"the {type(producer).__name__} cannot be shared through DLPack: {error}",
            hint="pass tensor.detach() of a tensor that records gradients, or a copy",
        ) from error
    for name, struct in _STRUCTS.items():
        if _is_valid(capsule, name):
            found = struct.from_address(_pointer_of(capsule, name))
            if isinstance(found, Versioned) and found.major > _NEWEST[0]:
                raise ArgumentError(f"the {type(producer).__name__} shares by DLPack {found.major}, which is too new")
            taken = Taken.__new__(Taken)
            _take_over(taken, found, capsule, name)
            taken.__init__(found)  # type: ignore[misc]  # what fails here, such as an unknown type, gives it back
            return taken
    raise ArgumentError(f"the __dlpack__ of {type(producer).__name__} gave no tensor, or one that was taken before")


def _take_over(taken: Taken, struct: Managed | Versioned, capsule: Any, name: bytes) -> None:
    """From here on the producer is told when ``taken`` dies, and not when ``capsule`` does.

    It is told by the interpreter itself, which no signal interrupts.
    """
    if not struct.deleter:
        _rename(capsule, _USED[name])
        return
    told = functools.partial(_DELETER(struct.deleter), ctypes.addressof(struct))
    death = Death(taken, told)
    try:
        _rename(capsule, _USED[name])
        _deaths[death] = None
    except BaseException:
        if death not in _deaths:
            _rename(capsule, name)
        raise
    if len(_deaths) >= _Room.deaths:
        for one in tuple(_deaths):
            if one() is None:
                _deaths.pop(one, None)
        _Room.deaths = 2 * len(_deaths) + _LEAST


_LEAST: Final = 64


class _Room:
    """How many deaths are remembered before those that came to pass are forgotten."""

    deaths = _LEAST


_deaths: Final[dict[Death, None]] = {}
"""What is to come of tensors that were taken, and for a while what came."""


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of C order, which no strides stand for."""
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
    found = BY_NAME.get(f"{_KINDS.get(code)}{bits}") if lanes == 1 and bits >= 8 else None  # bits may be packed
    if found is None:
        known = ", ".join(map(str, BY_NAME.values()))
        raise ArgumentError(
            f"an array of DLPack's type code {code} with {bits} bits and {lanes} lanes cannot be passed to a kernel",
            hint=f"convert it to one of {known}",
        )
    return found
