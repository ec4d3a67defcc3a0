"""What a tape does while it is open, and at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, ClassVar

from quadpy.ad.arrays import (
    Bytes,
    bytes_of,
    holds,
    overlap,
    part_of,
    parts_within,
    storages_of,
    with_derivatives,
)
from quadpy.ad.calls import Call, Launch, backward_launch
from quadpy.ad.copies import copy_of
from quadpy.ad.entries import ANY, Cleared, CustomCall, Entry, Restored
from quadpy.ad.forward import directions_of, within
from quadpy.ad.lost import Following
from quadpy.ad.number import Number
from quadpy.ad.order import Order
from quadpy.ad.shared import Shared
from quadpy.ad.switch import begin, end
from quadpy.ad.tensors import Tensors
from quadpy.core.derivatives import Derivative
from quadpy.core.dtypes import f64
from quadpy.core.flow import conditions_of
from quadpy.core.importing import import_late
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import Kernel
from quadpy.jit.plan import Plan, Values, Views
from quadpy.jit.results import result_has
from quadpy.runtime.arrays.ndarray import ndarray
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.device.blocks import Block
from quadpy.runtime.device.current import as_launch, next_launch
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.capturing import differentiating_here, quietly, session_of
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.memory.host_storage import HostStorage, Storage
from quadpy.runtime.streams.stream import Stream


class Recorder(Following):
    """Notes the calls of one run of a tape, and goes back through them; ``unnoted`` says that calls are not differentiated."""

    takes_tensors = True
    call_turns: ClassVar[Callable[..., None]]
    """``ad.turns.call_turns``, whose calls come back here: it sets this."""

    def __init__(self, several: int | None = None) -> None:
        """Take back ``several`` adjoints at once; None for one."""
        super().__init__("grad")
        self.several, self.takes_graphs = several, several is None
        self.entries: list[Entry] = []
        self._needed: dict[Bytes, tuple[Storage, ...]] = {}  # as they are now
        self._used: set[Bytes] = set()
        self.calls: list[Call] | None = None  # those of graphs are noted
        self._touched: dict[Bytes, tuple[Storage, ...]] | None = None  # inside a function with a derivative of its own
        self._session = session_of(current_device().stream_for(None))
        self.unnoted, self.tensors, self._shared = False, Tensors(), Shared()

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
        with quietly(self):
            given = self._with_arrays(Launch(kernel, plan, args, values, views))
            if not (conditions_of(plan.code.flow) and self.is_noted(given)):
                return self._noted(given, on, stream)
        self.call_turns(given, on, is_captured=self._session is not None)
        return None

    def _noted(self, given: Launch, on: Stream, stream: object) -> object:
        """Run the call, and note what takes it back."""
        kernel, is_noted = given.kernel, self.is_noted(given)
        self.follow(Call(kernel, given.arrays, given.touched, is_noted))
        launch, asked = self.chosen(given)
        written = [launch.arrays[each.array] for each in launch.touched if each.kind != "read"]
        returned = ndarray(f64, (), needs_grad=True) if is_noted and given.plan.code.results else None
        number, backward = self._launch_number(launch) if is_noted else 0, None
        is_captured = self._session is not None
        watched = [each for each in given.arrays if self._shared.watches(each) and self.lost.having(bytes_of(each))]
        watched = watched if is_noted and not is_captured else []
        self._shared.require_unchanged(watched, on)
        if is_noted:
            with result_has(None if returned is None else returned.grad):
                backward = backward_launch(launch._replace(kernel=kernel), asked, on, number, is_captured=is_captured)
        if self.unnoted:
            self._note_unnoted(kernel, launch.arrays, written)
        noted, from_before = len(self.entries), backward is not None and backward[0].from_before
        if backward is not None and from_before:
            # As if it had been called before: what it reads is kept.
            self.add(*backward, map(bytes_of, launch.arrays))
        self.keep([bytes_of(each) for each in written], on)
        try:
            with as_launch(number) if number else nullcontext():
                result = launch.run(stream)
        except BaseException:
            if from_before:
                del self.entries[noted]
            raise
        self._shared.left(watched, on)
        if backward is not None and not from_before:
            self.add(*backward, map(bytes_of, launch.arrays))
        return Number.of(result, returned) if returned is not None and isinstance(result, float) else result

    def _with_arrays(self, given: Launch) -> Launch:
        """The call with arrays in place of torch's tensors that require gradients."""
        args = self.tensors.arrays_in(given.args, given.views)
        if args is given.args:
            return given
        if self._session is not None or self.several is not None:
            raise ArgumentError(
                "a tensor of torch that requires a gradient is passed on a tape that a graph records, or of several adjoints, which gives it none",
                call_site(), hint="copy it into a qp.ndarray first",
            )  # fmt: skip
        return given.again(given.kernel, args)

    def chosen(self, given: Launch) -> tuple[Launch, Derivative]:
        """What runs for this call, and its backward kernel."""
        if self.several is None or self.unnoted:
            return given, Derivative("grad")
        self.require_duals(given, self.several)
        return given, Derivative("grads", self.several)

    def require_duals(self, given: Launch, directions: int | None) -> None:
        """Raise ArgumentError if an array of the call has a gradient without a dual, which would be lost."""
        for whole in (whole for each in given.arrays for whole in self.lost.having(bytes_of(each))):
            if not (whole.has_dual() and whole.grad.has_dual()) or directions_of([whole]) != directions:
                raise ArgumentError(
                    f"{given.kernel.source.name} uses {whole!r}, whose gradient has no dual in {directions or 1} directions", call_site(),
                    hint=f"make all arrays with gradients with needs_grad=True, needs_dual={directions or True}",
                )  # fmt: skip

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

    def is_noted(self, given: Launch) -> bool:
        """Whether the call needs a backward kernel.

        Raises:
            ArgumentError: it has none, or a derivative would be lost.
        """
        if self.unnoted or given.kernel.options.derivative.kind:
            return False
        found = self.lost.used_by(given)
        return bool(found) or bool(given.plan.code.results and given.numbers)

    def _launch_number(self, launch: Launch) -> int:
        """The number of a launch that draws random numbers, by which the backward kernel draws them again; otherwise 0."""
        return next_launch() if launch.draws else 0

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
        self._shared.overwritten(written)
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
        if not self.takes_graphs:
            super().launch(run, stream)
        on = stream_of(run.device, stream)
        self.require_here(on, "a graph")
        with quietly(self):
            graphs = import_late("quadpy.ad.graphs")
            again = graphs.backward_of(run)
            self.lost.used((*again.reads, *again.written))
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
                array, gradient = gradient_of(found, target)
                self.entries.append(Cleared(on, gradient, where))
                if array.has_dual() and array.grad.has_dual():
                    duals = storages_of(array.grad.dual)
                    dual = duals[storages_of(array.grad).index(gradient)]
                    self.entries.append(Cleared(on, dual, within(target.where, directions_of([array]))))

    def overwritten(self, on: Stream, written: Bytes) -> None:
        """A graph overwrites these bytes with constants."""
        with quietly(self):
            self.keep([written], on)
        for array in self.lost.having(written):
            for storage, gradient in zip(storages_of(array), storages_of(array.grad), strict=True):
                self.entries += [Cleared(on, *part) for part in parts_within(storage, written, gradient)]

    def is_gradient(self, parts: Sequence[Bytes]) -> bool:
        """Whether there are only gradients in these parts of memory."""
        gradients = [storage for array in with_derivatives("grad") for storage in storages_of(array.grad)]
        return all(any(holds(storage, part) for storage in gradients) for part in parts)

    def exported(self, on: Stream) -> None:
        """Like ``Taker.exported``: everything that is needed is copied, since it is not known what changes."""
        with quietly(self):
            self.keep(list(self._needed), on)
            used = [whole for each in self._used for whole in self.lost.having(each)]
            self._shared.left([] if self._session is not None else used, on, exported=True)

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
        recorder.takes_tensors = False
        recorder.use_everything()
        begin(recorder, self._begin(recorder))
        return recorder

    def _end(self, about: Recorder, *exception: Any) -> None:
        end(about)


