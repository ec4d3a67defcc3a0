"""Kernels made from a kernel: those that compute its derivatives."""

from __future__ import annotations

from quadpy.errors import ArgumentError
from quadpy.jit.kernel import BoundKernel, Kernel
from quadpy.jit.options import KernelOptions
from quadpy.lang.arguments import TURN, Derivative


def derivative_of(kernel: Kernel, kind: str) -> Kernel:
    """See ``Kernel.derivative``.

    Raises:
        ArgumentError: it is the derivative of another kernel.
    """
    if isinstance(kernel, BoundKernel):
        found: Kernel = kernel.__func__.derivative(kind).__get__(kernel.__self__)
    else:
        found = _of_function(kernel, kind)
    if kernel.options.guarded:
        found.guard()
    return found


def _of_function(kernel: Kernel, kind: str) -> Kernel:
    if Derivative.of(kernel.options.derivative).of_turn:
        kind += TURN
    name = f"_{kind}"
    found: Kernel | None = vars(kernel).get(name)
    if found is None:
        if Derivative.of(kernel.options.derivative).kind:
            raise ArgumentError(
                f"{kernel!r} is a derivative already",
                hint="derivatives of second order are those of a tape inside qp.ad.FwdMode",
            )
        found = _made(kernel, kernel.options._replace(derivative=kind))
    return vars(kernel).setdefault(name, found)  # type: ignore[no-any-return]  # of two threads, one is first


def _made(kernel: Kernel, options: KernelOptions) -> Kernel:
    made = object.__new__(type(kernel))
    own, of = vars(made), vars(kernel)
    own.update(of, options=options, __qualname__=f"{of['__qualname__']}.{options.derivative}")
    own.update(_dispatcher=None, _fast_call=None, _plain=None)
    return made
