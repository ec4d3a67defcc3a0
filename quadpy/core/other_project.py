"""The other project named quadpy: numerical integration, which has that name on PyPI."""

from __future__ import annotations

import os
import warnings


def warn_of_other_project(package: str) -> None:
    """Warn if the other project is installed into the folder ``package``, too.

    Both are imported as ``quadpy``: whichever is installed or uninstalled last overwrites or deletes files of the other.
    """
    rules_for_triangles = f"{package}{os.sep}t2"  # in each of its releases
    if os.path.isdir(rules_for_triangles):  # noqa: PTH112 - to import pathlib would take 4 ms
        warnings.warn(
            f"the folder {package} also holds files of another project, which PyPI calls 'quadpy' (numerical integration);"
            " remove both, then install this one:"
            " pip uninstall --yes quadpy quadpy-lang && pip install quadpy-lang",
            stacklevel=3,
        )
