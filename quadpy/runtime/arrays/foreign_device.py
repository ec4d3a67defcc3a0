"""Arrays of GPUs that libraries show each other: by DLPack, and by ``__cuda_array_interface__``, which AMD's speak as well.

Owns: DeviceView, lies_on_gpu, describe_device_array, cuda_array_interface, share.  Imports: errors, interop, devices,
DLPack, NumPy.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final, NamedTuple

import numpy as np

from quadpy.dtypes import Scalar
from quadpy.errors import ArgumentError, DeviceError
from quadpy.runtime.arrays.dlpack import DEVICE_KINDS, EXTENSION, export
from quadpy.runtime.arrays.dlpack_import import Taken, take
from quadpy.runtime.arrays.foreign_host import (
    HOST_KINDS,
    TypeKey,
    describe_host_array,
    device_kind,
    layout_of,
    refused_if_broken,
    renamed,
    row_bytes,
    type_key,
)
from quadpy.runtime.device.deferred_release import DeferredRelease
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import DEFAULT_STREAM
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.streams.stream import Stream

__all__ = ["DeviceView", "cuda_array_interface", "describe_device_array", "lies_on_gpu", "place_of", "share"]

_DEFAULT: Final = 1  # how the interface, and DLPack of CUDA, name the default stream, whose handle is 0
_PER_THREAD: Final = 2  # a thread's own default stream waits for the default one, and that one for it
_UNORDERED: Final = -1
_MANAGED: Final = 13  # kDLCUDAManaged: CUDA's, on the host and every device
_NOWHERE: Final = 1 << 12


class DeviceView(NamedTuple):
    """What a launch needs to know of memory that another library has on ``device``; see ``interop.HostView``.

    The home of ``block`` is the calling thread's stream, which waits for the library's work so far; ``owner`` keeps the
    memory until all work that uses the block is done.
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


def place_of(device: Device) -> tuple[int, int]:
    """``device`` as DLPack counts devices: its kind, and its number."""
    return DEVICE_KINDS.get(device.driver.name, EXTENSION), device.driver.ordinal


# theirs


def lies_on_gpu(obj: Any) -> bool:
    """Whether ``obj`` shows memory of a GPU."""
    with refused_if_broken(obj, "__cuda_array_interface__"):
        if (place := getattr(obj, "__dlpack_device__", None)) is None or not hasattr(obj, "__dlpack__"):
            return hasattr(obj, "__cuda_array_interface__")
    try:
        kind, _ = place()
    except (BufferError, RuntimeError, TypeError, ValueError):  # it lies where DLPack knows no device
        return False
    return kind not in HOST_KINDS


def describe_device_array(obj: Any, device: Device, element: tuple[int, ...] = ()) -> DeviceView:
    """A view of the memory of ``device`` that ``obj`` shows by DLPack or ``__cuda_array_interface__``, without a copy.

    The calling thread's stream waits for what the library did with it so far.  ``element`` is the shape of one element
    as the kernel declares it: the last axes of ``obj`` must match it.

    Raises:
        DeviceError: the memory lies on another device.
        ArgumentError: a masked array, an invalid stream, or what ``describe_host_array`` refuses.
    """
    if hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__"):
        taken = _take(obj, device)
        return _describe(device, layout_of(taken), taken.scalar, taken, element)
    with refused_if_broken(obj, "__cuda_array_interface__"):
        shown = obj.__cuda_array_interface__
        mask, stream, layout = shown.get("mask"), shown.get("stream"), np.asarray(_Layout(shown))
    if mask is not None:
        raise ArgumentError(
            f"the {type(obj).__name__} is masked, and kernels know no masks", hint="fill the gaps first"
        )
    if stream == 0:  # None, or left out before version 3: then the library works on the default one
        raise ArgumentError(f"the {type(obj).__name__} names the stream 0, which the interface does not allow")
    device.follow(0 if stream in (None, _DEFAULT, _PER_THREAD) else stream, device.current_stream())
    return _describe(device, layout, None, obj, element)


def _take(obj: Any, device: Device) -> Taken:
    here = place_of(device)
    with refused_if_broken(obj, "__dlpack_device__"):
        kind, number = map(int, obj.__dlpack_device__())
    place = kind, number
    if place != here and not (place[0] == _MANAGED and device.driver.name == "cuda"):
        raise DeviceError(
            f"the {type(obj).__name__} lies on device {place[1]} of DLPack's kind {place[0]}, and {device} is device "
            f"{here[1]} of kind {here[0]}",
            hint="copy it there, or to the host",
        )
    handle = int(device.current_stream().handle)
    return take(obj, handle or (_DEFAULT if device.driver.name == "cuda" else 0))


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
    """There is nothing to give back but what is kept."""


class _Layout:
    """Shape, strides and address for NumPy, which computes with them and never reads the memory."""

    def __init__(self, shown: dict[str, Any]) -> None:
        address, readonly = shown["data"]  # an empty array may have no address, and NumPy wants one
        self.__array_interface__ = {
            **{key: shown.get(key) for key in ("shape", "typestr", "strides", "version")},
            "data": (address or _NOWHERE, readonly),
        }


# quadpy's


def cuda_array_interface(
    device: Device, block: Block | None, pointer: int, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> dict[str, Any]:
    """Version 3 of the interface, of numbers in C order; the calling thread's stream is the one to wait for."""
    stream = device.current_stream()
    _refuse_in_capture(stream)
    if block is not None:
        device.memory.follow_users(block, stream.timeline)
        device.memory.use([block], stream.timeline)
    return {
        "shape": shape,
        "typestr": dtype.str,
        "data": (pointer, False),
        "strides": None,
        "stream": int(stream.handle) or _DEFAULT,
        "version": 3,
    }


def _refuse_in_capture(stream: Stream) -> None:
    """What another library does with the memory would not be in the graph, and would find no numbers there."""
    if (session := session_of(stream)) is not None:
        session.refuse("an array that is shown to another library", "show it before the capture, or behind a launch")


def share(storage: DeviceStorage, dtype: Scalar, stream: int | None, max_version: tuple[int, int] | None) -> Any:
    """A capsule of DLPack's, of the numbers of ``storage``.

    ``stream`` is the handle of the stream that the consumer works on, which waits for all work on the numbers so far,
    as it may write them: None for the default one, -1 for no order at all.
    """
    device = storage.device
    device.life.check()
    _refuse_in_capture(device.current_stream())
    consumer = None
    if stream != _UNORDERED:
        handle = DEFAULT_STREAM if stream in (None, _DEFAULT, _PER_THREAD) else stream
        consumer = device.borrow_stream(handle)
        storage.announce(consumer, writes=True)
    layout = (storage.layout.shape, storage.layout.strides)
    return export(storage.pointer, dtype, layout, place_of(device), (storage, consumer), max_version)
