"""Arrays of GPUs that libraries show each other by ``__cuda_array_interface__``, which AMD's libraries speak as well.

Owns: DeviceView, describe_device_array, cuda_array_interface.  Imports: errors, interop, devices, NumPy.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from quadpy.errors import ArgumentError
from quadpy.runtime.allocators.block import Block
from quadpy.runtime.device import Device
from quadpy.runtime.interop import TypeKey, describe_host_array, type_key

__all__ = ["DeviceView", "cuda_array_interface", "describe_device_array"]

_DEFAULT: Final = 1  # how the interface names the default stream, whose handle is 0
_NOWHERE: Final = 1 << 12


class DeviceView(NamedTuple):
    """What a launch needs to know of memory that another library has on ``device``; see ``interop.HostView``.

    The home of ``block`` is the stream that the library names, so what uses the block comes after its work so far.
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


def cuda_array_interface(
    device: Device, block: Block | None, pointer: int, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> dict[str, Any]:
    """Version 3 of the interface, of numbers in C order; the calling thread's stream is the one to wait for."""
    stream = device.current_stream()
    if block is not None:
        device.memory.follow_writers(block, stream.timeline)
        device.memory.use([block], stream.timeline)
    return {
        "shape": shape,
        "typestr": dtype.str,
        "data": (pointer, False),
        "strides": None,
        "stream": int(stream.handle) or _DEFAULT,
        "version": 3,
    }


def describe_device_array(obj: Any, device: Device, element: tuple[int, ...] = ()) -> DeviceView:
    """A view of the memory of ``device`` that ``obj`` shows by ``__cuda_array_interface__``, without a copy.

    ``element`` is the shape of one element as the kernel declares it: the last axes of ``obj`` must match it.

    Raises:
        ArgumentError: a masked array, an invalid stream, or what ``describe_host_array`` refuses.
    """
    shown = obj.__cuda_array_interface__
    if shown.get("mask") is not None:
        raise ArgumentError(
            f"the {type(obj).__name__} is masked, and kernels know no masks", hint="fill the gaps first"
        )
    stream = shown.get("stream")  # None, or left out before version 3: then the library works on the default one
    if stream == 0:
        raise ArgumentError(f"the {type(obj).__name__} names the stream 0, which the interface does not allow")
    address, readonly = shown["data"]
    shown = {
        **shown,
        "data": (address or _NOWHERE, readonly),
    }  # an empty array may have no address, and NumPy wants one
    view = describe_host_array(np.asarray(_Layout(shown)), element)
    home = device.borrow_stream(0 if stream in (None, _DEFAULT) else stream)
    block = Block(view.pointer, view.nbytes, home.timeline) if view.nbytes else None
    kind, *rest = view.type_key
    key = type_key("device" if kind == "nd" else kind, *rest)
    return DeviceView(key, *view[1:6], owner=(obj, home), device=device, block=block)


class _Layout:
    """Shape, strides and address for NumPy, which computes with them and never reads the memory."""

    def __init__(self, shown: dict[str, Any]) -> None:
        self.__array_interface__ = {key: shown.get(key) for key in ("shape", "typestr", "data", "strides", "version")}
