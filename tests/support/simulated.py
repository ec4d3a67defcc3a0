"""A simulated GPU as the current device, on which every kernel exists and only records its launches."""

from __future__ import annotations

import contextlib

from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.drivers.simulated.driver import RecordedKernel, RecordingDriver


class AnyKernel(dict):
    """Has every kernel; ``log`` has the argument block of each launch."""

    def __init__(self):
        self.log = []

    def __contains__(self, name):
        return True

    def __getitem__(self, name):
        def touches(block):
            self.log.append((name, block))
            return (), ()

        return RecordedKernel(lambda block: None, touches)


@contextlib.contextmanager
def gpu():
    """A simulated device as the current one."""
    before, driver = current_config(), RecordingDriver()
    driver.kernels = AnyKernel()
    device = devices._open["recording", 0] = Device(driver)
    set_config(Config(arch="recording"))
    try:
        yield device
    finally:
        set_config(before)
        del devices._open["recording", 0]
        device.close()
    assert set(driver.left_open().values()) == {0}


def launched(device) -> list[tuple[object, ...]]:
    """Each launch: the task, its block of arguments, its grid, its stream."""
    calls = [call.arguments for call in device.driver.calls if call.verb == "launch"]
    return [(*logged, call[1], call[4]) for logged, call in zip(device.driver.kernels.log, calls, strict=True)]
