"""Fixtures for the tests of the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quadpy.runtime.device.current import current_config, set_config


@pytest.fixture
def sample() -> str:
    """The file with the kernels to compile."""
    return str(Path(__file__).with_name("sample.py"))


@pytest.fixture(autouse=True)
def process_as_it_was(monkeypatch):
    """Loading a kernel extends the module path, and ``--fast-math`` changes the configuration."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = current_config()
    yield
    set_config(before)
