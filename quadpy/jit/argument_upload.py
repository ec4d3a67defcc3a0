"""The kernels that put arguments into a device's memory, loaded.  Owns: putters_on.  Imports: ``codegen``, ``runtime``."""

from __future__ import annotations

from quadpy.codegen.support.argument_upload import PUT_SIZES, put_name, putter_code
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.driver import FunctionHandle
from quadpy.target import parse_target

__all__ = ["putters_on"]


def putters_on(device: Device) -> dict[int, FunctionHandle]:
    """For ``ArgumentMemory``; DriverError where the driver refuses them."""
    module = device.modules.load(putter_code(parse_target(device.driver.info.arch)))
    return {size: module.function(put_name(size)) for size in PUT_SIZES}