def recorder_here(what: str) -> Any:
    """The tape of this thread, or what steps with checkpoints have in its place; None if there is none.

    Raises:
        ArgumentError: it takes derivatives forward, or several adjoints back.
    """
    taker = differentiating_here()
    if taker is not None and not taker.takes_graphs:
        raise ArgumentError(
            f"{what} is not supported in forward mode, or on a tape for several adjoints", call_site(), hint="use qp.ad.Tape"
        )  # fmt: skip
    return taker


def _ranges() -> list[Bytes]:
    """Where the arrays with gradients are, and these."""
    return [bytes_of(each) for array in with_derivatives("grad") for each in (array, array.grad)]


def gradient_of(found: Sequence[Any], target: ObservedAccess) -> tuple[Any, Storage]:
    """What the host writes to, and its gradient.

    Raises:
        ArgumentError: it writes to the memory of one of ``found`` as another array.
    """
    for array in found:
        for storage, gradient in zip(storages_of(array), storages_of(array.grad), strict=True):
            if storage.pointer == target.layout.start:
                return array, gradient
    raise ArgumentError(
        f"the host writes to the memory of {found[0]!r}, which calls on the tape have used, as another array", call_site(),
        hint="write to the array itself",
    )  # fmt: skip


def _is_exported(storage: Storage) -> bool:
    """Whether other libraries may write to the memory at any time."""
    return isinstance(storage, HostStorage) and storage.exported
