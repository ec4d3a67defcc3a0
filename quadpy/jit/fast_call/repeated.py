"""Calls on the CPU that pass the arrays of the last call again.

A kernel of a simulation takes hundreds of arrays, the same ones in each step.  To describe and compare them takes longer
than most such kernels, so it is done once: then a call is known by its arrays' identity.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from operator import is_, itemgetter
from typing import Final

from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.fast_call.arguments import REFUSALS, FastCall
from quadpy.jit.misfits import Misfit
from quadpy.jit.parameters import Argument, ArrayParameter, Parameter
from quadpy.jit.plan import Values
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.device.current import State
from quadpy.runtime.launch.capturing import CAPTURES

__all__ = ["FEWEST_ARRAYS", "RepeatedCalls"]

FEWEST_ARRAYS: Final = 16
"""Kernels with fewer arrays resolve each call: that is as fast."""

_MOST_VAIN: Final = 8
"""Memories in a row that no call used, after which there are no more of them."""


class RepeatedCalls:
    """The memory of one specialisation: the arrays of a call, none of which it keeps alive, and what it was packed into."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._parameters = parameters
        arrays = [k for k, parameter in enumerate(parameters) if isinstance(parameter, ArrayParameter)]
        self._arrays: Callable[[Sequence[Argument]], tuple[Argument, ...]] = itemgetter(*arrays)
        self._vain = self._used = 0

    @property
    def is_vain(self) -> bool:
        """Whether the arrays change with each call, so that there are no more memories."""
        return self._vain > _MOST_VAIN

    def fast_call(self, plan: CpuPlan, args: Sequence[Argument]) -> FastCall | None:
        """Launches calls with the arrays of ``args`` by ``plan``; None where one is another library's."""
        arrays = self._arrays(args)
        self._vain, self._used = 0 if self._used else self._vain + 1, 0
        if self.is_vain or not all(type(array) in (NDArray, OrderedNDArray) for array in arrays):
            return None
        known, config, values, others = list(map(weakref.ref, arrays)), State.config, *self._values(args)
        block = None if others or plan.code.hidden else plan.block_of(values)
        parameters, count, arrays_of = self._parameters, len(self._parameters), self._arrays

        def call(stream: object, *given: Argument) -> bool | tuple[object]:
            if stream is not None or State.config is not config or CAPTURES.count or CAPTURES.watched:
                return False
            if len(given) != count or not all(map(is_, arrays_of(given), [ref() for ref in known])):
                return False
            self._used += 1
            packed = block
            if packed is None:
                now = values.copy()
                try:
                    for k, start, end in others:
                        now[start:end] = parameters[k].values(given[k])
                    packed = plan.block_of(now)
                except (*REFUSALS, Misfit):
                    return False
            result = plan.launch(packed)
            return True if result is None else (result,)

        return call

    def _values(self, args: Sequence[Argument]) -> tuple[Values, list[tuple[int, int, int]]]:
        """The values of the argument block; and for each parameter that is not an array, where its own are."""
        values: Values = []
        others: list[tuple[int, int, int]] = []
        for k, (parameter, given) in enumerate(zip(self._parameters, args, strict=True)):
            start = len(values)
            values += parameter.values(given)
            if not isinstance(parameter, ArrayParameter):
                others.append((k, start, len(values)))
        return values, others
