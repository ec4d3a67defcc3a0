"""The driver's graphs of a device, and the memory that they hold."""

from __future__ import annotations

from quadpy.core.public import public
from quadpy.errors import GraphError
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_or_current
from quadpy.runtime.drivers.careful_graphs import CarefulGraphs
from quadpy.runtime.drivers.graph_driver import GraphDriver, GraphMemory


def graphs_of(device: Device) -> GraphDriver:
    """The graph functions of the driver; GraphError for the CPU, whose graphs quadpy runs itself."""
    if device.graphs is None:
        inner: GraphDriver | None = getattr(device.driver, "graphs", None)
        if inner is None:
            raise GraphError(f"the driver of {device} has no graphs")
        careful = any(name.endswith("graphs") or name.startswith("graph") for name in device.off)
        device.graphs = CarefulGraphs(device.driver, inner, device.off) if careful else inner
    return device.graphs


@public
def memory_info(device: Device | None = None) -> GraphMemory:
    """How many bytes the alloc nodes of graphs hold on ``device``, by default the current one; 0 on the CPU."""
    here = device_or_current(device)
    here.life.check()
    if "host" in here.driver.features:
        return GraphMemory(0, 0, 0, 0)
    return graphs_of(here).memory()


@public
def trim(device: Device | None = None) -> None:
    """Return unused memory that graphs on ``device`` keep for their next launch to the system; waits for the device."""
    here = device_or_current(device)
    here.synchronize()
    if "host" not in here.driver.features:
        graphs_of(here).trim_memory()
