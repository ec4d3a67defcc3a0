"""Files of pictures, films, meshes and grids, by Taichi's names: ``qp.tools.imwrite(field, "frame.png")``.

Arrays and fields are taken as in kernels: the first axis goes to the right, the second one upwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.tools.grids import write_vtk
from quadpy.tools.meshes import PLYWriter
from quadpy.tools.pictures import imread, imresize, imshow, imwrite
from quadpy.tools.video import Film, VideoManager

__all__ = ["Film", "PLYWriter", "VideoManager", "imread", "imresize", "imshow", "imwrite", "write_vtk"]

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
