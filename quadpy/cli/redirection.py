"""Where a program prints that a command runs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

__all__ = ["on_stderr"]


@contextlib.contextmanager
def on_stderr() -> Iterator[None]:
    """What Python, libraries and child processes print to stdout goes to stderr meanwhile."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
