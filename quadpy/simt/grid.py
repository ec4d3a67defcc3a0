"""``qp.simt.grid``: operations that concern all iterations of a loop.  There is no barrier for them: use two loops."""

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.intrinsics import namespace

globals().update(namespace("grid"))
__all__ = list(namespace("grid"))

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
