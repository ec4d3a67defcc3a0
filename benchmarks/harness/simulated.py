"""The simulated device, with kernels that do nothing: what calls cost the host, and whether a benchmark runs."""

from __future__ import annotations

import sys
from pathlib import Path

from quadpy.codegen.support.argument_upload import UPLOAD_SIZES, upload_name
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, set_config
from quadpy.runtime.device.device import Device

sys.path.append(str(Path(__file__).parents[2] / "tests/support"))
from simulated_gpu.driver import RecordedKernel, RecordingDriver


class _Anything(dict[str, RecordedKernel]):
    """Kernels that do nothing."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> RecordedKernel:
        return RecordedKernel(lambda _: None)


def open_simulated() -> None:
    """Makes it the current device of this process."""
    driver = RecordingDriver(history=False)
    driver.kernels = _Anything()
    assert upload_name(UPLOAD_SIZES[0]) in driver.kernels
    devices._open["recording", 0] = Device(driver)  # noqa: SLF001 - a device that no user opens
    set_config(Config(arch="recording"))
