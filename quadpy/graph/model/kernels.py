"""Kernels as nodes.

A kernel is asked to ``prepare`` its launches; this module does not know how.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quadpy.core.flow import has_loop
from quadpy.errors import ArgumentError, DeviceError, GraphError
from quadpy.graph.device_graphs import graphs_of
from quadpy.graph.model.arguments import integer_of
from quadpy.graph.model.nodes import Call, KernelNode
from quadpy.runtime.device.device import Device
from quadpy.runtime.launch.launch import HostLaunch, KernelLaunch, MemoryRange, Prepared


def kernel_node(device: Device, kernel: Any, *args: Any, priority: int | None = None, **kwargs: Any) -> KernelNode:
    """A node that does what ``kernel(*args)`` would; ``kernel`` may be launches that were prepared before, too.

    Raises:
        ArgumentError: no kernel, or arguments that it does not take.
        DeviceError: it was prepared for another device.
        GraphError: it loops until the device says so, and this device can do that in no graph.
    """
    if priority is not None and integer_of(priority) is None:
        raise ArgumentError(f"priority={priority!r} is not an int", hint="lower goes first; None leaves it open")
    prepared, callee = _prepared(kernel, args, kwargs)
    call = None if callee is None else Call((kernel, *args), {"priority": priority, **kwargs})
    return node_of_launches(device, prepared, callee, integer_of(priority), call)


def node_of_launches(
    device: Device, prepared: Prepared | HostLaunch | KernelLaunch, kernel: object = None, priority: int | None = None,
    call: Call | None = None,
) -> KernelNode:  # fmt: skip
    """A node for ``prepared``, the launches of a call of ``kernel``."""
    whole = prepared if isinstance(prepared, Prepared) else Prepared(())  # for bare launches nothing else is known
    launches = prepared.launches if isinstance(prepared, Prepared) else (prepared,)
    keep = tuple({id(thing): thing for launch in launches for thing in launch.keep if thing is not None}.values())
    _require_fit(device, launches, whole, keep)
    reads = _ranges((*(launch.reads for launch in launches), tuple(whole.conditions.values())))
    writes = _ranges(launch.writes for launch in launches)
    return KernelNode.of(
        whole, launches=launches, kernel=kernel, priority=priority, reads=reads, writes=writes, keep=keep, call=call
    )


def _prepared(
    kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Prepared | HostLaunch | KernelLaunch, object]:
    """The launches, and the kernel that prepared them; None for launches that were prepared before."""
    if isinstance(kernel, (Prepared, HostLaunch, KernelLaunch)):
        if args or kwargs:
            raise ArgumentError("prepared launches take no further arguments")
        return kernel, None
    if not getattr(kernel, "__quadpy_kernel__", False):
        raise ArgumentError(f"{kernel!r} is not a kernel", hint="a Python function can be a node of its own: add_host")
    return kernel.prepare(*args, **kwargs), kernel


def _require_fit(
    device: Device, launches: Sequence[KernelLaunch | HostLaunch], prepared: Prepared, keep: Iterable[object]
) -> None:
    """The launches are of ``device``, and can be in a graph."""
    if launches and isinstance(launches[0], HostLaunch) is not ("host" in device.driver.features):
        raise DeviceError(f"a kernel was prepared for another device than {device}", hint="qp.init chooses the device")
    if why := _no_loop(device, prepared):
        raise GraphError(
            f"{launches[0].name!r} has a loop that its device decides on, and cannot be a node of a graph: {why}",
            hint="call the kernel outside of the graph: it makes a graph of its own",
        )
    for thing in keep:
        there = getattr(thing, "device", None)
        if isinstance(there, Device) and there is not device:
            raise DeviceError(f"{thing!r} is on {there}, and the graph on {device}", hint="copy it there")


def is_callee(thing: object) -> bool:
    """Whether ``kernel_node`` runs it, rather than passing it on as an argument."""
    return isinstance(thing, (Prepared, HostLaunch, KernelLaunch)) or getattr(thing, "__quadpy_kernel__", False) is True


def _no_loop(device: Device, prepared: Prepared) -> str:
    """Why a kernel's loops cannot run in a graph of ``device``; an empty string where they can, or there are none."""
    if not has_loop(prepared.flow):
        return ""
    if prepared.origin is None:
        return "its launches were prepared without the IR of the kernel"
    alone = "loops" not in graphs_of(device).features and not prepared.origin.repeatable
    return prepared.origin.why_not_alone if alone else ""


def _ranges(groups: Iterable[tuple[MemoryRange, ...]]) -> tuple[MemoryRange, ...]:
    """All ranges of bytes, each once."""
    return tuple(dict.fromkeys(part for group in groups for part in group if part[1]))
