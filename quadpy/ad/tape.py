"""Reverse mode over several calls of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quadpy.ad.arrays import with_derivatives
from quadpy.ad.copies import clear_gradients, set_numbers
from quadpy.ad.forward import ForwardRunner, listed, numbers_of, seeds_of
from quadpy.ad.recorder import Recorder
from quadpy.ad.second import SecondOrder
from quadpy.ad.switch import begin, end, refuse_inner
from quadpy.core.public import call_site, public, require_switch
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.foreign_host import requires_grad
from quadpy.runtime.device.blocks import Block
from quadpy.runtime.launch.capturing import differentiating_here

if TYPE_CHECKING:
    from typing_extensions import Self


class Tape(Block):
    """``with qp.ad.Tape(loss):`` notes this thread's calls of kernels; at its end, the gradients are computed.

    ``loss`` has one element, and a gradient, which begins as 1; where a kernel returns it, set ``tape.loss`` in the block.  Each gradient is that of the numbers that an array held
    when the block first used it.  What later calls or the host overwrite is copied before, if the backward pass needs it.
    All gradients are cleared first, unless ``clear_gradients=False``, other than those of arrays that another thread made or used in a tape last.  ``seed`` has a number for each element of ``loss``, to begin
    with in place of 1; both may be lists of as many.  With ``several=4``, a seed has 4 rows, and one backward pass takes
    all back at once: of arrays with ``needs_grad=True, needs_dual=4``, ``x.grad.dual`` has the 4 gradients.

    Inside ``qp.ad.FwdMode``, the gradients of arrays with both ``needs_grad`` and ``needs_dual`` get duals, ``x.grad.dual``: the Hessian
    times the direction.
    """

    @public
    def __init__(
        self, loss: Any = None, clear_gradients: bool = True, validation: bool = False, grad_check: object = None,
        *, seed: Any = None, several: int | None = None,
    ) -> None:  # fmt: skip
        if grad_check is not None:
            raise ArgumentError("a tape checks no gradients", call_site(), hint="call qp.ad.gradcheck(fn, args)")
        require_switch(clear_gradients, "clear_gradients")
        require_switch(validation, "validation")  # what is overwritten is always copied, so there is nothing to find
        self._seed, self._several = seed, several
        if several is not None and (not hasattr(several, "__index__") or several < 1 or seed is None):
            raise ArgumentError(
                f"several={several!r} adjoints need a seed for each",
                call_site(),
                hint="several=4 with a seed of 4 rows",
            )
        self.loss, self._clears = loss, clear_gradients

    @property
    def loss(self) -> Any:
        """What is differentiated."""
        return self._loss

    @loss.setter
    @public
    def loss(self, loss: Any) -> None:
        """Raise ArgumentError if it is not one number with a gradient, or an array for which there is a seed."""
        for each in () if loss is None else listed(loss):
            if requires_grad(each):
                is_one, has_grad = each.numel() == 1, True
            else:
                is_one = getattr(each, "size", 0) == 1 and getattr(each, "element_shape", None) == ()
                has_grad = hasattr(each, "has_grad") and each.has_grad()
            if has_grad and (is_one or self._seed is not None):
                continue
            raise ArgumentError(
                f"the loss of a tape is a field or an ndarray of one number with a gradient, or what a kernel returns on it, not {each!r}",
                call_site(), hint="make it with qp.field(qp.f32, (), needs_grad=True); for more numbers, pass seed=",
            )  # fmt: skip
        self._loss = loss

    @public
    def __enter__(self) -> Self:
        around = differentiating_here()
        if not isinstance(around, ForwardRunner):
            refuse_inner()
        if isinstance(around, ForwardRunner) and self._several is not None:
            raise ArgumentError("a tape in forward mode takes back one adjoint", call_site(), hint="leave several= out")
        recorder = SecondOrder(around) if isinstance(around, ForwardRunner) else Recorder(self._several)
        begin(recorder, self._begin(recorder))
        return self

    def _end(self, about: Recorder, *exception: Any) -> None:
        end(about)
        if not exception or exception[0] is None:
            if self._loss is None:
                raise ArgumentError(
                    "a tape ends without a loss",
                    call_site(),
                    hint="pass it to qp.ad.Tape; or set tape.loss in the block",
                )
            losses = [about.tensors.array_of(e) if requires_grad(e) else e for e in listed(self._loss)]
            about.tensors.require_unchanged()
            if self._clears:
                clear_gradients(with_derivatives("grad", of_this_thread=True))
            seeds = seeds_of(losses, self._seed if isinstance(self._loss, (list, tuple)) else [self._seed])
            for each, seed in seeds:
                adjoint = each.grad if about.several is None else each.grad.dual
                set_numbers(adjoint, numbers_of(seed, each, adjoint))
            about.go_back()
            about.tensors.give(clears=self._clears)
