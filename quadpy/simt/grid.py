"""``qp.simt.grid``: what concerns all iterations of a loop.  They have no barrier: two loops have one between them."""

from quadpy.intrinsics import namespace

globals().update(namespace("grid"))
__all__ = list(namespace("grid"))
