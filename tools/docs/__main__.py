"""Builds the site with Zensical, or serves it: ``python -m tools.docs build --strict``, ``python -m tools.docs serve``.

Zensical finds ``tools.docs.extension`` because ``python -m`` has the current folder on Python's path.
"""

from __future__ import annotations

import sys

from zensical.main import cli

from tools.docs import inventory

if __name__ == "__main__":
    try:
        cli(standalone_mode=False)
    except RuntimeError as error:  # Zensical has printed what is wrong
        sys.exit(str(error))
    if "build" in sys.argv:
        inventory.write()
