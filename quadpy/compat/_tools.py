"""``ti.tools`` without a display: pictures and films as files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from quadpy.compat._painting import array_of, picture_of, pillow
from quadpy.errors import ArgumentError

__all__ = ["PLYWriter", "VideoManager", "imread", "imresize", "imshow", "imwrite"]


def imread(filename: str | Path, channels: int = 0) -> npt.NDArray[np.uint8]:
    """A picture of shape (width, height, channels), from the lower left."""
    with pillow().open(filename) as image:
        pixels = np.asarray(image.convert({1: "L", 3: "RGB", 4: "RGBA"}[channels] if channels else image.mode))
    return np.ascontiguousarray(np.atleast_3d(pixels)[::-1].swapaxes(0, 1))


def imwrite(img: object, filename: str | Path) -> None:
    """Write an array or field of shape (width, height[, channels]), from the lower left; see ``ti.GUI.set_image``."""
    pillow().fromarray(picture_of(img)).save(filename)


def imshow(img: object, title: str = "imshow") -> None:
    """Nothing: there is no display."""


def imresize(img: object, w: int, h: int | None = None) -> npt.NDArray[Any]:
    """``img`` in another size, from the nearest pixels."""
    values, size = array_of(img), (w, w if h is None else h)
    rows, columns = (np.arange(n) * old // n for n, old in zip(size, values.shape, strict=False))
    return values[np.ix_(rows, columns)]


class VideoManager:
    """The frames of a film, as ``frames/000000.png`` and so on in ``output_dir``, and as an animation."""

    def __init__(
        self, output_dir: str | Path, width: int | None = None, height: int | None = None,
        framerate: int = 24, automatic_build: bool = True, **_: object,
    ) -> None:  # fmt: skip
        self.directory, self.frame_directory = str(output_dir), str(Path(output_dir) / "frames")
        self.framerate, self.frame_counter = framerate, 0
        self.frame_fns: list[str] = []
        Path(self.frame_directory).mkdir(parents=True, exist_ok=True)

    def write_frame(self, img: object) -> None:
        """Add one frame."""
        name = f"{self.frame_counter:06d}.png"
        imwrite(img, Path(self.frame_directory) / name)
        self.frame_fns.append(name)
        self.frame_counter += 1

    def write_frames(self, images: list[object]) -> None:
        """Add several frames."""
        for image in images:
            self.write_frame(image)

    def get_output_filename(self, suffix: str) -> str:
        """Where the film goes: ``suffix`` is ``.gif``."""
        return str(Path(self.directory) / f"video{suffix}")

    def make_video(self, mp4: bool = True, gif: bool = True) -> None:
        """``video.gif`` of all frames; there is no MP4."""
        if not gif or not self.frame_fns:
            return
        with ExitStack() as files:
            first, *rest = [
                files.enter_context(pillow().open(Path(self.frame_directory) / name)) for name in self.frame_fns
            ]
            target, duration = self.get_output_filename(".gif"), round(1000 / self.framerate)
            first.save(target, save_all=True, append_images=rest, duration=duration, loop=0)


class PLYWriter:
    """Vertices and faces as a PLY file."""

    def __init__(
        self, num_vertices: int, num_faces: int = 0,
        face_type: Literal["tri", "quad"] = "tri", comment: str = "created by PLYWriter",
    ) -> None:  # fmt: skip
        if num_vertices < 1:
            raise ArgumentError(f"a PLY file has one vertex or more, not {num_vertices}")
        self.num_vertices, self.num_faces, self.face_type, self.comment = num_vertices, num_faces, face_type, comment
        self._channels: dict[str, tuple[str, npt.NDArray[Any]]] = {}
        self._face_channels: dict[str, tuple[str, npt.NDArray[Any]]] = {}
        self._faces: npt.NDArray[np.int32] = np.zeros((0, 3), np.int32)

    def add_vertex_channel(self, key: str, data_type: str, data: object) -> None:
        """A number of each vertex, as a PLY type such as ``float``."""
        values = array_of(data).ravel()
        if values.size != self.num_vertices:
            raise ArgumentError(f"{key}: {values.size} numbers for {self.num_vertices} vertices")
        self._channels[key] = data_type, values

    def add_vertex_pos(self, x: object, y: object, z: object) -> None:
        """Positions."""
        self._add({"x": x, "y": y, "z": z}, "float")

    def add_vertex_normal(self, nx: object, ny: object, nz: object) -> None:
        """Normals."""
        self._add({"nx": nx, "ny": ny, "nz": nz}, "float")

    def add_vertex_color(self, r: object, g: object, b: object) -> None:
        """Colours, from 0 to 1."""
        self._add({"red": r, "green": g, "blue": b}, "float")

    def add_vertex_rgba(self, r: object, g: object, b: object, a: object) -> None:
        """Colours with opacity, from 0 to 1."""
        self._add({"red": r, "green": g, "blue": b, "Alpha": a}, "float")

    def add_vertex_alpha(self, alpha: object) -> None:
        """Opacity, from 0 to 1."""
        self._add({"Alpha": alpha}, "float")

    def add_vertex_piece(self, piece: object) -> None:
        """The number of the piece that each vertex belongs to."""
        self._add({"piece": piece}, "int")

    def add_vertex_vel(self, vx: object, vy: object, vz: object) -> None:
        """Velocities."""
        self._add({"vx": vx, "vy": vy, "vz": vz}, "float")

    def add_vertex_id(self) -> None:
        """The number of each vertex."""
        self.add_vertex_channel("id", "int", np.arange(self.num_vertices))

    def add_faces(self, indices: object) -> None:
        """The corners of each face, by their numbers."""
        self._faces = array_of(indices).reshape(self.num_faces, -1).astype(np.int32)

    def add_face_channel(self, key: str, data_type: str, data: object) -> None:
        """A number of each face, as a PLY type such as ``float``."""
        values = array_of(data).ravel()
        if values.size != self.num_faces:
            raise ArgumentError(f"{key}: {values.size} numbers for {self.num_faces} faces")
        self._face_channels[key] = data_type, values

    def add_face_id(self) -> None:
        """The number of each face."""
        self.add_face_channel("id", "int", np.arange(self.num_faces))

    def add_face_piece(self, piece: object) -> None:
        """The number of the piece that each face belongs to."""
        self.add_face_channel("piece", "int", piece)

    def export(self, path: str | Path) -> None:
        """Write a text file."""
        lines = ["ply", "format ascii 1.0", f"comment {self.comment}", f"element vertex {self.num_vertices}"]
        lines += [f"property {kind} {key}" for key, (kind, _) in self._channels.items()]
        if self.num_faces:
            lines += [f"element face {self.num_faces}", "property list uchar int vertex_indices"]
            lines += [f"property {kind} {key}" for key, (kind, _) in self._face_channels.items()]
        lines.append("end_header")
        lines += [
            " ".join(map(str, row)) for row in zip(*(v.tolist() for _, v in self._channels.values()), strict=True)
        ]
        others = list(zip(*(values.tolist() for _, values in self._face_channels.values()), strict=True))
        for number, face in enumerate(self._faces.tolist()):
            lines.append(" ".join(map(str, [len(face), *face, *(others[number] if others else ())])))
        Path(path).write_text("\n".join(lines) + "\n", encoding="ascii")

    def export_ascii(self, path: str | Path) -> None:
        """As ``export``."""
        self.export(path)

    def export_frame(self, series_num: int, path: str | Path) -> None:
        """As ``export``, to ``path_000000.ply`` and so on."""
        self.export(f"{str(path).removesuffix('.ply')}_{series_num:06d}.ply")

    export_frame_ascii = export_frame

    def _add(self, channels: Mapping[str, object], data_type: str) -> None:
        for key, data in channels.items():
            self.add_vertex_channel(key, data_type, data)
