"""Forward mode over several calls of kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from quadpy.ad.arrays import ZERO, bytes_of, clear, part_of, storages_of, with_derivatives
from quadpy.ad.entries import call
from quadpy.ad.lost import Following
from quadpy.ad.switch import begin, end, refuse_inner
from quadpy.core.public import call_site, public, require_switch
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import Kernel
from quadpy.jit.observed_call import accesses_of
from quadpy.jit.plan import Plan, Values, Views
from quadpy.lang.fingerprints import is_our_module
from quadpy.runtime.arrays.view import ArrayMemory
from quadpy.runtime.device.blocks import Block
from quadpy.runtime.launch.capturing import quietly
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    from typing_extensions import Self


class FwdMode(Block):
    """``with qp.ad.FwdMode(loss, param, seed):`` computes, beside each field and ndarray, its derivative along ``seed``: its dual.

    ``param`` is the field or ndarray to differentiate by, ``seed`` has a number for each of its elements, by default 1 for one element.
    Afterwards ``loss.dual`` is the derivative of ``loss``, one of them or a list.  Kernels compute duals together with
    their values, in one launch.  All duals are cleared first, unless ``clear_gradients=False``.
    """

    @public
    def __init__(self, loss: Any, param: Any, seed: Any = None, clear_gradients: bool = True) -> None:
        for each in (param, *(loss if isinstance(loss, (list, tuple)) else (loss,))):
            if not (hasattr(each, "has_dual") and each.has_dual()):
                raise ArgumentError(
                    f"{each!r} has no dual", call_site(), hint="make it with qp.field(…, needs_dual=True)"
                )
        require_switch(clear_gradients, "clear_gradients")
        self._param, self._clears = param, clear_gradients
        shape = tuple(param.shape) + tuple(param.element_shape)
        if seed is None and np.prod(shape, dtype=int) != 1:
            raise ArgumentError(
                f"seed is missing: {param!r} has {param.size} elements", call_site(),
                hint="pass a number for each element, the direction of the derivative",
            )  # fmt: skip
        given = np.asarray(1.0 if seed is None else seed, np.float64)
        if given.size != np.prod(shape, dtype=int):
            raise ArgumentError(f"seed has {given.size} numbers, and {param!r} has the shape {shape}", call_site())
        self._seed = given.reshape(shape)

    @public
    def __enter__(self) -> Self:
        refuse_inner()
        for each in list(with_derivatives("dual")) if self._clears else ():
            clear(each.dual)
        self._param.dual.from_numpy(self._seed)
        runner = ForwardRunner()
        begin(runner, self._begin(runner))
        return self

    def _end(self, about: ForwardRunner, *exception: Any) -> None:
        end(about)


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
            arrays: tuple[ArrayMemory, ...] = (*views, *plan.fields)
            found = [whole for each in arrays for whole in self.lost.having(bytes_of(each))]
            have = [bytes_of(each) for whole in with_derivatives("dual") for each in (whole, whole.dual)]
            touched, is_taken = accesses_of(plan, values), bool(found) and not kernel.options.derivative
            self.lost.call(kernel, arrays, touched, have, differentiated=is_taken)
            if not is_taken:
                return call(kernel, plan, args, values, views, stream)
            if is_our_module(kernel.source.fn.__module__):
                raise ArgumentError(
                    f"a function of quadpy's own, which has no derivative, is called in forward mode for {found[0]!r}",
                    call_site(), hint="write it as a kernel",
                )  # fmt: skip
            given, named = kernel.as_given(args)
            dual = kernel.derivative("dual")
            dual_plan, values, views = dual.planned(given, named, lambda *all: all)
            return call(dual, dual_plan, args, values, views, stream)

    def wrote(self, on: Stream, target: ObservedAccess) -> None:
        """Like ``Taker.wrote``: the dual of a constant is 0."""
        if target.where is None:
            self.lost.overwritten(part_of(target))
        with quietly(self):
            found = self.lost.having(part_of(target))
            pairs = [pair for each in found for pair in zip(storages_of(each), storages_of(each.dual), strict=True)]
            dual = next((dual for storage, dual in pairs if storage.pointer == target.layout.start), None)
            if dual is not None:
                dual.write(... if target.where is None else target.where, ZERO, on)
            elif found:
                raise ArgumentError(f"the host writes to the memory of {found[0]!r} as another array", call_site(),
                                    hint="write to the array itself")  # fmt: skip

    takes_graphs = False

    def launch(self, run: Any, stream: Any) -> None:
        """Like ``Differentiating.launch``."""
        raise ArgumentError(
            "a graph is launched in forward mode, which sees only calls of kernels",
            call_site(),
            hint="call the kernels themselves",
        )

    def exported(self, on: Stream) -> None:
        """Like ``Taker.exported``: nothing is kept."""
