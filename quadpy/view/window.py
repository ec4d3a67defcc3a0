"""A window: what programs draw in, frame by frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quadpy.core.public import public
from quadpy.errors import ArgumentError, QuadpyError
from quadpy.settings import Place
from quadpy.view import shapes
from quadpy.view.events import HANDLED, Event, Inputs
from quadpy.view.host import colors_of, points_of
from quadpy.view.layers import Layer
from quadpy.view.library import library
from quadpy.view.surfaces import surface

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Window"]


class Window:
    """A window that shows arrays and fields, which are drawn again for each frame.

    Positions of two coordinates are fractions of the window, from (0, 0) at the lower left to (1, 1); positions of three
    coordinates are points in space, which ``camera`` sees.  A ``color`` is ``0xRRGGBB``, or three or four numbers from 0 to
    1; an array of colours has one for each position.  What is drawn later covers what was drawn before, except that
    things in space hide each other.  Arrays are read by ``show``: their own memory, without a copy, if they are float32 (or
    bytes, for images) in C order on the host.

    Args:
        title: the text in the window's bar.
        size: width and height in pixels.
        background: a colour, ``0xRRGGBB`` or three numbers from 0 to 1.
        where: ``"screen"``; ``"browser"`` for a page that this process serves; ``"memory"`` for a window that only
            ``picture`` shows.  By default, what ``QUADPY_VIEW`` says, or else the screen.

    Raises:
        QuadpyError: there is no display, no graphics driver, or pygfx is not installed.
    """

    @public
    def __init__(
        self, title: str = "quadpy", size: tuple[int, int] = (640, 480), *,
        background: object = 0, where: Place | None = None,
    ) -> None:  # fmt: skip
        gfx = library("pygfx")
        self.background(background)
        self._surface = surface(title, (int(size[0]), int(size[1])), where)
        self.canvas = self._surface.canvas
        """The canvas of rendercanvas, for features that this class lacks."""
        try:
            self._renderer = gfx.WgpuRenderer(self.canvas, pixel_ratio=1, ppaa="none")
        except RuntimeError as error:
            raise QuadpyError(
                f"no graphics driver: {error}", hint="install Vulkan, for example mesa-vulkan-drivers"
            ) from error
        self._inputs, self._frames = Inputs(), 0
        self.canvas.add_event_handler(self._handle, *HANDLED)
        self._layers: list[Layer] = []
        self._at = -1
        self._view = gfx.PerspectiveCamera(45, depth_range=(0.01, 1000))
        self._view.local.position = 0, 0, 3
        self._orbit: Any = None
        self._target = (0.0, 0.0, 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"frame {self._frames}" if self.running else "closed"
        return f"<quadpy.view.Window, {self.size[0]} x {self.size[1]} pixels, {state}>"

    @property
    def running(self) -> bool:
        """False after the window was closed, by the user or by ``close``."""
        return not self.canvas.get_closed()

    @property
    def on_screen(self) -> bool:
        """Whether a user can see the window."""
        return self._surface.on_screen

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels; the user may change them."""
        width, height = self.canvas.get_logical_size()
        return round(width), round(height)

    def close(self) -> None:
        """Close the window."""
        self._surface.close()

    # what is drawn

    def background(self, color: object) -> None:
        """The background is ``color`` from the next frame on."""
        self._background = library("pygfx").Background.from_color(tuple(colors_of(color, 1).ravel()[:3]))

    def image(
        self, image: object, *, axes: shapes.Axes = "xy", colormap: str | None = None,
        limits: tuple[float, float] = (0.0, 1.0), smooth: bool = False,
    ) -> None:  # fmt: skip
        """An image over the whole window.

        Args:
            image: shape (width, height) or (width, height, channels), of floats, of bytes from 0 to 255, or of 32-bit
                integers ``0xRRGGBB``.
            axes: ``"xy"``: the first axis goes to the right and the second one up; ``"rows"``: shape (height, width[,
                channels]), rows from the top, as files of pictures have it.
            colormap: for numbers without channels: ``"viridis"`` and others of pygfx; by default shades of gray.
            limits: the numbers that are black and white, or the ends of the colormap; for bytes, as parts of 255.
            smooth: interpolate between pixels.
        """
        shapes.put_image(self._layer(flat=True), image, axes, colormap, limits, smooth)

    def points(self, positions: object, *, radius: object = 2.0, color: object = 0xFFFFFF) -> None:
        """Discs at ``positions``, or balls in space.

        ``radius`` is one number, or one for each position: in pixels, or for balls in units of the scene.
        """
        points = points_of(positions)
        if len(points):
            shapes.put_points(self._layer(flat=points.shape[1] == 2), points, radius, color)

    def lines(self, positions: object, indices: object = None, *, width: float = 1.0, color: object = 0xFFFFFF) -> None:
        """Straight lines between the first and the second of ``positions``, the third and the fourth, and so on.

        With ``indices``, each pair of them names the two positions of a line.  ``width`` is in pixels.
        """
        points = points_of(positions)
        if len(points):
            shapes.put_lines(self._layer(flat=points.shape[1] == 2), points, indices, width, color)

    def mesh(
        self, positions: object, indices: object = None, *, normals: object = None, color: object = 0xFFFFFF,
        wireframe: bool = False,
    ) -> None:  # fmt: skip
        """Triangles with corners at ``positions`` in order, or at the triples in ``indices``; in space they are lit.

        ``normals``, one for each position, make surfaces smooth; with ``wireframe``, only edges are drawn.
        """
        points = points_of(positions)
        if len(points):
            layer = self._layer(flat=points.shape[1] == 2)
            shapes.put_mesh(layer, points, indices, normals, color, wireframe)

    def text(self, content: str, position: object, *, size: float = 16.0, color: object = 0xFFFFFF) -> None:
        """The text ``content`` with its upper left corner at ``position``; ``size`` is its height in pixels."""
        where = points_of(position)
        shapes.put_text(self._layer(flat=where.shape[1] == 2), content, where, size, color)

    def camera(
        self, position: object, look_at: object = (0, 0, 0), *, up: object = (0, 1, 0), fov: float = 45.0
    ) -> None:
        """See the scene from ``position`` towards ``look_at``; ``up`` is upwards, ``fov`` the angle from bottom to top in degrees.

        After one call the user can rotate the scene with the mouse; a program that calls this for each frame controls the view itself.
        """
        eye, target, upwards = (points_of(v)[0] for v in (position, look_at, up))
        if not len(eye) == len(target) == len(upwards) == 3 or np.array_equal(eye, target):
            raise ArgumentError("a camera takes a position and a point to look at, of three coordinates each")
        self._view.fov = fov
        self._view.world.reference_up = upwards
        self._view.local.position = eye
        self._view.look_at(np.asarray(target, float))
        self._target = float(target[0]), float(target[1]), float(target[2])
        if self._orbit is not None:
            self._orbit.target = self._target

    def light(self, position: object, color: object = 0xFFFFFF, *, intensity: float = 1.0) -> None:
        """A lamp at ``position`` in space with ``intensity``; in a frame without one the light comes from the camera."""
        shapes.put_light(self._layer(flat=False), points_of(position), color, intensity)

    # frames

    def show(self) -> None:
        """Show what was drawn since the last call, and begin a new frame; in a closed window, only begin one.

        This also handles the user's input: without calls of ``show``, a window does not respond.
        """
        self._surface.handle_events()
        if self.running:
            self._finish_layers()
            self._surface.draw(self._draw)
            self._surface.handle_events()
            self._frames += 1
        self._at = -1

    def picture(self) -> npt.NDArray[np.uint8]:
        """The last frame: shape (height, width, 3), rows from the top.

        Raises:
            QuadpyError: no frame was shown.
        """
        if not self._frames:
            raise QuadpyError("there is no picture before the first frame", hint="call show() first")
        return np.ascontiguousarray(self._renderer.snapshot()[..., :3])

    # what the user does

    def events(self) -> list[Event]:
        """The user's input since the last call of this method."""
        if self.running:
            self._surface.handle_events()
        return self._inputs.take()

    def pressed(self, key: str) -> bool:
        """Whether ``key`` is held: ``"a"``, ``"ArrowUp"``, or ``"left"`` for a button of the mouse."""
        return key in self._inputs.held

    @property
    def pointer(self) -> tuple[float, float]:
        """The last position of the pointer, in fractions of the window."""
        return self._inputs.pointer

    def _handle(self, event: dict[str, Any]) -> None:
        self._inputs.handle(event, self.canvas.get_logical_size())

    def _layer(self, *, flat: bool) -> Layer:
        """The layer for drawing: a new one if flat things follow things in space, or vice versa."""
        if self._at < 0 or self._layers[self._at].flat != flat:
            self._at += 1
            if self._at == len(self._layers) or self._layers[self._at].flat != flat:
                self._layers[self._at :] = [Layer.over_the_window() if flat else self._space()]
            self._layers[self._at].begin()
        return self._layers[self._at]

    def _space(self) -> Layer:
        gfx = library("pygfx")
        if self._orbit is None:
            self._orbit = gfx.OrbitController(self._view, target=self._target, register_events=self._renderer)
        return Layer.in_space(self._view)

    def _finish_layers(self) -> None:
        del self._layers[self._at + 1 :]
        for layer in self._layers:
            layer.end()

    def _draw(self) -> None:
        gfx = library("pygfx")
        # Edges in space are smoothed; otherwise, a pixel of an image is shown as it is.
        smoothing = "none" if all(layer.flat for layer in self._layers) else "ddaa"
        if smoothing != self._renderer.ppaa:
            self._renderer.ppaa = smoothing
        ground = gfx.Scene()
        ground.add(self._background)
        self._renderer.render(ground, gfx.NDCCamera(), flush=False)
        for layer in self._layers:
            if layer.headlight is not None:
                layer.headlight.world.rotation = self._view.world.rotation
            self._renderer.clear(depth=True)
            self._renderer.render(layer.scene, layer.camera, flush=False)
        self._renderer.flush()
