"""The other project named quadpy: numerical integration, which has that name on PyPI."""

from __future__ import annotations

import warnings
from pathlib import Path

__all__ = ["warn_of_other_project"]


def warn_of_other_project(package: str) -> None:
    """Warn if the other project is installed into the folder ``package``, too.

    Both are imported as ``quadpy``: whichever is installed or uninstalled last overwrites or deletes files of the other.
    """
    if Path(package, "t2").is_dir():  # rules for triangles, in each of its releases
        warnings.warn(
            f"the folder {package} also holds files of another project, which PyPI calls 'quadpy' (numerical integration);"
            " remove both, then install this one:"
            " pip uninstall --yes quadpy quadpy-lang && pip install quadpy-lang",
            stacklevel=3,
        )
