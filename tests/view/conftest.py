"""A display for windows, by Xvfb and Mesa's software Vulkan, and pictures of what is on it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator

import numpy as np
import pytest

REQUIRED = "VIEW_TESTS_REQUIRED"  # in the environment: what the tests need must be there, as on CI


def missing() -> str:
    """What the tests of windows need and this machine has not."""
    try:
        import pygfx  # noqa: F401
        import wgpu
    except ImportError as error:
        return f"{error.name}: pip install 'quadpy-lang[view]'"
    if not any("Vulkan" in adapter.summary for adapter in wgpu.gpu.enumerate_adapters_sync()):
        return "a Vulkan driver: apt install mesa-vulkan-drivers"
    return "" if shutil.which("Xvfb") else "Xvfb: apt install xvfb"


@pytest.fixture(scope="session")
def graphics() -> None:
    if lacks := missing():
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(f"windows need {lacks}")


@pytest.fixture(scope="session")
def x_server(graphics) -> Iterator[str]:
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24"]
    process = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()
    yield f":{number}"
    import glfw

    glfw.terminate()  # before its display goes, which would end this process
    process.terminate()
    process.wait()


@pytest.fixture
def display(x_server, monkeypatch) -> Callable[[], np.ndarray]:
    """The pixels of the screen, shape (height, width, 3); windows open there."""
    monkeypatch.setenv("DISPLAY", x_server)

    def grab() -> np.ndarray:
        from PIL import ImageGrab

        return np.asarray(ImageGrab.grab(xdisplay=x_server))[..., :3]

    return grab
