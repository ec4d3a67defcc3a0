"""``ti.ui``: windows, canvases and scenes, on the display or without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from quadpy.compat._frames import Frames
from quadpy.compat._gui import GUI
from quadpy.compat._painting import Array, Color, SceneInSpace, Shape, array_of, points_of
from quadpy.compat._refusals import Refusing
from quadpy.compat._window import BaseWindow
from quadpy.tools.pictures import picture_of

__all__ = ["Camera", "Canvas", "Gui", "ProjectionMode", "Scene", "Window"]

_WHITE: Final = (1.0, 1.0, 1.0)


class ProjectionMode:
    """How a camera projects."""

    Perspective, Orthogonal = 0, 1


class Camera(Refusing):
    """The point of view of a scene."""

    def __init__(self) -> None:
        self.curr_position, self.curr_lookat = np.array([0.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
        self.curr_up, self.angle = np.array([0.0, 1.0, 0.0]), 45.0

    def position(self, x: float, y: float, z: float) -> None:
        """The eye."""
        self.curr_position = np.array([x, y, z], float)

    def lookat(self, x: float, y: float, z: float) -> None:
        """The point in the middle of the picture."""
        self.curr_lookat = np.array([x, y, z], float)

    def up(self, x: float, y: float, z: float) -> None:
        """The direction upwards."""
        self.curr_up = np.array([x, y, z], float)

    def fov(self, fov: float) -> None:
        """The angle of view from top to bottom, in degrees."""
        self.angle = fov

    def projection_mode(self, mode: int) -> None:
        """Ignored: pictures are in perspective."""

    def z_near(self, z_near: float) -> None:
        """Ignored."""

    def z_far(self, z_far: float) -> None:
        """Ignored."""

    def track_user_inputs(self, window: Window, **_: object) -> None:
        """Does nothing: there are no such inputs."""

    def project(self, points: Array, aspect: float) -> tuple[Array, Array, float]:
        """Where points of shape (n, 3) appear, from 0 to 1, how far away they are, and the height of 1 at distance 1."""
        forward = self.curr_lookat - self.curr_position
        forward = forward / (np.linalg.norm(forward) or 1.0)
        right = np.cross(forward, self.curr_up)
        right = right / (np.linalg.norm(right) or 1.0)
        upward = np.cross(right, forward)
        relative = points - self.curr_position
        depth = relative @ forward
        scale = 0.5 / np.tan(np.radians(self.angle) / 2)
        near = np.where(depth > 1e-3, depth, np.nan)
        x, y = relative @ right / near * scale / aspect + 0.5, relative @ upward / near * scale + 0.5
        return np.stack([x, y], axis=-1), depth, scale


class Scene(Refusing):
    """Particles, lines and meshes in space."""

    def __init__(self) -> None:
        self.camera = Camera()
        self._ambient: Array = np.zeros(3)
        self._lights: list[tuple[Array, Array]] = []
        self._shapes: list[Shape] = []

    def set_camera(self, camera: Camera) -> None:
        """Look from there."""
        self.camera = camera

    def ambient_light(self, color: object) -> None:
        """Light from everywhere."""
        self._ambient = array_of(color)

    def point_light(self, pos: object, color: object) -> None:
        """Light from a point."""
        self._lights.append((array_of(pos), array_of(color)))

    def particles(
        self, centers: object, radius: float, color: object = (0.5, 0.5, 0.5), per_vertex_color: object = None,
        **_: object,
    ) -> None:  # fmt: skip
        """Balls; ``radius`` in the units of the scene."""
        points = points_of(centers, 3)
        self._shapes.append(Shape(points[:, None], _colors(color, per_vertex_color, len(points)), radius))

    def lines(
        self, vertices: object, width: float, indices: object = None, color: object = (0.5, 0.5, 0.5),
        per_vertex_color: object = None, **_: object,
    ) -> None:  # fmt: skip
        """Straight lines between pairs of vertices."""
        ends, colors = _by_index(points_of(vertices, 3), _colors_of(color, per_vertex_color), indices, 2)
        self._shapes.append(Shape(ends, colors, width))

    def mesh(
        self, vertices: object, indices: object = None, normals: object = None, color: object = (0.5, 0.5, 0.5),
        per_vertex_color: object = None, two_sided: bool = False, **_: object,
    ) -> None:  # fmt: skip
        """Triangles, lit by the lights."""
        corners, colors = _by_index(points_of(vertices, 3), _colors_of(color, per_vertex_color), indices, 3)
        self._shapes.append(Shape(corners, colors, 0.0))

    mesh_instance = mesh

    def taken(self) -> SceneInSpace:
        """The added things; the list is empty afterwards."""
        taken = SceneInSpace(self.camera, self._shapes, self._ambient, self._lights)
        self.clear()
        return taken

    def clear(self) -> None:
        """Start again."""
        self._shapes, self._lights = [], []


class Canvas(Refusing):
    """The contents of a window, in coordinates from 0 to 1."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames

    def set_background_color(self, color: Color) -> None:
        """Start the frame again."""
        self._frames.clear(color)

    def set_image(self, img: object) -> None:
        """A whole picture; see ``GUI.set_image``."""
        picture = picture_of(img)
        self._frames.draw(lambda painting: painting.paste(picture))

    def circles(
        self, centers: object, radius: float, color: object = (0.5, 0.5, 0.5), per_vertex_color: object = None
    ) -> None:
        """Discs; ``radius`` as a part of the height."""
        points = points_of(centers, 2)
        colors = (_colors(color, per_vertex_color, len(points)) * 255).astype(np.uint8)
        size = np.array(max(radius * self._frames.size[1], 0.5))
        self._frames.draw(lambda painting: painting.discs(points, size, colors))

    def lines(
        self, vertices: object, width: float, indices: object = None, color: object = (0.5, 0.5, 0.5),
        per_vertex_color: object = None,
    ) -> None:  # fmt: skip
        """Straight lines between pairs of vertices; ``width`` as a part of the height."""
        ends, colors = _by_index(points_of(vertices, 2), _colors_of(color, per_vertex_color), indices, 2)
        paint, pixels = (colors * 255).astype(np.uint8), width * self._frames.size[1]
        self._frames.draw(lambda painting: painting.lines(ends[:, 0], ends[:, 1], pixels, paint))

    def triangles(
        self, vertices: object, color: object = (0.5, 0.5, 0.5), indices: object = None, per_vertex_color: object = None
    ) -> None:
        """Filled triangles."""
        corners, colors = _by_index(points_of(vertices, 2), _colors_of(color, per_vertex_color), indices, 3)
        paint = (colors * 255).astype(np.uint8)
        self._frames.draw(lambda painting: painting.triangles([corners[:, k] for k in range(3)], paint))

    def scene(self, scene: Scene) -> None:
        """Draw the contents of the scene, which is empty afterwards."""
        now = scene.taken()
        self._frames.draw(lambda surface: surface.scene(now))


