"""The name that ``quadpy_pytest`` had, for ``-p`` and for installations of that time."""

from quadpy_pytest import pytest_addoption, pytest_configure, quadpy_hazards

__all__ = ["pytest_addoption", "pytest_configure", "quadpy_hazards"]
