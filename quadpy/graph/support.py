"""The driver's graphs of a device."""

from __future__ import annotations

from quadpy.errors import GraphError
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.graph_driver import GraphDriver

__all__ = ["graphs_of"]


def graphs_of(device: Device) -> GraphDriver:
    """The graph functions of the driver; GraphError for the CPU, whose graphs quadpy runs itself."""
    graphs: GraphDriver | None = getattr(device.driver, "graphs", None)
    if graphs is None:
        raise GraphError(f"the driver of {device} has no graphs")
    return graphs
