"""Meshes and points as PLY files, written by plyfile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.tools.libraries import library
from quadpy.view.host import on_host

__all__ = ["TYPES", "PLYWriter"]

TYPES: Final = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4", "double": "f8",
}  # fmt: skip
"""The types of numbers in PLY files, by their names there."""

_Channels = dict[str, npt.NDArray[Any]]


class PLYWriter:
    """Vertices and faces as a PLY file.

    Args:
        num_vertices: how many vertices, at least one.
        num_faces: how many faces.
        face_type: ``"tri"`` for triangles, ``"quad"`` for faces with four corners.
        comment: a line in the file.

    Raises:
        ArgumentError: a number or the type is invalid.
    """

    @public
    def __init__(
        self, num_vertices: int, num_faces: int = 0,
        face_type: Literal["tri", "quad"] = "tri", comment: str = "created by PLYWriter",
    ) -> None:  # fmt: skip
        if num_vertices < 1 or num_faces < 0:
            raise ArgumentError(f"a PLY file has one vertex or more, not {num_vertices}, and {num_faces} faces")
        if face_type not in ("tri", "quad"):
            raise ArgumentError(f"face_type={face_type!r} is not a type of faces", hint="use 'tri' or 'quad'")
        self.num_vertices, self.num_faces, self.face_type, self.comment = num_vertices, num_faces, face_type, comment
        self._channels: _Channels = {}
        self._face_channels: _Channels = {}

    def add_vertex_channel(self, key: str, data_type: str, data: object) -> None:
        """``data``, one number for each vertex, under the name ``key``; ``data_type`` is one of PLY's, such as ``float``.

        Raises:
            ArgumentError: the type is not a PLY type, or there is not one number for each vertex.
        """
        self._channels[key] = _numbers(key, data_type, data, self.num_vertices, "vertices")

    def add_vertex_pos(self, x: object, y: object, z: object) -> None:
        """Positions ``x``, ``y``, ``z``: an array of numbers each."""
        self._add({"x": x, "y": y, "z": z}, "float")

    def add_vertex_normal(self, nx: object, ny: object, nz: object) -> None:
        """Normals ``nx``, ``ny``, ``nz``: an array of numbers each."""
        self._add({"nx": nx, "ny": ny, "nz": nz}, "float")

    def add_vertex_color(self, r: object, g: object, b: object) -> None:
        """Colours ``r``, ``g``, ``b``: an array of numbers from 0 to 1 each."""
        self._add({"red": r, "green": g, "blue": b}, "float")

    def add_vertex_rgba(self, r: object, g: object, b: object, a: object) -> None:
        """Colours ``r``, ``g``, ``b`` with opacity ``a``: an array of numbers from 0 to 1 each."""
        self._add({"red": r, "green": g, "blue": b, "Alpha": a}, "float")

    def add_vertex_alpha(self, alpha: object) -> None:
        """Opacity ``alpha``: an array of numbers from 0 to 1."""
        self._add({"Alpha": alpha}, "float")

    def add_vertex_piece(self, piece: object) -> None:
        """The number ``piece`` of the piece that each vertex belongs to."""
        self._add({"piece": piece}, "int")

    def add_vertex_vel(self, vx: object, vy: object, vz: object) -> None:
        """Velocities ``vx``, ``vy``, ``vz``: an array of numbers each."""
        self._add({"vx": vx, "vy": vy, "vz": vz}, "float")

    def add_vertex_id(self) -> None:
        """The number of each vertex."""
        self.add_vertex_channel("id", "int", np.arange(self.num_vertices))

    def add_faces(self, indices: object) -> None:
        """The corners of each face, by their numbers ``indices``.

        Raises:
            ArgumentError: they do not fit the number and type of the faces, or are not numbers of vertices.
        """
        corners, each = on_host(indices).ravel(), 3 if self.face_type == "tri" else 4
        if corners.size != self.num_faces * each:
            raise ArgumentError(f"{corners.size} corners for {self.num_faces} faces of {each}")
        if corners.size and not (corners.min() >= 0 and corners.max() < self.num_vertices):
            raise ArgumentError(
                f"the corners range from {corners.min()} to {corners.max()}, but there are {self.num_vertices} vertices"
            )
        self._face_channels = {"vertex_indices": corners.reshape(-1, each).astype(np.int32), **self._face_channels}

    def add_face_channel(self, key: str, data_type: str, data: object) -> None:
        """``data``, one number for each face, under the name ``key``; ``data_type`` is one of PLY's, such as ``float``.

        Raises:
            ArgumentError: the type is not a PLY type, or there is not one number for each face.
        """
        self._face_channels[key] = _numbers(key, data_type, data, self.num_faces, "faces")

    def add_face_id(self) -> None:
        """The number of each face."""
        self.add_face_channel("id", "int", np.arange(self.num_faces))

    def add_face_piece(self, piece: object) -> None:
        """The number ``piece`` of the piece that each face belongs to."""
        self.add_face_channel("piece", "int", piece)

    def export(self, path: str | Path) -> None:
        """Write a binary file to ``path``.

        Raises:
            QuadpyError: plyfile is not installed.
        """
        self._export(path, text=False)

    def export_ascii(self, path: str | Path) -> None:
        """Write a text file to ``path``."""
        self._export(path, text=True)

    def export_frame(self, series_num: int, path: str | Path) -> None:
        """Like ``export``; ``series_num`` is appended to the name in ``path``: ``path_000000.ply`` and so on."""
        self.export(_numbered(path, series_num))

    def export_frame_ascii(self, series_num: int, path: str | Path) -> None:
        """Like ``export_ascii``; ``series_num`` is appended to the name in ``path``: ``path_000000.ply`` and so on."""
        self.export_ascii(_numbered(path, series_num))

    def _add(self, channels: Mapping[str, object], data_type: str) -> None:
        for key, data in channels.items():
            self.add_vertex_channel(key, data_type, data)

    def _export(self, path: str | Path, *, text: bool) -> None:
        ply = library("plyfile", "PLY files")
        if self.num_faces and "vertex_indices" not in self._face_channels:
            raise ArgumentError(f"{self.num_faces} faces without corners", hint="call add_faces")
        elements = [ply.PlyElement.describe(_rows(self._channels, self.num_vertices), "vertex")]
        if self.num_faces:
            sizes = {"len_types": {"vertex_indices": "u1"}, "val_types": {"vertex_indices": "i4"}}
            elements.append(ply.PlyElement.describe(_rows(self._face_channels, self.num_faces), "face", **sizes))
        ply.PlyData(elements, text=text, byte_order="<", comments=[self.comment]).write(str(path))


def _numbers(key: str, data_type: str, data: object, count: int, what: str) -> npt.NDArray[Any]:
    if data_type not in TYPES:
        raise ArgumentError(f"{key}: {data_type!r} is not a PLY type", hint=f"use {', '.join(TYPES)}")
    values = on_host(data).ravel()
    if values.size != count:
        raise ArgumentError(f"{key}: {values.size} numbers for {count} {what}")
    return values.astype(TYPES[data_type])


def _rows(channels: _Channels, count: int) -> npt.NDArray[Any]:
    rows = np.empty(count, [(key, values.dtype, values.shape[1:]) for key, values in channels.items()])
    for key, values in channels.items():
        rows[key] = values
    return rows


def _numbered(path: str | Path, number: int) -> str:
    return f"{str(path).removesuffix('.ply')}_{number:06d}.ply"
