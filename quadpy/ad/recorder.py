"""What a tape does while it is open, and at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from quadpy.ad.arrays import (
    Bytes,
    bytes_of,
    copy_of,
    overlap,
    part_of,
    storages_of,
    with_derivatives,
)
from quadpy.ad.entries import BackwardLaunch, Cleared, CustomCall, Entry, Restored, run_plan
from quadpy.ad.lost import Lost
from quadpy.ad.switch import quietly
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import Kernel
from quadpy.jit.observed_call import accesses_of
from quadpy.jit.plan import Plan, Values, Views
from quadpy.lang.fingerprints import is_our_module
from quadpy.runtime.arrays.foreign_device import DeviceView
from quadpy.runtime.arrays.foreign_host import HostView
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.device.current import as_launch, next_launch
from quadpy.runtime.device.devices import create_event, current_device
from quadpy.runtime.launch.capturing import session_of
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.memory.host_storage import HostStorage, Storage
from quadpy.runtime.streams.stream import Stream


class Recorder:
    """Notes the calls of one run of a tape, and goes back through them; ``unnoted`` says that calls are not differentiated."""

    quiet = False

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._needed: dict[Bytes, tuple[Storage, ...]] = {}  # as they are now
        self._used: set[Bytes] = set()
        self._touched: dict[Bytes, tuple[Storage, ...]] | None = None  # inside a function with a derivative of its own
        self._lost = Lost("grad")
        self.unnoted = False

    # ---------------------------------------------------------------- calls of kernels

    def taken(self, kernel: Kernel, plan: Plan, args: tuple[Any, ...]) -> Callable[[Values, Views, object], object]:
        """Like ``Differentiating.taken``: the call is noted, and runs."""
        return partial(self._note, kernel, plan, args)

    def _note(
        self, kernel: Kernel, plan: Plan, args: tuple[Any, ...], values: Values, views: Views, stream: object
    ) -> object:
        on = stream_of(current_device(), stream)
        if session_of(on) is not None:
            raise ArgumentError(
                f"{kernel.source.name} is captured while a tape is open, which sees only calls that run", call_site(),
                hint="capture the calls and those of the backward kernels, kernel.grad(…), without a tape",
            )  # fmt: skip
        arrays: tuple[ArrayMemory, ...] = (*views, *plan.fields)
        with quietly(self):
            touched = accesses_of(plan, values)
            written = [arrays[each.array] for each in touched if each.kind != "read"]
            is_noted = self._has_gradients(kernel, views, arrays)
            self._lost.call(kernel, arrays, touched, _ranges(), differentiated=is_noted)
            draws = is_noted and any(each.name == "launch" for each in plan.code.hidden)
            number = next_launch() if draws else 0
            backward = self._backward(kernel, args, views, arrays, on, number) if is_noted else None
            if self.unnoted:
                self._note_unnoted(kernel, arrays, written)
            self._keep([bytes_of(each) for each in written], on)
            with as_launch(number) if number else nullcontext():
                result = run_plan(kernel.source, plan, values, views, stream)
            if backward is not None:
                launch, reads = backward
                self._entries.append(launch)
                self._needed |= reads
                self._used |= set(map(bytes_of, arrays))
                self._keep((), on)  # what other libraries may change at any time
            return result

    def _has_gradients(self, kernel: Kernel, views: Views, arrays: Sequence[ArrayMemory]) -> bool:
        """Whether the call needs a backward kernel.

        Raises:
            ArgumentError: it has none, or a derivative would be lost.
        """
        if self.unnoted or kernel.options.derivative:
            return False
        found = [(each, whole) for each in arrays for whole in _with_gradient(bytes_of(each))]
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
        given, named = kernel.as_given(tuple(map(_kept, args)))
        plan, values, theirs = kernel.grad.planned(given, named, lambda *found: found)
        forward = {bytes_of(each) for each in views if each.nbytes}
        if any(isinstance(view, (HostView, DeviceView)) and bytes_of(view) in forward for view in theirs):
            raise ArgumentError(
                f"{kernel.source.name} gets an array of another library, which may change without a tape's knowledge",
                call_site(), hint="copy it into a qp.ndarray first",
            )  # fmt: skip
        primal = {bytes_of(each) for each in arrays}
        reads: dict[Bytes, tuple[Storage, ...]] = {}
        changed: dict[Bytes, tuple[Storage, ...]] = {}
        for access in accesses_of(plan, values):
            array = (*theirs, *plan.fields)[access.array]
            where = bytes_of(array)
            if any(overlap(where, each) for each in primal):  # else it is a gradient, or a copy
                reads[where] = storages_of(array)
                if access.kind != "read":
                    changed[where] = storages_of(array)
        return BackwardLaunch(on, kernel.source, plan, values, theirs, sum(changed.values(), ()), number), reads

    def _note_unnoted(self, kernel: Kernel, arrays: Sequence[ArrayMemory], written: Sequence[ArrayMemory]) -> None:
        """A call without a derivative.

        Raises:
            ArgumentError: it changes numbers whose derivatives the tape follows.
        """
        if self._touched is not None:
            self._touched |= {bytes_of(each): storages_of(each) for each in arrays}
            return
        for each in map(bytes_of, written):
            if any(overlap(each, used) for used in self._used) and (whole := _with_gradient(each)):
                raise ArgumentError(
                    f"{kernel.source.name} changes {whole[0]!r} under no_grad, after other calls on the tape have used it",
                    call_site(), hint="write to another array, or give the function a derivative with qp.ad.custom",
                )  # fmt: skip

    def _keep(self, written: Sequence[Bytes], on: Stream) -> None:
        """Copies what is needed of the ranges that are ``written`` next."""
        lost = [
            (where, storages)
            for where, storages in self._needed.items()
            if any(map(_is_exported, storages)) or any(overlap(where, each) for each in written)
        ]
        if lost:
            self._entries.append(
                Restored(on, tuple(copy_of(storage, on) for _, storages in lost for storage in storages))
            )
        for where, _ in lost:
            del self._needed[where]

    # ---------------------------------------------------------------- the host

    def wrote(self, on: Stream, target: ObservedAccess) -> None:
        """Like ``Taker.wrote``."""
        written = part_of(target)
        if target.where is None:
            self._lost.overwritten(written)
        with quietly(self):
            self._keep([written], on)
            if any(overlap(written, used) for used in self._used) and (found := _with_gradient(written)):
                where = ... if target.where is None else target.where
                self._entries.append(Cleared(on, _gradient_of(found, target), where))

    def exported(self, on: Stream) -> None:
        """Like ``Taker.exported``: everything that is needed is copied, since it is not known what changes."""
        with quietly(self):
            self._keep(list(self._needed), on)

    def copied(self, on: Stream, source: ObservedAccess, target: ObservedAccess) -> None:
        """Like ``Taker.copied``."""
        self._refuse_copy(part_of(source))
        self.wrote(on, target)

    def passes_on(self, array: Any) -> None:
        """Like ``Differentiating.passes_on``."""
        self._refuse_copy(bytes_of(array))

    def _refuse_copy(self, source: Bytes) -> None:
        found, line = _with_gradient(source), self._lost.line_of(source)
        if found or line:
            what = repr(found[0]) if found else f"an array that a kernel wrote at {line}"
            raise ArgumentError(
                f"{what} is copied on a tape, which differentiates calls of kernels", call_site(),
                hint="copy it in a kernel",
            )  # fmt: skip

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
        self._needed |= touched
        self._used |= set(touched)
        self._entries.append(CustomCall(current_device().stream_for(None), backward, args, kwargs))

    # ---------------------------------------------------------------- the backward pass

    def go_back(self) -> None:
        """Take all back, the last first, from the gradient of the loss."""
        here = current_device().stream_for(None)
        storages = [copy.storage for entry in self._entries if isinstance(entry, Restored) for copy in entry.copies]
        now = [copy_of(storage, here) for storage in dict.fromkeys(storages)]
        before = here
        try:
            for entry in reversed(self._entries):
                _follow(before, entry.stream)
                before = entry.stream
                entry.back()
        finally:
            _follow(before, here)
            for each in now:
                each.restore(here)


def _follow(before: Stream, stream: Stream) -> None:
    """Later work on ``stream`` comes after that on ``before``."""
    if stream is not before:
        event = create_event()
        event.record(before)
        event.wait(stream)


def _with_gradient(where: Bytes) -> list[Any]:
    """The fields and ndarrays with a gradient that share memory with ``where``."""
    return [each for each in with_derivatives("grad") if overlap(bytes_of(each), where)]


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


def _kept(given: Any) -> Any:
    """An argument of a call, which does not change later: a copy of another library's array."""
    if isinstance(given, np.ndarray):
        return given.copy()
    if type(given).__module__.partition(".")[0] == "torch" and hasattr(given, "detach"):
        if given.requires_grad:
            raise ArgumentError(
                "a tensor of torch that requires a gradient is passed on a tape, which gives it none", call_site(),
                hint="pass x.detach(), or differentiate with torch: qp.torch.operator",
            )  # fmt: skip
        return given if given.is_cuda else given.clone()
    return given
