"""Many steps with bounded memory: some states are kept, and the steps between them run again on the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isqrt
from typing import TYPE_CHECKING, Any, NoReturn

from quadpy.ad.arrays import Bytes, bytes_of, gradients_among, overlap, part_of, storages_of, with_derivatives
from quadpy.ad.calls import Call, Launch
from quadpy.ad.copies import Copy, copy_of
from quadpy.ad.lost import Following
from quadpy.ad.recorder import Recorder, recorder_here
from quadpy.ad.steps import Steps
from quadpy.ad.switch import begin, end
from quadpy.core.importing import import_late
from quadpy.core.public import call_site, public
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import Kernel
from quadpy.jit.plan import Plan, Values, Views
from quadpy.runtime.device.blocks import Block
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.capturing import quietly
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.memory.device_storage import stream_of
from quadpy.runtime.memory.host_storage import Storage
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from typing_extensions import Self


class Stepping(Following, Block):
    """While it is open, finds which arrays calls change: ``first`` has what each held before, ``read`` the others."""

    takes_graphs = True

    def __init__(self, tape: Recorder) -> None:
        super().__init__("grad")
        self.lost = tape.lost
        self._tape = tape
        self.unnoted = False
        self.first: dict[Storage, Copy] = {}
        self.read: dict[Bytes, tuple[Storage, ...]] = {}

    def __enter__(self) -> Self:
        begin(self, self._begin(self))
        return self

    def _end(self, about: Stepping, *exception: Any) -> None:
        end(about)

    def taken(self, kernel: Kernel, plan: Plan, args: tuple[Any, ...]) -> Callable[[Values, Views, object], object]:
        def run(values: Values, views: Views, stream: object) -> object:
            on = stream_of(current_device(), stream)
            given = Launch(kernel, plan, args, values, views)
            with quietly(self):
                is_noted = not self.unnoted and self._tape.is_noted(given)
                self._before(on, [Call(kernel, given.arrays, given.touched, is_noted)], [])
                return given.run(stream)

        return run

    @contextmanager
    def custom(self, *backward: object) -> Iterator[None]:
        """Like ``Recorder.custom``: the way back calls the function again."""
        before, self.unnoted = self.unnoted, True
        try:
            yield
        finally:
            self.unnoted = before

    def _before(self, on: Stream, calls: Sequence[Call], written: Sequence[Bytes]) -> None:
        """These calls are next, and other work that writes ``written``."""
        ranges = list(written)
        for each in calls:
            if gradients_among([each.arrays[access.array] for access in each.touched]):
                _refuse_gradient("uses a gradient")
            self._tape.require_here(on, each.kernel.source.name)
            self._tape.follow(each)
            for access in each.touched:
                array = each.arrays[access.array]
                self.read.setdefault(bytes_of(array), storages_of(array))
                if access.kind != "read":
                    ranges.append(bytes_of(array))
        self._tape.keep(ranges, on)
        for where, storages in self.read.items():
            if any(overlap(where, each) for each in ranges):
                for storage in storages:
                    if storage not in self.first:
                        self.first[storage] = copy_of(storage, on)

    def wrote(self, on: Stream, target: ObservedAccess) -> None:
        """Like ``Differentiating.wrote``."""
        part = part_of(target)
        gradients = [storage.pointer for each in with_derivatives("grad") for storage in storages_of(each.grad)]
        if target.layout.start in gradients:
            _refuse_gradient(f"writes to {target.name}, a gradient")
        for array in self.lost.having(part):
            self.read.setdefault(bytes_of(array), storages_of(array))
        if target.where is not None and not any(overlap(part, each) for each in self.read):
            raise ArgumentError(
                f"a step writes to a part of {target.name}, which no kernel of a step has used yet", call_site(),
                hint="write all of it, or write it in a kernel",
            )  # fmt: skip
        if target.where is None:
            self.lost.overwritten(part)
        with quietly(self):
            self._before(on, [], [part])

    def exported(self, on: Stream) -> None:
        """Like ``Taker.exported``."""
        with quietly(self):
            self._tape.exported(on)

    def launch(self, run: Any, stream: Any) -> None:
        """Like ``Differentiating.launch``."""
        with quietly(self):
            again = import_late("quadpy.ad.graphs").backward_of(run)
            if again.skipped:
                _refuse_gradient(f"launches a graph whose node {again.skipped[0].name!r} changes a gradient")
            self._before(stream_of(run.device, stream), again.calls, again.written)
            run.launch(stream)


def _refuse_gradient(what: str) -> NoReturn:
    raise ArgumentError(
        f"a step of qp.ad.checkpoint {what}: it would do so again on the way back", call_site(),
        hint="use gradients after the tape",
    )  # fmt: skip


@public
def checkpoint(step: Callable[[int], object], n: int, *, slots: int | None = None) -> None:
    """Call ``step(0)`` to ``step(n - 1)``; a tape keeps at most ``slots`` states, by default about the square root of ``n``.

    On the way back, steps run again from the nearest state, as few as possible (Griewank and Walther's revolve).  A state
    is all arrays that steps change.  ``step`` is called again with the same number, so it must do the same then.

    Raises:
        ArgumentError: a negative number of steps, no slot, or a step that writes part of an array that no kernel used before.
    """
    if not hasattr(n, "__index__") or n < 0:
        raise ArgumentError(f"n={n!r} is not a number of steps", call_site())
    if slots is not None and (not hasattr(slots, "__index__") or slots < 1):
        raise ArgumentError(
            f"slots={slots!r} is not a number of states", call_site(), hint="the first one is always kept"
        )
    tape = recorder_here("checkpoint")
    if not isinstance(tape, Recorder) or tape.unnoted or n == 0:
        for number in range(n):
            step(number)
        return
    steps = Steps(current_device().stream_for(None), step, n, slots or isqrt(n - 1) + 1)
    with quietly(tape), Stepping(tape) as found:
        steps.forward(found.first)
    tape.add(steps, {where: kept for where, kept in found.read.items() if not found.first.keys() & {*kept}}, found.read)