class Gui:
    """Widgets that keep their values."""

    @contextmanager
    def sub_window(self, name: str, x: float, y: float, width: float, height: float) -> Iterator[Gui]:
        """A group of widgets."""
        yield self

    def begin(self, name: str, x: float, y: float, width: float, height: float) -> None:
        """Begin a group of widgets."""

    def end(self) -> None:
        """End it."""

    def text(self, text: str, color: object = None) -> None:
        """Does nothing."""

    def checkbox(self, text: str, old_value: bool) -> bool:
        """``old_value``."""
        return old_value

    def slider_int(self, text: str, old_value: int, minimum: int, maximum: int) -> int:
        """``old_value``."""
        return old_value

    def slider_float(self, text: str, old_value: float, minimum: float, maximum: float) -> float:
        """``old_value``."""
        return old_value

    def color_edit_3(self, text: str, old_value: Any) -> Any:
        """``old_value``."""
        return old_value

    def button(self, text: str) -> bool:
        """False: it is never pressed."""
        return False


class Window(BaseWindow):
    """A window of ``res`` pixels; see ``GUI`` for where frames go and when it closes."""

    def __init__(
        self, name: str, res: tuple[int, int] = (640, 480), vsync: bool = False, show_window: bool = True,
        fps_limit: int = 1000, pos: tuple[int, int] = (100, 100),
    ) -> None:  # fmt: skip
        super().__init__(Frames(name, (int(res[0]), int(res[1])), shown=show_window))
        self._canvas, self._scene, self.GUI = Canvas(self._frames), Scene(), Gui()

    def get_canvas(self) -> Canvas:
        """The canvas to draw on."""
        return self._canvas

    def get_scene(self) -> Scene:
        """A scene."""
        return self._scene

    def get_gui(self) -> Gui:
        """Its widgets."""
        return self.GUI

    def get_window_shape(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self._frames.size

    def show(self) -> None:
        """End this frame.

        Raises:
            WindowClosed: the window is closed; a ``SystemExit``.
        """
        self._frames.show()

    def save_image(self, filename: str | Path) -> None:
        """Write the current frame."""
        self._frames.save(filename)

    def get_image_buffer_as_numpy(self) -> npt.NDArray[np.float32]:
        """The frame, shape (width, height, 4), from 0 to 1."""
        return self._image()

    def destroy(self) -> None:
        """Show no more frames."""
        self._frames.close()


def _colors_of(color: object, per_vertex: object) -> Array:
    """Colours from 0 to 1, shape (1 or n, 3)."""
    values = array_of(color if per_vertex is None else per_vertex)
    rows: Array = values.reshape(-1, values.shape[-1])[:, :3].astype(float)
    return rows


def _colors(color: object, per_vertex: object, count: int) -> Array:
    colors: Array = np.clip(np.broadcast_to(_colors_of(color, per_vertex), (count, 3)), 0, 1)
    return colors


def _by_index(points: Array, colors: Array, indices: object, each: int) -> tuple[Array, Array]:
    """Shapes of ``each`` corners, shape (n, each, dim), and a colour for each, the mean of its corners'."""
    numbers: Array = np.arange(len(points)) if indices is None else array_of(indices).ravel()
    numbers = numbers[: len(numbers) // each * each].reshape(-1, each)
    colors = np.broadcast_to(np.clip(colors, 0, 1), (len(points), 3))
    return points[numbers], colors[numbers].mean(axis=1)


def constants() -> dict[str, str]:
    """Keys and kinds of events, by the names that ``ti.ui`` has for them."""
    named = {**vars(BaseWindow), **vars(GUI)}
    return {name: value for name, value in named.items() if name.isupper() and isinstance(value, str)}
