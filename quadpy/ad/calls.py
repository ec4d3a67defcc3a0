"""Calls of kernels on a tape or in forward mode, and the launch of the backward kernel of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from quadpy.ad.arrays import Bytes, bytes_of, gradients_among, overlap, share_numbers, storages_of
from quadpy.ad.copies import copy_of
from quadpy.ad.entries import Touch
from quadpy.core.derivatives import Derivative
from quadpy.core.light import dataclass
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError, OverwrittenError
from quadpy.jit.comparisons import firsts
from quadpy.jit.kernel import Kernel
from quadpy.jit.observed_call import accesses_of
from quadpy.jit.plan import Plan, Values, Views
from quadpy.jit.watched import watched
from quadpy.lang.fingerprints import is_our_module
from quadpy.runtime.arrays.foreign_device import DeviceView
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.device.current import as_launch
from quadpy.runtime.launch.capturing import CAPTURES, replaying_here
from quadpy.runtime.launch.observing import KernelAccess
from quadpy.runtime.memory.host_storage import Storage
from quadpy.runtime.streams.stream import Stream


class Call(NamedTuple):
    """A call of a kernel: its arrays, how it touches them, and whether it is differentiated."""

    kernel: Kernel
    arrays: tuple[ArrayMemory, ...]
    touched: Sequence[KernelAccess]
    differentiated: bool


class Launch(NamedTuple):
    """A call of a kernel that is resolved."""

    kernel: Kernel
    plan: Plan
    args: tuple[Any, ...]
    values: Values
    views: Views

    @property
    def arrays(self) -> tuple[ArrayMemory, ...]:
        return (*self.views, *self.plan.fields)

    @property
    def touched(self) -> Sequence[KernelAccess]:
        found, count = tuple(accesses_of(self.plan, self.values)), len(self.arrays)
        if all(each.array < count for each in found):
            return found
        kinds = ("read", "write")  # fields of a grid are not among the arrays: nothing is known of the others
        return [KernelAccess(k, "an array", kind, None, None, False, "", None) for k in range(count) for kind in kinds]

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers."""
        return any(each.name == "launch" for each in self.plan.code.hidden)

    @property
    def numbers(self) -> Sequence[Any]:
        """The arguments that are passed by value and have derivatives."""
        return [each for each in self.args if hasattr(each, "__quadpy_number__")]

    @staticmethod
    def of(kernel: Kernel, args: tuple[Any, ...], named: dict[str, Any]) -> Launch:
        """A call of ``kernel``."""
        return kernel.planned(args, named, lambda *found: Launch(kernel, found[0], args, found[1], found[2]))

    def derivative(self, asked: Derivative, args: tuple[Any, ...] | None = None) -> Launch:
        """The same call of the derivative of the kernel."""
        return self.again(self.kernel.derivative(asked), self.args if args is None else args)

    def again(self, made: Kernel, args: tuple[Any, ...]) -> Launch:
        """The same call of ``made``, with ``args``."""
        given, named = self.kernel.as_given(args)
        return made.planned(given, named, lambda *found: Launch(made, found[0], args, found[1], found[2]))

    def run(self, stream: object) -> object:
        """Like a call of the kernel: told to captures and observers, compared in a replay."""
        if CAPTURES.count and (known := replaying_here()) is not None and known.repeats(self.kernel, self.args, stream):
            return None
        return watched(self.kernel, self.plan, self.args)(self.values, self.views, stream)

    def refuse_ours(self, found: Sequence[Any], where: str, hint: str) -> None:
        """Raise ArgumentError for a function of quadpy's own that gets ``found``, arrays with derivatives."""
        if found and is_our_module(self.kernel.source.fn.__module__):
            raise ArgumentError(
                f"a function of quadpy's own, which has no derivative, is called {where} for {found[0]!r}", call_site(), hint=hint
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class BackwardLaunch:
    """A launch of the backward kernel: resolved when the forward one was called, so later changes do not matter.

    ``number`` is that of the forward launch, if it drew random numbers, which are drawn again.  ``changed`` is what the backward kernel computes again where the forward one had left it; it is put back.
    """

    stream: Stream
    launch: Launch
    changed: tuple[Storage, ...]
    touches: Sequence[Touch]
    number: int

    @property
    def from_before(self) -> bool:
        """Whether it runs on what was there before the forward one."""
        return self.launch.kernel.options.derivative.from_before

    def back(self) -> None:
        before = [copy_of(storage, self.stream) for storage in self.changed]
        with as_launch(self.number):
            self.launch._replace(values=self.launch.values[:]).run(self.stream)
        for each in before:
            each.restore(self.stream)


def backward_launch(
    forward: Launch, asked: Derivative, on: Stream, number: int, *, is_captured: bool
) -> tuple[BackwardLaunch, dict[Bytes, tuple[Storage, ...]]]:
    """The launch of the backward kernel, and the arrays that it reads as the forward one left them."""
    args = tuple(_kept(each, is_captured=is_captured) for each in forward.args)
    back = _backward(forward, asked, args)
    known = {bytes_of(each) for each in forward.views if each.nbytes}
    if any(isinstance(view, (HostView, DeviceView)) and bytes_of(view) in known for view in back.views):
        raise ArgumentError(
            f"{forward.kernel.source.name} gets an array of another library, which may change without a tape's knowledge",
            call_site(), hint="copy it into a qp.ndarray first",
        )  # fmt: skip
    primal, arrays = {bytes_of(each) for each in forward.arrays}, back.arrays
    gradients = set(map(id, gradients_among(arrays)))  # they may be between the numbers of their fields
    reads: dict[Bytes, tuple[Storage, ...]] = {}
    changed: dict[Bytes, tuple[Storage, ...]] = {}
    touches: list[Touch] = []
    for access in back.touched:
        array = arrays[access.array]
        where = bytes_of(array)
        touches.append((where, access.kind != "read"))
        if not any(overlap(where, each) for each in primal):  # the gradient of an array, or a copy
            continue
        if id(array) in gradients:
            if access.kind == "read" and any(share_numbers(array, each) for each in forward.arrays):
                raise ArgumentError(
                    f"{forward.kernel.source.name} uses the gradient {access.name}, and its derivative needs the numbers in it, "
                    "which the tape changes on the way back", call_site(), hint="copy it to another array before",
                )  # fmt: skip
        else:
            reads[where] = storages_of(array)
            if access.kind != "read":
                changed[where] = storages_of(array)
    return BackwardLaunch(on, back, sum(changed.values(), ()), touches, number), reads


_from_before: Final[WeakKeyDictionary[Kernel, set[tuple[int, ...]]]] = WeakKeyDictionary()
"""Backward kernels that would need what their kernels have overwritten, where these of their arrays are the same."""


def _backward(forward: Launch, asked: Derivative, args: tuple[Any, ...]) -> Launch:
    """The launch of the backward kernel; of one that runs on what was there before ``forward`` only if the usual one cannot be."""
    usual, same = forward.kernel.derivative(asked), tuple(firsts(view.pointer for view in forward.views))
    if same in _from_before.get(usual, ()):
        return forward.derivative(asked._replace(from_before=True), args)
    try:
        return forward.derivative(asked, args)
    except OverwrittenError as error:
        first = error
    try:
        found = forward.derivative(asked._replace(from_before=True), args)
    except OverwrittenError as error:
        hint = "write to another array, or to other elements"
        raise OverwrittenError(first.message, first.span, hint=hint) from error
    _from_before.setdefault(usual, set()).add(same)
    return found


def _kept(given: Any, *, is_captured: bool) -> Any:
    """An argument of a call, which does not change later: a copy of another library's array."""
    if isinstance(given, np.ndarray):
        if is_captured:
            raise ArgumentError(
                "an array of NumPy is passed on a captured tape, and may differ in each launch of the graph", call_site(),
                hint="copy it into a qp.ndarray first",
            )  # fmt: skip
        return given.copy()
    if type(given).__module__.partition(".")[0] == "torch" and hasattr(given, "detach"):
        return given if given.is_cuda else given.clone()
    return given
