"""Members of arguments that a trace has found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadpy.lang.arguments import MemberPath
    from quadpy.lang.dependencies import Read


class MembersFound(Exception):
    """The kernel uses members of its arguments that the signature does not list yet.

    ``paths`` says where they are, ``log`` what was read before they were found; code is made for a signature that has them all.
    """

    def __init__(self, paths: Collection[MemberPath], log: Sequence[Read] = ()) -> None:
        super().__init__(", ".join(map(str, paths)))
        self.paths, self.log = paths, log
