"""``ti.GUI``: drawing on frames, on the display or without one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from quadpy.compat._frames import Frames
from quadpy.compat._painting import Color, array_of, colors_of, points_of
from quadpy.compat._window import BaseWindow, Event
from quadpy.tools.pictures import picture_of

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(slots=True)
class Widget:
    """A slider or label, which keeps its value."""

    value: float


class GUI(BaseWindow):
    """A window of ``res`` pixels (one number: a square).

    Without a display, and with ``show_gui=False``, it is not shown, and ``running`` is false after ``QUADPY_FRAME_LIMIT``
    frames (100); with ``QUADPY_FRAMES`` set, each frame goes to that folder instead.  ``show(path)`` writes a frame.
    Coordinates go from 0 to 1, from the lower left.
    """

    SHIFT, ALT, CTRL, ESCAPE, RETURN, TAB, BACKSPACE = (
        "Shift", "Alt", "Control", "Escape", "Return", "Tab", "BackSpace",
    )  # fmt: skip
    SPACE, UP, DOWN, LEFT, RIGHT, CAPSLOCK = " ", "Up", "Down", "Left", "Right", "Caps_Lock"
    LMB, MMB, RMB, EXIT, WHEEL, MOVE = "LMB", "MMB", "RMB", "WMClose", "Wheel", "Motion"
    MOTION = "motion"

    def __init__(
        self,
        name: str = "Taichi",
        res: int | tuple[int, int] = 512,
        background_color: Color = 0,
        show_gui: bool = True,
        fullscreen: bool = False,
        fast_gui: bool = False,
        fps_limit: float | None = 60,
    ) -> None:
        self.name, self.res = name, (res, res) if isinstance(res, int) else (int(res[0]), int(res[1]))
        super().__init__(Frames(name, self.res, background_color, shown=show_gui))
        self.fps_limit = fps_limit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def frame(self) -> int:
        """How many frames were shown."""
        return self._frames.count

    def close(self) -> None:
        """Show no more frames."""
        self._frames.close()

    def show(self, file: str | Path | None = None) -> None:
        """End this frame, and write it to ``file`` if there is one.

        Raises:
            WindowClosed: the window is closed; a ``SystemExit``.
        """
        self._frames.show(file)
        self._frames.clear(tuple(self._frames.background / 255))

    def clear(self, color: Color | None = None) -> None:
        """Start the frame again."""
        self._frames.clear(tuple(self._frames.background / 255) if color is None else color)

    def get_image(self) -> npt.NDArray[np.float32]:
        """The frame, shape (width, height, 4), from 0 to 1."""
        return self._image()

    # what is drawn

    def set_image(self, img: object) -> None:
        """A whole picture: an array or field of shape (width, height) or (width, height, channels), or of vectors."""
        picture = picture_of(img)
        self._frames.draw(lambda painting: painting.paste(picture))

    def circle(self, pos: object, color: Color = 0xFFFFFF, radius: float = 1) -> None:
        """One disc; ``radius`` in pixels."""
        self.circles(np.array([array_of(pos)]), radius, color)

    def circles(
        self, pos: object, radius: object = 1, color: object = 0xFFFFFF,
        palette: object = None, palette_indices: object = None,
    ) -> None:  # fmt: skip
        """Discs, with one radius and colour or one for each; ``palette_indices`` choose colours of ``palette``."""
        centers = points_of(pos, 2)
        chosen = array_of(color if palette is None else palette)
        if palette is not None and palette_indices is not None:
            chosen = chosen[array_of(palette_indices).ravel()[: len(centers)]]
        sizes, colors = array_of(radius), colors_of(chosen, len(centers))
        self._frames.draw(lambda painting: painting.discs(centers, sizes, colors))

    def line(self, begin: object, end: object, radius: float = 1, color: Color = 0xFFFFFF) -> None:
        """One straight line; ``radius`` is its width in pixels."""
        self.lines(np.array([array_of(begin)]), np.array([array_of(end)]), radius, color)

    def lines(self, begin: object, end: object, radius: float = 1, color: object = 0xFFFFFF) -> None:
        """Straight lines."""
        a, b = points_of(begin, 2), points_of(end, 2)
        colors = colors_of(color, len(a))
        self._frames.draw(lambda painting: painting.lines(a, b, radius, colors))

    def triangle(self, a: object, b: object, c: object, color: Color = 0xFFFFFF) -> None:
        """One filled triangle."""
        first, second, third = (np.array([array_of(corner)]) for corner in (a, b, c))
        self.triangles(first, second, third, color)

    def triangles(self, a: object, b: object, c: object, color: object = 0xFFFFFF) -> None:
        """Filled triangles."""
        corners = [points_of(corner, 2) for corner in (a, b, c)]
        colors = colors_of(color, len(corners[0]))
        self._frames.draw(lambda painting: painting.triangles(corners, colors))

    def rect(self, topleft: object, bottomright: object, radius: float = 1, color: Color = 0xFFFFFF) -> None:
        """The outline of a rectangle."""
        (x0, y0), (x1, y1) = array_of(topleft), array_of(bottomright)
        corners = np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
        self.lines(corners, np.roll(corners, -1, axis=0), radius, color)

    def arrow(self, orig: object, direction: object, radius: float = 1, color: Color = 0xFFFFFF, **_: object) -> None:
        """One arrow, without its head."""
        self.arrows(np.array([array_of(orig)]), np.array([array_of(direction)]), radius, color)

    def arrows(self, orig: object, direction: object, radius: float = 1, color: object = 0xFFFFFF, **_: object) -> None:
        """Arrows, without their heads."""
        begins = points_of(orig, 2)
        self.lines(begins, begins + points_of(direction, 2), radius, color)

    def vector_field(self, field: object, radius: float = 1, color: Color = 0xFFFFFF, bound: float = 1) -> None:
        """Arrows for an array of shape (n, m, 2); the longest is as long as a cell, times ``bound``."""
        values = array_of(field)
        n, m = values.shape[:2]
        origins = (np.stack(np.meshgrid(np.arange(n), np.arange(m), indexing="ij"), axis=-1) + 0.5) / (n, m)
        longest = np.linalg.norm(values[..., :2], axis=-1).max() or 1.0
        self.arrows(origins, values[..., :2] / longest * bound / max(n, m), radius, color)

    def contour(self, scalar_field: object, normalize: bool = False) -> None:
        """Numbers of shape (n, m) as shades of red and blue."""
        values = array_of(scalar_field).astype(np.float64)
        if normalize:
            values = (values - values.min()) / ((values.max() - values.min()) or 1.0)
        self.set_image(np.stack([values, np.zeros_like(values), 1 - values], axis=-1))

    def text(self, content: str, pos: object, font_size: int = 15, color: Color = 0xFFFFFF) -> None:
        """Text, with its upper left corner at ``pos``."""
        where, colors = points_of(pos, 2), colors_of(color, 1)
        self._frames.draw(lambda painting: painting.text(content, where, colors, font_size))

    # what users do

    def get_key_event(self) -> Event | None:
        """Waits for an event; None without a display, and after the window was closed."""
        return self._next(wait=True)

    def has_key_event(self) -> bool:
        """Whether an event is waiting."""
        return self._has_event()

    def slider(self, text: str, minimum: float, maximum: float, step: float = 1) -> Widget:
        """Keeps its smallest value."""
        return Widget(minimum)

    def label(self, text: str) -> Widget:
        """A number that a program sets."""
        return Widget(0.0)

    def button(self, text: str, event_name: str | None = None) -> str:
        """The event that is never raised."""
        return event_name or f"WidgetButton_{text}"


def rgb_to_hex(color: Any) -> Any:
    """``0xRRGGBB`` for red, green and blue from 0 to 1."""
    red, green, blue = (np.clip(np.asarray(part) * 255, 0, 255).astype(np.int64) for part in color)
    packed = red * 0x10000 + green * 0x100 + blue
    return packed if np.ndim(packed) else int(packed)


def hex_to_rgb(color: int) -> tuple[float, float, float]:
    """Red, green and blue from 0 to 1."""
    return (color >> 16 & 255) / 255, (color >> 8 & 255) / 255, (color & 255) / 255
