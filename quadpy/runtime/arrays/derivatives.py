"""Storage of derivatives: a field and its gradient."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from quadpy.core.dtypes import Scalar
from quadpy.core.importing import import_late
from quadpy.core.source import Span
from quadpy.errors import ArgumentError
from quadpy.runtime.device.locks import LiveObjects

if TYPE_CHECKING:
    from typing_extensions import Self

KINDS: Final = ("grad", "dual")
"""Derivatives of reverse mode, and of forward mode."""

WITH_SHAPE: Final[LiveObjects[Any]] = LiveObjects()
"""Fields that were made with a shape: ``qp.root.lazy_grad()`` gives them a gradient, too."""


class _OfThreads(LiveObjects[Any]):
    """Objects, each with the thread that made it or used it last: that adds it again."""

    def __init__(self) -> None:
        super().__init__()
        self._threads: WeakKeyDictionary[Any, threading.Thread] = WeakKeyDictionary()

    def add(self, thing: Any) -> None:
        super().add(thing)
        self._threads[thing] = threading.current_thread()

    def of_this_thread(self) -> Iterator[Any]:
        here = threading.current_thread()
        return (each for each in self if self._threads.get(each) is here)


DIFFERENTIATED: Final = _OfThreads()
"""Fields and ndarrays that were asked for a gradient or a dual."""

_FLOATS: Final = "only floats have derivatives: f16, bf16, f32 and f64"


class HasDerivatives:
    """A field that can have a gradient and a dual: fields of the same type and shape, which kernels use as ``x.grad``."""

    __slots__ = ()

    name: str
    made: Span | None
    """The line of the user's program that made it."""

    @property
    def described(self) -> str:
        """The field in messages: by its name, or by its type and where it was created."""
        shape = f", shape {self.shape}," if not self.name and hasattr(self, "shape") else ""
        return f"the field{self._which}" if self.name else f"a field of {self._element()}{shape}{self._which}"

    @property
    def _which(self) -> str:
        if self.name:
            return f" {self.name!r}"
        return f" made at {self.made.file}:{self.made.line}" if self.made is not None else ""

    if TYPE_CHECKING:

        def _element(self) -> str: ...  # of dense arrays, and of fields of structs

    derivatives: dict[str, Self]
    """The declared derivatives; one without a shape does not exist yet."""
    derivative: str
    """Which of KINDS this field is of another field; empty if it is not a derivative."""

    @property
    def grad(self) -> Self:
        """The gradient, for reverse mode.  Without ``needs_grad=True`` it has no shape until it is placed."""
        return self._derivative("grad")

    @property
    def dual(self) -> Self:
        """The dual, for forward mode.  Without ``needs_dual=True`` it has no shape until it is placed."""
        return self._derivative("dual")

    def has_grad(self) -> bool:
        """Whether there is a gradient with a shape."""
        return self.has_derivative("grad")

    def has_dual(self) -> bool:
        """Whether there is a dual with a shape."""
        return self.has_derivative("dual")

    def has_derivative(self, kind: str) -> bool:
        found = self.derivatives.get(kind)
        return found is not None and hasattr(found, "shape")

    @property
    def is_differentiable(self) -> bool:
        """Whether its numbers are floats."""
        raise NotImplementedError

    follows: bool
    """Whether its shape is that of another field, and not given."""

    def declare(self, kind: str) -> Self:
        """The derivative, without a shape if it is new."""
        raise NotImplementedError

    def follow(self, shape: tuple[int, ...], offset: tuple[int, ...]) -> None:
        """Take the shape of another field, and separate memory, until it is placed elsewhere."""
        raise NotImplementedError

    def need(self, kinds: tuple[str, ...]) -> None:
        """Have these derivatives; each takes the shape of the field unless it is placed itself."""
        for kind in kinds:
            found: Any = self.declare(kind)  # its class has the slot
            found.follows = not hasattr(found, "shape")

    def need_second(self, directions: int | None) -> None:
        """Have duals in these directions at once, and a dual of the gradient, if there are both."""
        fields = (self, self.derivatives["grad"]) if "grad" in self.derivatives else (self,)
        for field in fields if "dual" in self.derivatives else ():
            field.need(("dual",))
            dual: Any = field.derivatives["dual"]  # its class has the slot
            dual.directions = directions

    def and_derivatives(self) -> Iterator[Self]:
        """This field, its derivatives, and theirs."""
        yield self
        for each in self.derivatives.values():
            yield from each.and_derivatives()

    directions: int | None
    """Of a dual: how many directions are its first axis; None for one direction and no such axis."""

    def _give_derivatives_shape(self, shape: tuple[int, ...], offset: tuple[int, ...]) -> None:
        for found in self.derivatives.values():
            if found.follows and not hasattr(found, "shape"):
                more = () if found.directions is None else (found.directions,)
                found.follow((*more, *shape), (*(0 for _ in more), *offset))

    def why_none(self, kind: str) -> str:
        """Why it has no derivative."""
        what = f"the {self.derivative} of a field" if self.derivative else "a field without floats"
        return f"{what} has no {kind}: {self!r}"

    def _repr_html_(self) -> str:
        """For notebooks: type, shape and first values."""
        return import_late("quadpy.runtime.arrays.rich").html_of(self)  # type: ignore[no-any-return]  # a text

    def __repr__(self) -> str:
        shape = getattr(self, "shape", None)
        return f"field({self._element()}, shape={shape}" + (f", name={self.name!r})" if self.name else ")")

    def _derivative(self, kind: str) -> Self:
        if (self.derivative and kind not in self.derivatives) or not self.is_differentiable:
            raise AttributeError(self.why_none(kind))
        return self.declare(kind)


def require_floats(scalar: Scalar, asked: str = "needs_grad") -> None:
    """Raise ArgumentError if an array whose type has no floats is to have a gradient or a dual."""
    if not scalar.is_float:
        what = "gradient" if asked == "needs_grad" else "dual"
        raise ArgumentError(f"{asked}=True: an array of {scalar} has no {what}", hint=_FLOATS)


def directions_in(needs_dual: Any) -> int | None:
    """In how many directions at once there are duals: None for True and False.

    Raises:
        ArgumentError: no switch, and no number of directions.
    """
    if needs_dual is None or isinstance(needs_dual, bool):
        return None
    if not hasattr(needs_dual, "__index__") or needs_dual < 1:
        raise ArgumentError(
            f"needs_dual must be True, False or a number of directions, not {needs_dual!r}",
            hint="True is for one direction, 4 for four at once",
        )
    return int(needs_dual)


def needed(field: HasDerivatives, needs_grad: bool, needs_dual: bool) -> tuple[str, ...]:
    """Which of KINDS a declaration asks for; ArgumentError if ``field`` has no floats."""
    kinds = tuple(kind for kind, needs in zip(KINDS, (needs_grad, needs_dual), strict=True) if needs)
    if kinds and not field.is_differentiable:
        raise ArgumentError(f"needs_{kinds[0]}=True: {field.why_none(kinds[0])}", hint=_FLOATS)
    return kinds
