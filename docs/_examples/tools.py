"""Examples of pictures, films and files."""

from __future__ import annotations

import contextlib

import numpy as np

import quadpy as qp


def example_imwrite() -> None:
    picture = qp.field(qp.f32, (64, 48))  # from 0 to 1; the first axis goes to the right
    picture.fill(0.5)
    qp.tools.imwrite(picture, "grey.png")
    print(qp.tools.imread("grey.png").shape)  # (64, 48, 3)


def example_imresize() -> None:
    print(qp.tools.imresize(np.zeros((64, 48, 3), np.uint8), 32).shape)  # (32, 32, 3)


def example_imshow() -> None:
    with contextlib.suppress(qp.QuadpyError):  # there is no display
        qp.tools.imshow(np.zeros((64, 64), np.float32), "black")  # until its window is closed


def example_Film() -> None:
    density = qp.field(qp.f32, (64, 48))
    with qp.tools.Film("density.mp4", framerate=30) as film:
        for frame in range(10):
            density.fill(frame / 10)
            film.add(density)


def example_VideoManager() -> None:
    video = qp.tools.VideoManager("film", framerate=24)
    for _ in range(3):
        video.write_frame(np.zeros((64, 48, 3), np.uint8))
    video.make_video(mp4=True, gif=False)


def example_PLYWriter() -> None:
    writer = qp.tools.PLYWriter(num_vertices=3, num_faces=1)
    writer.add_vertex_pos([0, 1, 0], [0, 0, 1], [0, 0, 0])
    writer.add_faces([0, 1, 2])
    writer.export("triangle.ply")


def example_write_vtk() -> None:
    qp.tools.write_vtk(np.zeros((8, 8, 8), np.float32), "density")  # density.vti, for ParaView
