"""Exchange of GPU arrays with other libraries, by DLPack and ``__cuda_array_interface__`` (which AMD's libraries also use)."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from quadpy.core.dtypes import Scalar
from quadpy.errors import ArgumentError, DeviceError
from quadpy.runtime.arrays.dlpack import DEVICE_KINDS, EXTENSION, export
from quadpy.runtime.arrays.dlpack_import import ImportedTensor, import_tensor
from quadpy.runtime.arrays.foreign_host import (
    HOST_KINDS,
    describe_host_array,
    detached,
    device_kind,
    layout_of,
    refused_if_broken,
    renamed,
    row_bytes,
    type_key,
)
from quadpy.runtime.arrays.view import TypeKey
from quadpy.runtime.drivers.driver import DEFAULT_STREAM
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.capturing import CAPTURES, session_of
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from quadpy.runtime.device.deferred_release import DeferredRelease
    from quadpy.runtime.device.device import Device

_DEFAULT: Final = 1  # the default stream, whose handle is 0, in the interface and in CUDA's DLPack
_PER_THREAD: Final = 2  # a thread's default stream, which is ordered with the default stream in both directions
_UNORDERED: Final = -1
_MANAGED: Final = 13  # kDLCUDAManaged: CUDA's memory on the host and all devices
_NOWHERE: Final = 1 << 12


class DeviceView(NamedTuple):
    """What a launch needs from another library's array on ``device``; see ``HostView``.

    The home of ``block`` is the calling thread's stream, which waits for the library's work so far; ``owner`` keeps the
    memory until all work that uses the block is complete.
    """

    type_key: TypeKey
    abi: tuple[int, ...]
    pointer: int
    nbytes: int
    wide: bool
    writable: bool
    owner: object
    device: Device
    block: Block | None


def dlpack_device(device: Device) -> tuple[int, int]:
    """DLPack's kind and number of ``device``."""
    return DEVICE_KINDS.get(device.driver.name, EXTENSION), device.driver.ordinal


# arrays of other libraries


def is_on_gpu(obj: Any) -> bool:
    """Whether ``obj`` exports GPU memory."""
    with refused_if_broken(obj, "__cuda_array_interface__"):
        if (device := getattr(obj, "__dlpack_device__", None)) is None or not hasattr(obj, "__dlpack__"):
            return hasattr(obj, "__cuda_array_interface__")
    try:
        kind, _ = device()
    except (BufferError, RuntimeError, TypeError, ValueError):  # DLPack has no number for its device
        return False
    return kind not in HOST_KINDS


def describe_device_array(obj: Any, device: Device, element: tuple[int, ...] = ()) -> DeviceView:
    """A view of ``obj``'s memory on ``device``, by DLPack or ``__cuda_array_interface__``, without a copy.

    The calling thread's stream waits for the library's work so far.  ``element`` is the shape of one element as the
    kernel declares it: the last axes of ``obj`` must match it.

    Raises:
        DeviceError: the memory is on another device.
        ArgumentError: a masked array, an invalid stream, or anything that ``describe_host_array`` refuses.
    """
    obj = detached(obj)
    if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        tensor = _import(obj, device)
        return _describe(device, layout_of(tensor), tensor.scalar, tensor, element)
    with refused_if_broken(obj, "__cuda_array_interface__"):
        interface = obj.__cuda_array_interface__
        mask, stream, layout = interface.get("mask"), interface.get("stream"), np.asarray(_NumpyFace(interface))
    if mask is not None:
        raise ArgumentError(
            f"the {type(obj).__name__} is masked, which kernels do not support", hint="fill the gaps first"
        )
    if stream == 0:  # None, or no entry before version 3, means the default stream
        raise ArgumentError(f"the {type(obj).__name__} specifies stream 0, which the interface does not allow")
    device.follow(0 if stream in (None, _DEFAULT, _PER_THREAD) else stream, device.current_stream())
    return _describe(device, layout, None, obj, element)


def _import(obj: Any, device: Device) -> ImportedTensor:
    here = dlpack_device(device)
    with refused_if_broken(obj, "__dlpack_device__"):
        kind, number = map(int, obj.__dlpack_device__())
    if (kind, number) != here and not (kind == _MANAGED and device.driver.name == "cuda"):
        raise DeviceError(
            f"the {type(obj).__name__} is on device {number} of DLPack's kind {kind}, but {device} is device {here[1]} "
            f"of kind {here[0]}",
            hint="copy it to this device or to the host",
        )
    handle = int(device.current_stream().handle)
    return import_tensor(obj, handle or (_DEFAULT if device.driver.name == "cuda" else 0))


