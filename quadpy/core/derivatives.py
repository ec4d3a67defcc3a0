"""Which derivative a kernel computes."""

from __future__ import annotations

from typing import Final, NamedTuple


class Derivative(NamedTuple):
    """What a kernel computes: gradients ("grad"), duals beside its values ("dual"), or duals of gradients ("grad.dual").

    There may be several ``directions`` at once.  The kind "grads" is as many gradients, from as many adjoints: a backward
    kernel is linear in adjoints, so these are its tangents.  A kernel ``from_before`` runs on what arrays held before the
    one that it is a derivative of, and not on what that has left.  ``of_turn`` means one turn of the kernel's ``do_while``
    loop, which prints nothing if it is ``silent``.
    """

    kind: str = ""
    directions: int | None = None
    from_before: bool = False
    of_turn: bool = False
    silent: bool = False

    def __bool__(self) -> bool:
        return self != Derivative()

    @property
    def paths(self) -> tuple[str, ...]:
        """The attributes of arrays that it needs."""
        return _PATHS.get(self.kind, (self.kind,) if self.kind else ())


_PATHS: Final = {"grad.dual": ("grad", "dual", "grad.dual"), "grads": ("grad", "grad.dual")}
