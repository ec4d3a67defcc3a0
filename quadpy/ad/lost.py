"""Derivatives that would be lost from one call to the next: in arrays that have none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from quadpy.ad.arrays import Bytes, bytes_of, overlap, part_of, with_derivatives
from quadpy.core.dtypes import BY_NAME
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import Kernel
from quadpy.runtime.arrays.derivatives import DIFFERENTIATED
from quadpy.runtime.arrays.field_memory import FieldMemory
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.launch.observing import KernelAccess
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from quadpy.ad.calls import Launch

_WHERE: Final = {"grad": "on a tape", "dual": "in forward mode"}


class Lost:
    """The arrays of floats without a derivative of this ``kind`` that calls with derivatives have written, and where."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._written: dict[Bytes, str] = {}

    def call(
        self, kernel: Kernel, arrays: Sequence[ArrayMemory], touched: Iterable[KernelAccess], have: Sequence[Bytes], *, differentiated: bool
    ) -> None:  # fmt: skip
        """A call that is ``differentiated``, or not; ``have`` are the arrays that have a derivative.

        Raises:
            ArgumentError: it reads from such an array.
        """
        writes: dict[Bytes, str] = {}
        passes_on = differentiated
        for access in touched:
            where = bytes_of(array := arrays[access.array])
            if access.kind == "read" and (line := self.line_of(where)):
                passes_on = True
                if differentiated:
                    raise ArgumentError(
                        f"{kernel.source.name} reads {access.name}, which has no {self._kind}: derivatives are lost that an earlier "
                        f"call may have written there, at {line}", call_site(),
                        hint=f"make {access.name} with needs_{self._kind}=True",
                    )  # fmt: skip
            if access.kind != "read" and _has_floats(array) and not any(overlap(where, each) for each in have):
                writes.setdefault(where, str(access.span or kernel.source.span))
        if passes_on:
            self._written |= writes

    def line_of(self, part: Bytes) -> str:
        """The line that wrote to ``part``; empty where there is none."""
        return next((at for each, at in self._written.items() if overlap(each, part)), "")

    def having(self, where: Bytes) -> list[Any]:
        """The fields and ndarrays with a derivative that share memory with ``where``."""
        return [each for each in with_derivatives(self._kind) if overlap(bytes_of(each), where)]

    def used(self, parts: Iterable[Bytes]) -> list[Any]:
        """The same of several parts, which this thread uses now."""
        found = [whole for part in parts for whole in self.having(part)]
        for each in found:
            DIFFERENTIATED.add(each)
        return found

    def used_by(self, given: Launch) -> list[Any]:
        """The same of the memory of a call.

        Raises:
            ArgumentError: it gets such memory as another array, without the derivative; or is of quadpy's own.
        """
        found = self.used(map(bytes_of, given.arrays))
        custom = ", or give it a derivative with qp.ad.custom" if self._kind == "grad" else ""
        given.refuse_ours(found, _WHERE[self._kind], f"write it as a kernel{custom}")
        for view in given.views if found else ():
            if getattr(view, self._kind, None) is None and (whole := self.having(bytes_of(view))):
                what = {"grad": "gradient"}.get(self._kind, self._kind)
                raise ArgumentError(
                    f"{given.kernel.source.name} gets a part of {whole[0]!r}, or its memory as another array, without the {what}",
                    call_site(), hint="pass the array itself",
                )  # fmt: skip
        return found

    def refuse_copy(self, source: Bytes) -> None:
        """Raise ArgumentError if the host copies numbers that have derivatives."""
        found, line = self.having(source), self.line_of(source)
        if found or line:
            what = repr(found[0]) if found else f"an array that a kernel wrote at {line}"
            raise ArgumentError(
                f"{what} is copied {_WHERE[self._kind]}, which differentiates calls of kernels", call_site(),
                hint="copy it in a kernel; as a constant, with x.to_numpy()",
            )  # fmt: skip

    def overwritten(self, whole: Bytes) -> None:
        """The host writes all of ``whole``."""
        self._written.pop(whole, None)


def _has_floats(array: ArrayMemory) -> bool:
    if isinstance(array, FieldMemory):
        return array.scalar.is_float or len(array.storages) > 1
    scalar = getattr(array, "type_key", ("", "", 0, ()))[1]
    return scalar not in BY_NAME or BY_NAME[scalar].is_float


class Following:
    """The part of tapes and forward mode that refuses what would lose derivatives, which is ``lost``."""

    quiet = False
    takes_graphs = takes_tensors = False

    def __init__(self, kind: str) -> None:
        self.lost = Lost(kind)

    def wrote(self, on: Stream, target: ObservedAccess) -> None:
        """Like ``Taker.wrote``."""
        raise NotImplementedError

    def launch(self, run: Any, stream: Any) -> None:
        """Like ``Differentiating.launch``."""
        raise ArgumentError(
            "a graph is launched in forward mode, or on a tape for several adjoints, which see only calls of kernels",
            call_site(), hint="call the kernels themselves",
        )  # fmt: skip

    def copied(self, on: Stream, source: ObservedAccess, target: ObservedAccess) -> None:
        """Like ``Taker.copied``."""
        self.lost.refuse_copy(part_of(source))
        self.wrote(on, target)

    def passes_on(self, array: Any) -> None:
        """Like ``Differentiating.passes_on``."""
        self.lost.refuse_copy(bytes_of(array))
