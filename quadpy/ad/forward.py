"""Forward mode over several calls of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from quadpy.ad.arrays import bytes_of, part_of, storages_of, with_derivatives
from quadpy.ad.calls import Launch
from quadpy.ad.copies import clear, set_numbers, set_to_zero
from quadpy.ad.lost import Following
from quadpy.ad.switch import begin, end, refuse_inner
from quadpy.core.derivatives import Derivative
from quadpy.core.public import call_site, public, require_switch
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import Kernel
from quadpy.jit.plan import Plan, Values, Views
from quadpy.runtime.device.blocks import Block
from quadpy.runtime.launch.capturing import quietly
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.memory.host_storage import Where
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from typing_extensions import Self


class FwdMode(Block):
    """``with qp.ad.FwdMode(loss, param, seed):`` computes, beside each field and ndarray, its derivative along ``seed``: its dual.

    ``param`` is the field or ndarray to differentiate by, ``seed`` has a number for each of its elements, by default 1 for one element;
    both may be lists of as many.  With duals in several directions, ``needs_dual=4``, a seed has these as its first axis.
    Afterwards ``loss.dual`` is the derivative of ``loss``, one of them or a list.  Kernels compute duals together with
    their values, in one launch.  All duals are cleared first, on the current stream, unless ``clear_gradients=False``,
    other than those of arrays that another thread made or used last.
    """

    @public
    def __init__(self, loss: Any, param: Any, seed: Any = None, clear_gradients: bool = True) -> None:
        params = listed(param)
        for each in (*params, *listed(loss)):
            if not (hasattr(each, "has_dual") and each.has_dual()):
                raise ArgumentError(
                    f"{each!r} has no dual", call_site(), hint="make it with qp.field(…, needs_dual=True)"
                )
        require_switch(clear_gradients, "clear_gradients")
        self._clears = clear_gradients
        seeds = seeds_of(params, seed if isinstance(param, (list, tuple)) else [seed])
        self._seeds = [(each.dual, numbers_of(given, each, each.dual)) for each, given in seeds]

    @public
    def __enter__(self) -> Self:
        refuse_inner()
        for each in list(with_derivatives("dual", of_this_thread=True)) if self._clears else ():
            clear(each.dual)
        for dual, seed in self._seeds:
            set_numbers(dual, seed)
        runner = ForwardRunner()
        begin(runner, self._begin(runner))
        return self

    def _end(self, about: ForwardRunner, *exception: Any) -> None:
        end(about)


def listed(given: Any) -> Sequence[Any]:
    """One array, or several."""
    return given if isinstance(given, (list, tuple)) else (given,)


def seeds_of(arrays: Sequence[Any], seeds: Sequence[Any] | None) -> Iterator[tuple[Any, Any]]:
    """Each array with its seed.

    Raises:
        ArgumentError: there are more or fewer seeds.
    """
    seeds = [None] * len(arrays) if seeds is None else seeds
    if len(seeds) != len(arrays):
        raise ArgumentError(f"{len(seeds)} seeds for {len(arrays)} arrays", call_site())
    return zip(arrays, seeds, strict=True)


def numbers_of(given: Any, array: Any, derivative: Any) -> Any:
    """The numbers with which a dual or a gradient of ``array`` begins, from what the user passes as a seed.

    Raises:
        ArgumentError: it has another number of elements, or is missing.
    """
    shape = tuple(derivative.shape) + tuple(derivative.element_shape)
    size = int(np.prod(shape, dtype=int))
    if given is None and size != 1:
        raise ArgumentError(
            f"seed is missing: {array!r} has {array.size} elements", call_site(),
            hint="pass a number for each element, the direction of the derivative",
        )  # fmt: skip
    made = np.asarray(1.0 if given is None else given.to_numpy() if hasattr(given, "to_numpy") else given, np.float64)
    if made.size != size:
        raise ArgumentError(f"seed has {made.size} numbers, and {array!r} needs the shape {shape}", call_site())
    return made.reshape(shape)


def directions_of(arrays: Iterable[Any]) -> int | None:
    """In how many directions at once these arrays have duals; None for one without an axis of its own.

    Raises:
        ArgumentError: they differ.
    """
    found = {each.dual.shape[0] if len(each.dual.shape) > len(each.shape) else None: each for each in arrays}
    if len(found) > 1:
        (one, first), (other, second), *_ = found.items()
        raise ArgumentError(
            f"{first!r} has duals in {one or 1} directions, and {second!r} in {other or 1}", call_site(),
            hint="make all with the same needs_dual=",
        )  # fmt: skip
    return next(iter(found), None)


class ForwardRunner(Following):
    """Runs the forward kernels in place of kernels that use duals."""

    def __init__(self) -> None:
        super().__init__("dual")

    def taken(self, kernel: Kernel, plan: Plan, args: tuple[Any, ...]) -> Callable[[Values, Views, object], object]:
        """Like ``Differentiating.taken``: a kernel that uses duals is replaced by its forward kernel."""
        return partial(self._run, kernel, plan, args)

    def _run(
        self, kernel: Kernel, plan: Plan, args: tuple[Any, ...], values: Values, views: Views, stream: object
    ) -> object:
        with quietly(self):
            return self.replaced(Launch(kernel, plan, args, values, views))[0].run(stream)

    def replaced(self, given: Launch) -> tuple[Launch, int | None]:
        """What runs in place of a call, and for how many directions at once.

        Raises:
            ArgumentError: a derivative would be lost.
        """
        have = [bytes_of(each) for whole in with_derivatives("dual") for each in (whole, whole.dual)]
        found = [] if given.kernel.options.derivative else self.lost.used_by(given)
        found += [each for each in given.numbers if each.has_dual()]
        is_taken = bool(found) and not given.kernel.options.derivative
        self.lost.call(given.kernel, given.arrays, given.touched, have, differentiated=is_taken)
        if not is_taken:
            return given, None
        directions = directions_of(found)
        return given.derivative(Derivative("dual", directions)), directions

    def wrote(self, on: Stream, target: ObservedAccess) -> None:
        """Like ``Taker.wrote``: the dual of a constant is 0."""
        if target.where is None:
            self.lost.overwritten(part_of(target))
        with quietly(self):
            found = self.lost.having(part_of(target))
            pairs = [
                (each, *pair) for each in found for pair in zip(storages_of(each), storages_of(each.dual), strict=True)
            ]
            pair = next((pair for pair in pairs if pair[1].pointer == target.layout.start), None)
            if pair is not None:
                set_to_zero(pair[2], within(target.where, directions_of([pair[0]])), on)
            elif found:
                raise ArgumentError(f"the host writes to the memory of {found[0]!r} as another array", call_site(),
                                    hint="write to the array itself")  # fmt: skip

    def exported(self, on: Stream) -> None:
        """Like ``Taker.exported``: nothing is kept."""


def within(where: Where | None, directions: int | None) -> Where:
    """Where a dual has what an array has at ``where``."""
    if where is None or where is ...:
        return ...
    return where if directions is None else (slice(None), *where)
