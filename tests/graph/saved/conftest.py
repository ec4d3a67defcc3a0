"""Saved graphs: each test begins on the CPU."""

from __future__ import annotations

import pytest

from quadpy.runtime.device.current import Config, current_config, set_config


@pytest.fixture(autouse=True)
def cpu():
    before = current_config()
    set_config(Config(arch="cpu"))
    yield
    set_config(before)
