"""Grids as VTK files, written by pyevtk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.tools.libraries import library
from quadpy.view.host import on_host

__all__ = ["write_vtk"]


@public
def write_vtk(
    field: object, filename: str | Path, *, spacing: tuple[float, float, float] = (1.0, 1.0, 1.0), vectors: bool = False
) -> Path:
    """Write a grid as ``filename.vti``, which ParaView and others open; each element is a cell.

    Args:
        field: an array or field with two or three axes.
        filename: the name of the file, and of the data in it; ``.vti`` is appended.
        spacing: the size of a cell.
        vectors: the last axis of the data are the two or three components of vectors.

    Returns:
        The path of the file.

    Raises:
        ArgumentError: the data has another number of axes.
        QuadpyError: pyevtk is not installed.
    """
    values = on_host(field)
    axes = values.ndim - vectors
    if axes not in (2, 3) or (vectors and values.shape[-1] not in (2, 3)):
        raise ArgumentError(f"a VTK file needs a grid with 2 or 3 axes, but this data has the shape {values.shape}")
    if values.dtype.kind in "bc" or values.dtype.itemsize < (4 if values.dtype.kind == "f" else 1):
        values = values.astype(np.uint8 if values.dtype.kind == "b" else np.float32)
    parts = [values[..., k] for k in range(values.shape[-1])] if vectors else [values]
    if len(parts) == 2:
        parts.append(np.zeros_like(parts[0]))
    # pyevtk takes an array's bytes in Fortran's order.
    cells = [np.asfortranarray(part.reshape(*part.shape, *[1] * (3 - axes))) for part in parts]
    target = Path(filename)
    if target.suffix in (".vti", ".vtr", ".vtk"):
        target = target.with_suffix("")
    data = {target.name: tuple(cells) if vectors else cells[0]}
    written = library("pyevtk.hl", "VTK files").imageToVTK(str(target), spacing=spacing, cellData=data)
    return Path(written)
