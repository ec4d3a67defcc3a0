"""Exports of memory by DLPack: capsules of version 1 if the consumer supports it, and otherwise of version 0."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

from quadpy.core.dtypes import Scalar, bf16
from quadpy.core.importing import import_late

HOST: Final = 1  # kDLCPU
DEVICE_KINDS: Final = {"amdgpu": 10, "cuda": 2}  # kDLROCM, kDLCUDA
EXTENSION: Final = 12  # kDLExtDev: a device without a name in dlpack.h
CODES: Final = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}
READ_ONLY: Final = 1  # a flag of version 1
NAMES: Final = (b"dltensor", b"dltensor_versioned")  # a consumer renames the capsule when it takes the tensor

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
    """DLManagedTensor, version 0."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned, version 1."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_exported: Final[dict[int, tuple[object, ...]]] = {}
"""The objects that each exported tensor keeps alive until its consumer is done, by the address of its struct."""

_new: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)

_consumed: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_exported.pop)
"""The deleter.  A consumer may call it on any thread, at any time, so it is one step and not Python."""
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_consumed))  # a consumer may call it after this module has been torn down

_IR: Final = """
@name = private constant [9 x i8] c"dltensor\\00"
@versioned = private constant [19 x i8] c"dltensor_versioned\\00"

declare i32 @PyCapsule_IsValid(ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare void @qp_tensor_consumed(ptr)

define void @qp_capsule_end(ptr %capsule) {
entry:
  %type = alloca ptr
  %value = alloca ptr
  %trace = alloca ptr
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %trace)
  %is = call i32 @PyCapsule_IsValid(ptr %capsule, ptr @name)
  %plain = icmp ne i32 %is, 0
  %called = select i1 %plain, ptr @name, ptr @versioned
  %valid = call i32 @PyCapsule_IsValid(ptr %capsule, ptr %called)
  %ours = icmp ne i32 %valid, 0
  br i1 %ours, label %delete, label %done
delete:
  %tensor = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr %called)
  call void @qp_tensor_consumed(ptr %tensor)
  br label %done
done:
  %t = load ptr, ptr %type
  %v = load ptr, ptr %value
  %b = load ptr, ptr %trace
  call void @PyErr_Restore(ptr %t, ptr %v, ptr %b)
  ret void
}
"""
"""The destructor of a capsule, which gives back a tensor that no consumer took.

A consumer that refuses a capsule drops it while an exception is set, which Python code here would replace.
"""


@functools.cache
def _addresses() -> tuple[int, int]:
    """The addresses of the deleter and of the destructor of capsules."""
    orc = import_late("quadpy.runtime.cpu.orc")  # it loads LLVM

    deleter = ctypes.cast(_consumed, ctypes.c_void_p).value or 0
    names = ("PyCapsule_IsValid", "PyCapsule_GetPointer", "PyErr_Fetch", "PyErr_Restore")
    python = {name: ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value or 0 for name in names}
    code = orc.link(orc.assemble(_IR, opt=0), {**python, "qp_tensor_consumed": deleter})
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))  # as above, for a capsule that no consumer took
    return deleter, code.address("qp_capsule_end")


def export(
    pointer: int,
    dtype: Scalar,
    layout: tuple[tuple[int, ...], tuple[int, ...]],
    device: tuple[int, int],
    keep: object,
    max_version: tuple[int, int] | None = None,
) -> Any:
    """A capsule of the numbers at ``pointer``, without a copy; its consumer keeps ``keep`` alive.

    ``layout`` is the shape and the strides in bytes, ``device`` is DLPack's kind and number of the device.  The struct
    has version 1 if ``max_version``, the newest that the consumer can read, permits it.
    """
    shape, steps = layout
    extents, strides = (
        (ctypes.c_int64 * len(shape))(*numbers) for numbers in (shape, [step // dtype.nbytes for step in steps])
    )
    code = CODES["bfloat" if dtype == bf16 else dtype.kind]
    tensor = _Tensor(pointer, *device, len(shape), code, 8 * dtype.nbytes, 1, extents, strides, 0)
    versioned = max_version is not None and max_version[0] >= _VERSION[0]
    deleter, end = _addresses()
    managed = Versioned(*_VERSION, None, deleter, 0, tensor) if versioned else Managed(tensor, None, deleter)
    address, held = ctypes.addressof(managed), (managed, extents, strides, keep)
    try:
        _exported[address] = held
        return _new(address, NAMES[versioned], end)
    except BaseException:
        if _exported.get(address) is held:
            _exported.pop(address, None)
        raise
