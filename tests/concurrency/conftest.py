"""Programs of several streams and threads, on each device of this machine and on a simulated one."""

from __future__ import annotations

from ..runtime.conftest import arch, gpu, pytest_generate_tests  # noqa: F401, TID252 - fixtures
