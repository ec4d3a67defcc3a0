"""Programs of several streams and threads, on each device of this machine and on a simulated one."""

from __future__ import annotations

from ..runtime.conftest import (  # noqa: TID252 - pytest finds them by their names
    arch,  # noqa: F401 - as above
    cpu_unless_a_test_says_otherwise,  # noqa: F401 - as above
    gpu,  # noqa: F401 - as above
    pytest_generate_tests,  # noqa: F401 - as above
)
