"""Whether a call runs all its tasks in one launch, and what the user asked for.  Owns: Fusion, Fuse, ``require_fuse``.

Imports: errors only.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from quadpy.errors import ArgumentError

__all__ = ["Fuse", "Fusion", "require_fuse"]

Fuse: TypeAlias = Literal["auto", True, False]
"""``True`` is wherever it is possible, ``"auto"`` where it is also expected to be quicker."""


class Fusion(NamedTuple):
    """Whether a call with certain arguments is one launch, and why it is, or is not."""

    fused: bool
    reason: str


def require_fuse(fuse: object, *, graph: bool) -> None:
    """ArgumentError where ``fuse`` is none of the three, or the kernel is no graph kernel."""
    if fuse not in ("auto", True, False):
        raise ArgumentError(f"fuse is {fuse!r}", hint='it is "auto", True or False')
    if fuse is True and not graph:
        raise ArgumentError("fuse=True is for graph kernels", hint="qp.kernel(graph=True, fuse=True)")
