"""Frames in a window of ``quadpy.view``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from quadpy.compat._painting import Array, SceneInSpace
from quadpy.view.window import Window


class OnWindow:
    """A window as the target of drawing."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def paste(self, picture: npt.NDArray[np.uint8]) -> None:
        """Cover everything with ``picture``, rows from the top."""
        self._window.image(picture, axes="rows")

    def discs(self, centers: Array, radius: Array, colors: Array) -> None:
        """Filled discs; one radius, or one for each."""
        self._window.points(centers, radius=radius, color=colors / 255)

    def lines(self, begins: Array, ends: Array, width: float, colors: Array) -> None:
        """Straight lines."""
        pairs = np.stack([begins, ends], axis=1).reshape(-1, begins.shape[-1])
        self._window.lines(pairs, width=max(1.0, width), color=np.repeat(colors / 255, 2, axis=0))

    def triangles(self, corners: Sequence[Array], colors: Array) -> None:
        """Filled triangles: their first corners, their second ones and their third ones."""
        self._window.mesh(np.stack(corners, axis=1).reshape(-1, 2), color=np.repeat(colors / 255, 3, axis=0))

    def text(self, content: str, position: Array, color: Array, size: int) -> None:
        """``content``, with its upper left corner at ``position``."""
        self._window.text(content, position[0], size=size, color=color[0] / 255)

    def scene(self, scene: SceneInSpace) -> None:
        """Things in space; the graphics driver hides covered parts and lights the meshes."""
        window, camera = self._window, scene.camera
        window.camera(camera.curr_position, camera.curr_lookat, up=camera.curr_up, fov=camera.angle)
        for position, color in scene.lights:
            window.light(position[:3], np.clip(color[:3], 0, 1))
        for shape in scene.shapes:
            each = shape.corners.shape[1]
            points, colors = shape.corners.reshape(-1, 3), np.repeat(shape.colors, each, axis=0)
            match each:
                case 1:
                    window.points(points, radius=shape.size, color=colors)
                case 2:
                    window.lines(points, width=max(1.0, shape.size), color=colors)
                case _:
                    window.mesh(points, color=colors)
