"""Runs of the self-test on simulated GPUs, and settings of each test's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quadpy import settings as settings_module
from quadpy.runtime.device.current import current_config, set_config
from quadpy.selftest.runner import Run
from quadpy.selftest.session import Session
from quadpy.selftest.table import chosen

GPU = Path(__file__).parents[1] / "support/running_gpu.py"


@pytest.fixture(autouse=True)
def fresh_settings(monkeypatch, tmp_path):
    """Each test has its own cache folder and reads the settings again."""
    monkeypatch.setenv("QUADPY_CACHE_DIR", str(tmp_path / "cache"))
    settings_module.settings.cache_clear()
    before = current_config()
    yield
    set_config(before)


@pytest.fixture
def on_simulated():
    """Runs checks on a simulated GPU with a fault; gives the session."""

    def run(fault, *only, slow=3.0, quick=True):
        command = [sys.executable, str(GPU), fault]
        run = Run("recording", quick=quick, slow=slow, environ={"QUADPY_CACHE": "0"}, command=command)
        session = Session(run, chosen(quick=quick, only=only), whole=True)
        session.go(print)
        return session

    return run
