"""Builds the site with Zensical, or serves it: ``python docs/_site.py build --strict``, ``python docs/_site.py serve``.

Zensical finds ``_extension`` because Python has the folder of a script on its path.
"""

from __future__ import annotations

import sys

import _inventory
from zensical.main import cli

if __name__ == "__main__":
    try:
        cli(standalone_mode=False)
    except RuntimeError as error:  # Zensical has printed what is wrong
        sys.exit(str(error))
    if "build" in sys.argv:
        _inventory.write()
