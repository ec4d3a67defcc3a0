"""A frame: objects of pygfx, which are kept from frame to frame while their arrays have the same shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from quadpy.view.host import Array
from quadpy.view.library import library

__all__ = ["Build", "Layer"]

Build: TypeAlias = "Callable[[Mapping[str, Any]], Any]"
"""Makes an object of pygfx from its buffers and textures, by name."""


@dataclass(slots=True)
class _Drawn:
    """One object, the form of its arrays, and the resources of the graphics library that hold them."""

    form: object
    thing: Any
    resources: Mapping[str, Any]

    def give(self, arrays: Mapping[str, Array]) -> None:
        """Upload ``arrays`` at the next frame; a resource that has the same memory is only told that it changed."""
        for name, array in arrays.items():
            resource = self.resources[name]
            if resource.data is array:
                resource.update_full()
            else:
                resource.set_data(array)


@dataclass(slots=True)
class Layer:
    """A scene and its camera; flat layers go from 0 to 1, and later objects cover earlier ones."""

    flat: bool
    scene: Any
    camera: Any
    headlight: Any = None
    _drawn: list[_Drawn] = field(default_factory=list)
    _used: int = 0

    @classmethod
    def over_the_window(cls) -> Layer:
        """A flat layer."""
        gfx = library("pygfx")
        camera = gfx.OrthographicCamera(1, 1, maintain_aspect=False, depth_range=(-1, 1))
        camera.local.position = 0.5, 0.5, 0
        return cls(True, gfx.Scene(), camera)

    @classmethod
    def in_space(cls, camera: Any) -> Layer:
        """A layer that ``camera`` sees."""
        gfx = library("pygfx")
        layer = cls(False, gfx.Scene(), camera, gfx.DirectionalLight(intensity=3))
        layer.scene.add(gfx.AmbientLight(intensity=0.3), layer.headlight)
        return layer

    def begin(self) -> None:
        """Begin a frame."""
        self._used = 0
        if self.headlight is not None:
            self.headlight.visible = True

    def end(self) -> None:
        """Drop objects that the frame did not show again."""
        for drawn in self._drawn[self._used :]:
            self.scene.remove(drawn.thing)
        del self._drawn[self._used :]

    def put(self, kind: tuple[object, ...], arrays: Mapping[str, Array], build: Build) -> Any:
        """The next object of this frame: the one of the last frame if its kind and its arrays' shapes are the same."""
        form = kind, tuple((name, array.shape, array.dtype) for name, array in arrays.items())
        at, self._used = self._used, self._used + 1
        if at < len(self._drawn):
            drawn = self._drawn[at]
            if drawn.form == form:
                drawn.give(arrays)
                return drawn.thing
            self.scene.remove(drawn.thing)
        resources = {name: _resource(name, array) for name, array in arrays.items()}
        thing = build(resources)
        thing.render_order = at
        self._drawn[at : at + 1] = [_Drawn(form, thing, resources)]
        self.scene.add(thing)
        return thing


def _resource(name: str, array: Array) -> Any:
    gfx = library("pygfx")
    return gfx.Texture(array, dim=2) if name == "pixels" else gfx.Buffer(array)
