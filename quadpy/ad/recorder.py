"""What a tape does while it is open, and at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakSet

import numpy as np

from quadpy.ad.arrays import (
    Bytes,
    bytes_in,
    bytes_of,
    copy_of,
    overlap,
    part_of,
    piece_of,
    storages_of,
    with_derivatives,
)
from quadpy.ad.entries import ANY, BackwardLaunch, Cleared, CustomCall, Entry, Restored, Touch, call
from quadpy.ad.lost import Following
from quadpy.ad.number import Number
from quadpy.ad.order import Order
from quadpy.ad.switch import begin, end
from quadpy.core.dtypes import f64
from quadpy.core.importing import import_late
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError, OverwrittenError
from quadpy.jit.kernel import Kernel
from quadpy.jit.observed_call import accesses_of
from quadpy.jit.plan import Plan, Values, Views
from quadpy.jit.results import result_has
from quadpy.lang.fingerprints import is_our_module
from quadpy.runtime.arrays.foreign_device import DeviceView
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.ndarray import ndarray
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.device.blocks import Block
from quadpy.runtime.device.current import as_launch, next_launch
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.capturing import differentiating_here, quietly, session_of
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.launch.observing import KernelAccess
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.memory.host_storage import HostStorage, Storage
from quadpy.runtime.streams.stream import Stream


class Call(NamedTuple):
    """A call of a kernel: its arrays, how it touches them, and whether it is differentiated."""

    kernel: Kernel
    arrays: tuple[ArrayMemory, ...]
    touched: Sequence[KernelAccess]
    differentiated: bool


class Recorder(Following):
    """Notes the calls of one run of a tape, and goes back through them; ``unnoted`` says that calls are not differentiated."""

    takes_graphs = True

    def __init__(self) -> None:
        super().__init__("grad")
        self.entries: list[Entry] = []
        self._needed: dict[Bytes, tuple[Storage, ...]] = {}  # as they are now
        self._used: set[Bytes] = set()
        self.calls: list[Call] | None = None  # those of graphs are noted
        self._touched: dict[Bytes, tuple[Storage, ...]] | None = None  # inside a function with a derivative of its own
        self._session = session_of(current_device().stream_for(None))
        self.unnoted = False

    def use_everything(self) -> None:
        """Go on as if calls had used all memory; note calls."""
        self._used, self.calls = {ANY[0][0]}, []

    # ---------------------------------------------------------------- calls of kernels

    def taken(self, kernel: Kernel, plan: Plan, args: tuple[Any, ...]) -> Callable[[Values, Views, object], object]:
        """Like ``Differentiating.taken``: the call is noted, and runs."""
        return partial(self._note, kernel, plan, args)

    def _note(
        self, kernel: Kernel, plan: Plan, args: tuple[Any, ...], values: Values, views: Views, stream: object
    ) -> object:
        on = stream_of(current_device(), stream)
        self.require_here(on, kernel.source.name)
        arrays: tuple[ArrayMemory, ...] = (*views, *plan.fields)
        with quietly(self):
            touched = accesses_of(plan, values)
            written = [arrays[each.array] for each in touched if each.kind != "read"]
            is_noted = self.is_noted(kernel, views, arrays)
            self.follow(Call(kernel, arrays, touched, is_noted))
            returned = ndarray(f64, (), needs_grad=True) if is_noted and plan.code.results else None
            number = self._launch_number(kernel, plan) if is_noted else 0
            with result_has(None if returned is None else returned.grad):
                backward = self._backward(kernel, args, views, arrays, on, number) if is_noted else None
            if self.unnoted:
                self._note_unnoted(kernel, arrays, written)
            noted = len(self.entries)
            if backward is not None and backward[0].from_before:
                self.add(*backward, map(bytes_of, arrays))  # as if it had been called before: what it reads is kept
            self.keep([bytes_of(each) for each in written], on)
            try:
                with as_launch(number) if number else nullcontext():
                    result = call(kernel, plan, args, values, views, stream)
            except BaseException:
                if backward is not None and backward[0].from_before:
                    del self.entries[noted]
                raise
            if backward is not None and not backward[0].from_before:
                self.add(*backward, map(bytes_of, arrays))
            return Number.of(result, returned) if returned is not None and isinstance(result, float) else result

    def follow(self, call: Call) -> None:
        if self.calls is not None:
            self.calls.append(call)
        self.lost.call(call.kernel, call.arrays, call.touched, _ranges(), differentiated=call.differentiated)

    def add(self, entry: Entry, reads: dict[Bytes, tuple[Storage, ...]], used: Iterable[Bytes]) -> None:
        """Something was done that used these parts of memory; the way back reads ``reads`` as they are now."""
        self.entries.append(entry)
        self._needed |= reads
        self._used |= {*used}
        self.keep((), entry.stream)  # what other libraries may change at any time

    def require_here(self, on: Stream, name: str) -> None:
        """Raise ArgumentError if ``name`` is captured while the tape runs, or the other way round."""
        if session_of(on) is not self._session:
            raise ArgumentError(
                f"{name} is captured, but the tape around it began outside the capture" if self._session is None
                else f"{name} runs on {on!r}, which the capture around the tape does not record", call_site(),
                hint="open the tape inside the capture" if self._session is None
                else "let the stream wait for an event that is recorded on the captured stream",
            )  # fmt: skip

    def is_noted(self, kernel: Kernel, views: Views, arrays: Sequence[ArrayMemory]) -> bool:
        """Whether the call needs a backward kernel.

        Raises:
            ArgumentError: it has none, or a derivative would be lost.
        """
        if self.unnoted or kernel.options.derivative:
            return False
        found = [(each, whole) for each in arrays for whole in self.lost.having(bytes_of(each))]
        if found and is_our_module(kernel.source.fn.__module__):
            raise ArgumentError(
                f"a function of quadpy's own, which has no derivative, is called on a tape for {found[0][1]!r}", call_site(),
                hint="write it as a kernel, or give it a derivative with qp.ad.custom",
            )  # fmt: skip
        for array, whole in found:
            if array in views and getattr(array, "grad", None) is None:
                raise ArgumentError(
                    f"{kernel.source.name} gets a part of {whole!r}, or its memory as another array, without the gradient",
                    call_site(), hint="pass the array itself",
                )  # fmt: skip
        return bool(found)

    def _backward(
        self,
        kernel: Kernel,
        args: tuple[Any, ...],
        views: Views,
        arrays: Sequence[ArrayMemory],
        on: Stream,
        number: int,
    ) -> tuple[BackwardLaunch, dict[Bytes, tuple[Storage, ...]]]:
        """The launch of the backward kernel, and the arrays that it reads as the forward one left them."""
        args = tuple(self._kept(each) for each in args)
        given, named = kernel.as_given(args)
        backward, (plan, values, theirs) = _planned(kernel, given, named)
        forward = {bytes_of(each) for each in views if each.nbytes}
        if any(isinstance(view, (HostView, DeviceView)) and bytes_of(view) in forward for view in theirs):
            raise ArgumentError(
                f"{kernel.source.name} gets an array of another library, which may change without a tape's knowledge",
                call_site(), hint="copy it into a qp.ndarray first",
            )  # fmt: skip
        primal = {bytes_of(each) for each in arrays}
        reads: dict[Bytes, tuple[Storage, ...]] = {}
        changed: dict[Bytes, tuple[Storage, ...]] = {}
        touches: list[Touch] = []
        for access in accesses_of(plan, values):
            array = (*theirs, *plan.fields)[access.array]
            where = bytes_of(array)
            touches.append((where, access.kind != "read"))
            if any(overlap(where, each) for each in primal):  # else it is a gradient, or a copy
                reads[where] = storages_of(array)
                if access.kind != "read":
                    changed[where] = storages_of(array)
        put_back = sum(changed.values(), ())
        return BackwardLaunch(on, backward, plan, args, values, theirs, put_back, touches, number), reads

    def _launch_number(self, kernel: Kernel, plan: Plan) -> int:
        """The number of a launch that draws random numbers, by which the backward kernel draws them again; otherwise 0."""
        if not any(each.name == "launch" for each in plan.code.hidden):
            return 0
        if self._session is not None:
            raise ArgumentError(
                f"{kernel.source.name} draws random numbers on a captured tape, and other ones in each launch of the graph",
                call_site(), hint="draw them in a kernel without a derivative, into an array",
            )  # fmt: skip
        return next_launch()

    def _kept(self, given: Any) -> Any:
        """An argument of a call, which does not change later: a copy of another library's array."""
        if isinstance(given, np.ndarray):
            if self._session is not None:
                raise ArgumentError(
                    "an array of NumPy is passed on a captured tape, and may differ in each launch of the graph", call_site(),
                    hint="copy it into a qp.ndarray first",
                )  # fmt: skip
            return given.copy()
        if type(given).__module__.partition(".")[0] == "torch" and hasattr(given, "detach"):
            if given.requires_grad:
                raise ArgumentError(
                    "a tensor of torch that requires a gradient is passed on a tape, which gives it none", call_site(),
                    hint='pass x.detach(), or let torch differentiate: qp.torch.custom_op(…, backward="auto")',
                )  # fmt: skip
            return given if given.is_cuda else given.clone()
        return given

    def _note_unnoted(self, kernel: Kernel, arrays: Sequence[ArrayMemory], written: Sequence[ArrayMemory]) -> None:
        """A call without a derivative.

        Raises:
            ArgumentError: it changes numbers whose derivatives the tape follows.
        """
        if self._touched is not None:
            self._touched |= {bytes_of(each): storages_of(each) for each in arrays}
            return
        for each in map(bytes_of, written):
            if any(overlap(each, used) for used in self._used) and (whole := self.lost.having(each)):
                raise ArgumentError(
                    f"{kernel.source.name} changes {whole[0]!r} under no_grad, after other calls on the tape have used it",
                    call_site(), hint="write to another array, or give the function a derivative with qp.ad.custom",
                )  # fmt: skip

    def keep(self, written: Sequence[Bytes], on: Stream) -> None:
        """Copies what is needed of the ranges that are ``written`` next."""
        lost = [
            (where, storages)
            for where, storages in self._needed.items()
            if any(map(_is_exported, storages)) or any(overlap(where, each) for each in written)
        ]
        if lost:
            self.entries.append(
                Restored(on, tuple(copy_of(storage, on) for _, storages in lost for storage in storages))
            )
        for where, _ in lost:
            del self._needed[where]

    def launch(self, run: Any, stream: Any) -> None:
        """Like ``Differentiating.launch``."""
        on = stream_of(run.device, stream)
        self.require_here(on, "a graph")
        with quietly(self):
            graphs = import_late("quadpy.ad.graphs")
            again = graphs.backward_of(run)
            for each in again.calls:
                self.follow(each)
                if self.unnoted:
                    self._note_unnoted(
                        each.kernel, each.arrays, [each.arrays[a.array] for a in each.touched if a.kind != "read"]
                    )
            self.keep(again.written, on)
            copies = () if self.unnoted else tuple(copy_of(storage, on) for storage in again.changed)
            run.launch(stream)
            if not self.unnoted:
                entry = graphs.BackwardGraph(on, again.run, copies, again.touches)
                self.add(entry, again.reads, (*again.reads, *again.written))

    # ---------------------------------------------------------------- the host

    def wrote(self, on: Stream, target: ObservedAccess) -> None:
        """Like ``Taker.wrote``."""
        written = part_of(target)
        if target.where is None:
            self.lost.overwritten(written)
        with quietly(self):
            self.keep([written], on)
            if any(overlap(written, used) for used in self._used) and (found := self.lost.having(written)):
                where = ... if target.where is None else target.where
                self.entries.append(Cleared(on, _gradient_of(found, target), where))

    def overwritten(self, on: Stream, written: Bytes) -> None:
        """A graph overwrites these bytes with constants."""
        self.keep([written], on)
        for array in self.lost.having(written):
            for storage, gradient in zip(storages_of(array), storages_of(array.grad), strict=True):
                if overlap(part := bytes_in(storage), written):
                    low, high = max(part[0], written[0]) - part[0], min(part[1], written[1]) - part[0]
                    self.entries.append(Cleared(on, piece_of(gradient, low, high - low), ...))

    def is_gradient(self, parts: Sequence[Bytes]) -> bool:
        """Whether there are only gradients in these parts of memory."""
        gradients = [bytes_of(array.grad) for array in with_derivatives("grad")]
        return all(any(low <= part[0] and part[1] <= high for low, high in gradients) for part in parts)

    def exported(self, on: Stream) -> None:
        """Like ``Taker.exported``: everything that is needed is copied, since it is not known what changes."""
        with quietly(self):
            self.keep(list(self._needed), on)

    # ---------------------------------------------------------------- custom derivatives

    @contextmanager
    def custom(self, backward: Callable[..., object], args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[None]:
        """Context manager around a function whose derivative ``backward`` computes: its calls are not noted."""
        before, self.unnoted, self._touched = self.unnoted, True, {}
        if before:  # in another one, or under no_grad
            yield
            return
        try:
            yield
        finally:
            touched, self.unnoted, self._touched = self._touched, before, None
        self.add(CustomCall(current_device().stream_for(None), backward, args, kwargs), touched, touched)

    # ---------------------------------------------------------------- the backward pass

    def go_back(self) -> None:
        """Take all back, the last first, from the gradient of the loss."""
        here = current_device().stream_for(None)
        self.require_here(here, "the end of a tape")
        storages = [copy.storage for entry in self.entries for copy in getattr(entry, "copies", ())]
        with quietly(self):
            now = [copy_of(storage, here) for storage in dict.fromkeys(storages)]
            order = Order(here)
            try:
                for entry in reversed(self.entries):
                    order.next(entry.stream, entry.touches)
                    entry.back()
            finally:
                order.join()
                for each in now:
                    each.restore(here)


class Noting(Block):
    """``with Noting() as recorder:`` calls are noted, as if all arrays had been used before."""

    def __enter__(self) -> Recorder:
        recorder = Recorder()
        recorder.use_everything()
        begin(recorder, self._begin(recorder))
        return recorder

    def _end(self, about: Recorder, *exception: Any) -> None:
        end(about)


_from_before: Final[WeakSet[Kernel]] = WeakSet()
"""Backward kernels that would need what their kernels have overwritten."""


def _planned(kernel: Kernel, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Kernel, tuple[Any, ...]]:
    """The backward kernel, and its launch; one that runs on what was there before the kernel only if the usual one cannot be."""

    def plan_of(backward: Kernel) -> tuple[Kernel, tuple[Any, ...]]:
        return backward, backward.planned(given, named, lambda *found: found)

    usual, again = kernel.grad, partial(kernel.derivative, "grad", from_before=True)
    if usual in _from_before:
        return plan_of(again())
    try:
        return plan_of(usual)
    except OverwrittenError as error:
        first = error
    try:
        found = plan_of(again())
    except OverwrittenError as error:
        hint = "write to another array, or to other elements"
        raise OverwrittenError(first.message, first.span, hint=hint) from error
    _from_before.add(usual)
    return found


def recorder_here(what: str) -> Any:
    """The tape of this thread, or what steps with checkpoints have in its place; None if there is none.

    Raises:
        ArgumentError: it takes derivatives forward.
    """
    taker = differentiating_here()
    if taker is not None and not taker.takes_graphs:
        raise ArgumentError(f"{what} is not supported in forward mode", call_site(), hint="use qp.ad.Tape")
    return taker


def _ranges() -> list[Bytes]:
    """Where the arrays with gradients are, and these."""
    return [bytes_of(each) for array in with_derivatives("grad") for each in (array, array.grad)]


def _gradient_of(found: Sequence[Any], target: ObservedAccess) -> Storage:
    """The gradient of what the host writes.

    Raises:
        ArgumentError: it writes to the memory of one of ``found`` as another array.
    """
    for array in found:
        for storage, gradient in zip(storages_of(array), storages_of(array.grad), strict=True):
            if storage.pointer == target.layout.start:
                return gradient
    raise ArgumentError(
        f"the host writes to the memory of {found[0]!r}, which calls on the tape have used, as another array", call_site(),
        hint="write to the array itself",
    )  # fmt: skip


def _is_exported(storage: Storage) -> bool:
    """Whether other libraries may write to the memory at any time."""
    return isinstance(storage, HostStorage) and storage.exported
