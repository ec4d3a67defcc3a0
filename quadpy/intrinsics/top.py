"""The builtins that users name ``qp.NAME``; the stub next to this file lists them for type checkers."""

from quadpy.intrinsics import namespace

globals().update(namespace(""))
__all__ = list(namespace(""))
