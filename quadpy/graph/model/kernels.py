"""Kernels as nodes.

A kernel is asked to ``prepare`` its launches; nothing here knows how.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quadpy.errors import ArgumentError, DeviceError, GraphError
from quadpy.flow import has_loop
from quadpy.graph.model.nodes import KernelNode
from quadpy.graph.support import graphs_of
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.launch import HostLaunch, KernelLaunch, Prepared

__all__ = ["is_callee", "kernel_node"]


def kernel_node(device: Device, kernel: Any, *args: Any, priority: int | None = None, **kwargs: Any) -> KernelNode:
    """A node that does what ``kernel(*args)`` would; ``kernel`` may be launches that were prepared before, too.

    Raises:
        ArgumentError: no kernel, or arguments that it does not take.
        DeviceError: it was prepared for another device.
        GraphError: it loops until the device says so, and this device can do that in no graph.
    """
    prepared: Prepared | HostLaunch | KernelLaunch
    if isinstance(kernel, (Prepared, HostLaunch, KernelLaunch)):
        if args or kwargs:
            raise ArgumentError("launches that were prepared take no more arguments")
        prepared, callee = kernel, None
    elif getattr(kernel, "__quadpy_kernel__", False):
        prepared, callee = kernel.prepare(*args, **kwargs), kernel
    else:
        raise ArgumentError(f"{kernel!r} is not a kernel", hint="a Python function can be a node of its own: add_host")
    launches = prepared.launches if isinstance(prepared, Prepared) else (prepared,)
    flow = prepared.flow if isinstance(prepared, Prepared) else ()
    if launches and isinstance(launches[0], HostLaunch) is not ("host" in device.driver.features):
        raise DeviceError(f"a kernel was prepared for another device than {device}", hint="qp.init chooses the device")
    whole = prepared if isinstance(prepared, Prepared) else None
    if whole is not None and (why := _no_loop(device, whole)):
        raise GraphError(
            f"{launches[0].name!r} has a loop that its device decides on, and cannot be a node of a graph: {why}",
            hint="call the kernel beside the graph: it makes a graph of its own",
        )
    keep = [thing for launch in launches for thing in launch.keep]
    for thing in keep:
        there = getattr(thing, "device", None)
        if isinstance(there, Device) and there is not device:
            raise DeviceError(f"{thing!r} is on {there}, and the graph on {device}", hint="copy it there")
    return KernelNode(
        launches=launches,
        flow=flow,
        kernel=callee,
        priority=priority,
        reads=_ranges((*(launch.reads for launch in launches), tuple(whole.conditions.values()) if whole else ())),
        writes=_ranges(launch.writes for launch in launches),
        keep=tuple({id(thing): thing for thing in keep if thing is not None}.values()),
        origin=whole.origin if whole else None,
        arguments=whole.arguments if whole else b"",
        conditions=whole.conditions if whole else {},
    )


def is_callee(thing: object) -> bool:
    """Whether ``kernel_node`` runs it, rather than passing it on as an argument."""
    return isinstance(thing, (Prepared, HostLaunch, KernelLaunch)) or getattr(thing, "__quadpy_kernel__", False) is True


def _no_loop(device: Device, prepared: Prepared) -> str:
    """Why a kernel's loops cannot run in a graph of ``device``; an empty string where they can, or there are none."""
    if not has_loop(prepared.flow):
        return ""
    if prepared.origin is None:
        return "its launches were prepared without the IR of the kernel"
    return "" if "loops" in graphs_of(device).features else prepared.origin.why_not_alone


def _ranges(groups: Iterator[tuple[tuple[int, int], ...]] | Any) -> tuple[tuple[int, int], ...]:
    """All ranges of bytes, each once."""
    return tuple(dict.fromkeys(part for group in groups for part in group if part[1]))
