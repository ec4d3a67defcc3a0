"""Whether a device has graphs.  Owns: graphs_of.  Imports: errors, devices, the graphs' protocol."""

from __future__ import annotations

from quadpy.errors import GraphError
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.graph_driver import GraphDriver

__all__ = ["graphs_of"]


def graphs_of(device: Device) -> GraphDriver:
    """The driver's graphs; GraphError for the CPU, whose graphs quadpy runs itself."""
    graphs: GraphDriver | None = getattr(device.driver, "graphs", None)
    if graphs is None:
        raise GraphError(f"{device} has no graphs of its own")
    return graphs
