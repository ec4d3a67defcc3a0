"""Graph kernels with a ``do_while`` loop on a tape: each turn is a call of its own, with few kept states."""

from __future__ import annotations

from itertools import count
from typing import Any

from quadpy.ad.arrays import bytes_of, storages_of
from quadpy.ad.calls import Launch
from quadpy.ad.checkpoints import checkpoint
from quadpy.ad.copies import copy_of
from quadpy.ad.recorder import Recorder
from quadpy.core.derivatives import Derivative
from quadpy.core.flow import conditions_of
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.runtime.launch.capturing import differentiating_here, quietly
from quadpy.runtime.streams.stream import Stream, use_stream


def call_turns(given: Launch, on: Stream, *, is_captured: bool) -> None:
    """Do what the call does, turn by turn; the way back has about the square root of as many states.

    The turns run twice: it must be known how many there are.

    Raises:
        ArgumentError: the host cannot repeat the turns, or they would differ.
        KernelTypeError: the kernel is more than the loop.
    """
    tape: Any = differentiating_here()
    name, conditions = given.kernel.source.name, conditions_of(given.plan.code.flow)
    is_turn = given.kernel.options.derivative.of_turn
    for refused, what, hint in (
        (not tape.takes_graphs, "is on a tape in forward mode, or for several adjoints", "use qp.ad.Tape alone, for one adjoint"),
        (is_captured, "is on a tape that a graph records, or in a graph that a tape launches", "call it on a tape outside of graphs"),
        (len(conditions) > 1 or is_turn, "another one", "write each loop as a kernel of its own"),
        (not any(a.name in conditions and a.kind != "read" for a in given.touched), "never changes its condition", "let it end"),
        (given.draws, "draws random numbers", "draw them before, into an array"),
        (bool(given.plan.code.results), "returns a number", "write it to an array"),
    ):  # fmt: skip
        if refused:
            raise ArgumentError(
                f"{name} has a do-while loop and {what}: a tape does not go back through it", call_site(), hint=hint
            )
    with quietly(tape):
        silent = given.derivative(Derivative(of_turn=True, silent=True))
        turns, numbers = _turns_of(silent, conditions, on), count()
    loud, (positional, named) = given.kernel.derivative(Derivative(of_turn=True)), given.kernel.as_given(given.args)
    with use_stream(on):  # the way back repeats turns, whose numbers are less than those of the calls
        checkpoint(lambda turn: (loud if turn == next(numbers) else silent.kernel)(*positional, **named), turns)


def _turns_of(turn: Launch, conditions: tuple[str, ...], on: Stream) -> int:
    """How often the loop runs; all arrays are as they were."""
    arrays, count = turn.arrays, 0
    (condition,) = {bytes_of(arrays[a.array]): arrays[a.array] for a in turn.touched if a.name in conditions}.values()
    changed = {bytes_of(arrays[each.array]): arrays[each.array] for each in turn.touched if each.kind != "read"}
    before = [copy_of(storage, on) for array in changed.values() for storage in storages_of(array)]
    try:
        while count == 0 or storages_of(condition)[0].read(..., on).flat[0]:
            turn._replace(values=turn.values[:]).run(on)
            count += 1
    finally:
        for each in before:
            each.restore(on)
    return count


Recorder.call_turns = staticmethod(call_turns)
