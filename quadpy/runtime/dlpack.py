"""Device memory for other libraries.  Owns: export, which makes DLPack's capsules.  Imports: dtypes, devices.

The structs are those of dlpack.h, version 0; NumPy does the same for arrays of the host.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from quadpy.dtypes import Scalar, bf16
from quadpy.runtime.device_storage import DeviceStorage

__all__ = ["DEVICE_KINDS", "EXTENSION", "export"]

DEVICE_KINDS: Final = {"amdgpu": 10, "cuda": 2}  # kDLROCM, kDLCUDA
EXTENSION: Final = 12  # kDLExtDev: a device that dlpack.h does not name

_CODES: Final = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
_NAME: Final = b"dltensor"  # what a consumer renames, when it has taken the tensor over


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


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


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
    if _is_valid(capsule, _NAME):
        _delete(_pointer_of(capsule, _NAME))


_callbacks: Final = (_CALLBACK(_delete), _CALLBACK(_end_capsule))
for _callback in _callbacks:  # a consumer may be done after this module is gone
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))
_deleter, _destructor = (ctypes.cast(callback, ctypes.c_void_p) for callback in _callbacks)


def export(storage: DeviceStorage, dtype: Scalar, stream: int | None = None) -> Any:
    """A capsule of the numbers of ``storage``, without a copy; its consumer keeps the memory alive.

    ``stream`` is the handle of the stream that the consumer works on, which waits for what wrote the numbers: None for
    the default one, -1 for no order at all.
    """
    device, window = storage.device, storage.window
    device.life.check()
    consumer = None if stream == -1 else device.borrow_stream(0 if stream in (None, 1) else int(stream))
    if consumer is not None:
        storage.announce(consumer, writes=True)
    steps = (step // dtype.nbytes for step in window.strides)
    extents, strides = ((ctypes.c_int64 * len(window.shape))(*numbers) for numbers in (window.shape, steps))
    code = _CODES["bfloat" if dtype == bf16 else dtype.kind]
    kind = DEVICE_KINDS.get(device.driver.name, EXTENSION)
    tensor = _Tensor(
        storage.pointer, kind, device.driver.ordinal, len(extents), code, 8 * dtype.nbytes, 1, extents, strides, 0
    )
    managed = _Managed(tensor, None, _deleter)
    address = ctypes.addressof(managed)
    _lent[address] = (managed, extents, strides, storage, consumer)
    return _new(address, _NAME, _destructor)
