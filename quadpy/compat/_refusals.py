"""Attributes of Taichi's windows and pictures that quadpy's do not have: each use says what to write instead."""

from __future__ import annotations

from typing import Final, NoReturn

from quadpy.core.elsewhere import INSTEAD
from quadpy.core.messages import no_attribute

_TABLE: Final = {
    "use qp.tools.imread and from_numpy": "from_image",
    "read a field of pixels with to_numpy": "to_image",
    "use gui.arrows with the positions and directions": "arrow_field",
    "use gui.circles with the positions": "point_field",
    "use gui.set_image, which takes arrays of NumPy and fields": "cook_image",
    "use gui.get_event and gui.event": "Event EventFilter",
    "widgets of quadpy.compat keep their values, and are not shown": "WidgetValue",
    "use os.environ": "get_bool_environ",
    "draw lines or set_image with a kernel": "contour vector_field",
    "use qp.view.Window, whose pictures have no depth": "get_depth_buffer get_depth_buffer_as_numpy",
    "use window.get_event and window.is_pressed": "event",
    "quadpy's cameras are perspective: change camera.fov": "left right top bottom",
    "pass positions that a kernel has projected to canvas.circles": "get_projection_matrix get_view_matrix",
}
_INSTEAD: Final = INSTEAD | {name: text for text, names in _TABLE.items() for name in names.split()}


class Refusing:
    """Says of missing attributes what to write instead."""

    def __getattr__(self, name: str) -> NoReturn:
        raise no_attribute(f"quadpy's ti.{type(self).__name__}", name, dir(type(self)), _INSTEAD)
