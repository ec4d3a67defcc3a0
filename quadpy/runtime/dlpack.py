"""Memory for other libraries.  Owns: export, which makes DLPack's capsules; the structs of dlpack.h.

Of version 0, and of version 1 where the consumer knows it.  Imports: dtypes, the standard library.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from quadpy.dtypes import Scalar, bf16

__all__ = ["CODES", "DEVICE_KINDS", "EXTENSION", "HOST", "NAMES", "READ_ONLY", "Managed", "Versioned", "export"]

HOST: Final = 1  # kDLCPU
DEVICE_KINDS: Final = {"amdgpu": 10, "cuda": 2}  # kDLROCM, kDLCUDA
EXTENSION: Final = 12  # kDLExtDev: a device that dlpack.h does not name
CODES: Final = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
READ_ONLY: Final = 1  # a flag of version 1
NAMES: Final = (b"dltensor", b"dltensor_versioned")  # what a consumer renames, when it has taken the tensor over

_VERSION: Final = (1, 0)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    """DLManagedTensor, of version 0."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned, from version 1 on."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_lent: Final[dict[int, tuple[object, ...]]] = {}
"""By the address of its struct: all that a tensor keeps alive until its consumer is done."""

_CALLBACK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_is_valid: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _delete(address: int) -> None:
    """The consumer is done."""
    _lent.pop(address, None)


def _end_capsule(capsule: int) -> None:
    """A capsule that nobody took gives its tensor back.  It is dying, so it comes as an address, not as an object."""
    for name in NAMES:
        if _is_valid(capsule, name):
            _delete(_pointer_of(capsule, name))


_callbacks: Final = (_CALLBACK(_delete), _CALLBACK(_end_capsule))
for _callback in _callbacks:  # a consumer may be done after this module is gone
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))
_deleter, _destructor = (ctypes.cast(callback, ctypes.c_void_p) for callback in _callbacks)


def export(
    pointer: int,
    dtype: Scalar,
    layout: tuple[tuple[int, ...], tuple[int, ...]],
    place: tuple[int, int],
    keep: object,
    max_version: tuple[int, int] | None = None,
) -> Any:
    """A capsule of the numbers at ``pointer``, without a copy; its consumer keeps ``keep`` alive.

    ``layout`` is the shape and the strides in bytes, ``place`` DLPack's kind and number of the device.  The struct is
    that of version 1 where ``max_version``, which the consumer can read, says so.
    """
    shape, steps = layout
    extents, strides = (
        (ctypes.c_int64 * len(shape))(*numbers) for numbers in (shape, [step // dtype.nbytes for step in steps])
    )
    code = CODES["bfloat" if dtype == bf16 else dtype.kind]
    tensor = _Tensor(pointer, *place, len(shape), code, 8 * dtype.nbytes, 1, extents, strides, 0)
    versioned = max_version is not None and max_version[0] >= _VERSION[0]
    managed = Versioned(*_VERSION, None, _deleter, 0, tensor) if versioned else Managed(tensor, None, _deleter)
    address = ctypes.addressof(managed)
    _lent[address] = (managed, extents, strides, keep)
    return _new(address, NAMES[versioned], _destructor)
