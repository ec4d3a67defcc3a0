"""Kernels made from a kernel: those that compute its derivatives."""

from __future__ import annotations

from quadpy.core.derivatives import Derivative
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import BoundKernel, Kernel
from quadpy.jit.options import KernelOptions


def derivative_of(kernel: Kernel, asked: Derivative) -> Kernel:
    """See ``Kernel.derivative``.

    Raises:
        ArgumentError: it is the derivative of another kernel.
    """
    if isinstance(kernel, BoundKernel):
        found: Kernel = kernel.__func__.derivative(asked).__get__(kernel.__self__)
    else:
        found = _of_function(kernel, asked)
    if kernel.options.guarded:
        found.guard()
    return found


def _of_function(kernel: Kernel, asked: Derivative) -> Kernel:
    known = kernel.options.derivative
    if known.of_turn:
        asked = asked._replace(of_turn=True, silent=known.silent)
    name = f"_{asked}"
    found: Kernel | None = vars(kernel).get(name)
    if found is None:
        if known.kind:
            raise ArgumentError(
                f"{kernel!r} is a derivative already",
                hint="derivatives of second order are those of a tape inside qp.ad.FwdMode",
            )
        found = _made(kernel, kernel.options._replace(derivative=asked))
    return vars(kernel).setdefault(name, found)  # type: ignore[no-any-return]  # of two threads, one is first


def _made(kernel: Kernel, options: KernelOptions) -> Kernel:
    made = object.__new__(type(kernel))
    own, of = vars(made), vars(kernel)
    own.update(of, options=options, __qualname__=f"{of['__qualname__']}.{options.derivative.kind}")
    own.update(_dispatcher=None, _fast_call=None, _plain=None)
    return made
