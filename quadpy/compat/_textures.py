"""``ti.Texture``: pictures that kernels read between their pixels; a field, and functions over it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np

import quadpy as qp
from quadpy.compat._painting import array_of
from quadpy.compat._refusals import Refusing
from quadpy.errors import ArgumentError


class _Format(NamedTuple):
    """How pixels are stored: ``channels`` numbers of a type, in which ``one`` stands for 1.0."""

    name: str
    channels: int
    dtype: Any
    one: float


_STORED: Final = {"8": (qp.u8, 255.0), "16": (qp.u16, 65535.0), "16f": (qp.f16, 1.0), "32f": (qp.f32, 1.0)}

Format: Final = SimpleNamespace(
    **{
        (name := letters + bits): _Format(name, len(letters), *stored)
        for letters in ("r", "rg", "rgba")
        for bits, stored in _STORED.items()
    }
)


def texture(num_dimensions: int, *_: object, **__: object) -> Any:
    """Annotates a kernel's parameter that is a texture to read."""
    return qp.template()


def rw_texture(num_dimensions: int, *_: object, **__: object) -> Any:
    """Annotates a kernel's parameter that is a texture to read and write."""
    return qp.template()


@qp.data_oriented
class Texture(Refusing):
    """A picture of ``shape`` (one to three axes), whose pixels are vectors of four; colours are from 0 to 1.

    Channels that ``fmt`` does not have read as 0, and the fourth as 1.  Each texture has its own kernels.

    Raises:
        ArgumentError: a format that quadpy does not have, or not one to three axes.
    """

    def __init__(self, fmt: Any, shape: int | tuple[int, ...]) -> None:
        if not isinstance(fmt, _Format):
            raise ArgumentError(f"{fmt!r} is not a format", hint=f"ti.Format has {', '.join(vars(Format))}")
        self.fmt, self.shape = fmt, (shape,) if isinstance(shape, int) else tuple(shape)
        if not 0 < len(self.shape) < 4:
            raise ArgumentError(f"a texture has one to three axes, not {len(self.shape)}")
        self.channels, self.one, self.stored = fmt.channels, fmt.one, fmt.dtype
        self.corners = tuple(np.ndindex(*(2,) * len(self.shape)))
        self.pixels = qp.Vector.field(fmt.channels, fmt.dtype, shape=self.shape)

    @qp.func
    def load(self, index):
        """The pixel at a vector of integers; outside, all is 0."""
        inside = True
        for axis in qp.static(range(len(self.shape))):
            inside = inside and 0 <= index[axis] < self.shape[axis]
        colour = qp.Vector([0.0, 0.0, 0.0, 0.0])
        if inside:
            colour.w = 1.0
            for c in qp.static(range(self.channels)):
                colour[c] = qp.cast(self.pixels[index][c], float) / self.one
        return colour

    @qp.func
    def fetch(self, index, lod):
        """Like ``load``; there is one level of detail."""
        return self.load(index)

    @qp.func
    def store(self, index, colour):
        """Sets the pixel at a vector of integers; outside, nothing."""
        inside = True
        for axis in qp.static(range(len(self.shape))):
            inside = inside and 0 <= index[axis] < self.shape[axis]
        if inside:
            for c in qp.static(range(self.channels)):
                if qp.static(self.one == 1.0):
                    self.pixels[index][c] = qp.cast(colour[c], self.stored)
                else:
                    scaled = qp.max(0.0, qp.min(1.0, colour[c])) * self.one
                    self.pixels[index][c] = qp.cast(scaled + 0.5, self.stored)

    @qp.func
    def sample_lod(self, uv, lod):
        """The colour at coordinates from 0 to 1, linear between the centres of pixels; the picture repeats."""
        total = qp.Vector([0.0, 0.0, 0.0, 0.0])
        for corner in qp.static(self.corners):
            weight = 1.0
            index = qp.Vector([0 for _ in self.shape])
            for axis in qp.static(range(len(self.shape))):
                at = uv[axis] * self.shape[axis] - 0.5
                low = qp.floor(at)
                part = at - low
                weight *= part if qp.static(corner[axis] == 1) else 1.0 - part
                index[axis] = (qp.cast(low, int) + corner[axis]) % self.shape[axis]
            total += weight * self.load(index)
        return total

    def from_ndarray(self, values: Any) -> None:
        """Copy colours of shape (*shape, channels), or (*shape) with one channel."""
        given = np.asarray(array_of(values), np.float64).reshape(*self.shape, self.channels)
        scaled = given if self.one == 1 else np.rint(np.clip(given, 0, 1) * self.one)
        self.pixels.from_numpy(scaled.astype(self.pixels.to_numpy().dtype))

    from_field = from_ndarray

    def to_numpy(self) -> Any:
        """Colours, shape (*shape, channels)."""
        return self.pixels.to_numpy().astype(np.float32) / np.float32(self.one)