def _describe(
    device: Device, layout: Numbers, scalar: Scalar | None, owner: object, element: tuple[int, ...]
) -> DeviceView:
    view = describe_host_array(layout, element)
    home = device.current_stream().timeline
    block = Block(view.pointer, view.nbytes, home, lent=True) if view.nbytes else None
    kind, *rest = view.type_key if scalar is None else renamed(view.type_key, scalar)
    if kind == "nd":
        shape = view.abi[1:]
        kind = device_kind(view.pointer, row_bytes(shape, view.nbytes // (math.prod(shape) or 1)))
    key = type_key(kind, *rest)
    keep = owner if block is None else _borrow(device, block, owner)
    return DeviceView(key, *view[1:6], owner=keep, device=device, block=block)


class _Borrowed:
    """Borrowed memory: ``owner`` keeps that of ``block`` alive."""

    __slots__ = ("__weakref__", "block", "owner")

    def __init__(self, block: Block, owner: object) -> None:
        self.block, self.owner = block, owner


def _borrow(device: Device, block: Block, owner: object) -> _Borrowed:
    """Keep ``owner`` alive as long as the result, and then until the users of ``block`` are complete."""
    device.reaper.drain()
    device.deferred.sweep()
    borrowed = _Borrowed(block, owner)
    device.reaper.adopt(borrowed, functools.partial(_release, device.deferred), (block, owner))
    return borrowed


def _release(deferred: DeferredRelease, lent: tuple[Block, object]) -> None:
    block, owner = lent
    deferred.add(block.users(), _nothing, keep=(owner,))


def _nothing() -> None:
    """Does nothing but drop the kept references."""


class _NumpyFace:
    """Shape, strides and address for NumPy, which never reads the memory."""

    def __init__(self, interface: dict[str, Any]) -> None:
        address, readonly = interface["data"]  # NumPy needs an address, which an empty array may not have
        self.__array_interface__ = {
            **{key: interface.get(key) for key in ("shape", "typestr", "strides", "version")},
            "data": (address or _NOWHERE, readonly),
        }


# quadpy's arrays


def cuda_array_interface(
    device: Device, block: Block | None, pointer: int, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> dict[str, Any]:
    """Version 3 of the interface, for numbers in C order; a consumer waits for the calling thread's stream."""
    stream = device.current_stream()
    _refuse_in_capture(stream)
    if block is not None:
        device.memory.follow_users(block, stream.timeline)
        device.memory.use([block], stream.timeline)
        if (observer := CAPTURES.observer) is not None:
            observer.exported(stream.timeline, device.life, block)
    return {
        "shape": shape,
        "typestr": dtype.str,
        "data": (pointer, False),
        "strides": None,
        "stream": int(stream.handle) or _DEFAULT,
        "version": 3,
    }


def _refuse_in_capture(stream: Stream) -> None:
    """Refuse an export in a capture: the graph would miss the other library's work, which would find no numbers."""
    if (session := session_of(stream)) is not None:
        session.refuse(
            "an export of an array to another library", "export it before the capture, or after a launch of the graph"
        )


def share(storage: DeviceStorage, dtype: Scalar, stream: int | None, max_version: tuple[int, int] | None) -> Any:
    """A DLPack capsule of the numbers of ``storage``.

    ``stream`` is the handle of the consumer's stream, which waits for all work on the numbers so far, as the consumer
    may write them: None for the default stream, -1 for no order.
    """
    device = storage.device
    device.life.check()
    _refuse_in_capture(device.current_stream())
    consumer = None
    if stream != _UNORDERED:
        handle = DEFAULT_STREAM if stream in (None, _DEFAULT, _PER_THREAD) else stream
        consumer = device.borrow_stream(handle)
        storage.announce(consumer, writes=True)
        if (observer := CAPTURES.observer) is not None and storage.block is not None:
            observer.exported(consumer.timeline, device.life, storage.block)
    layout = (storage.layout.shape, storage.layout.strides)
    return export(storage.pointer, dtype, layout, dlpack_device(device), (storage, consumer), max_version)
