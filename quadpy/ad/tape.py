"""Reverse mode over several calls of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quadpy.ad.arrays import clear_all_gradients
from quadpy.ad.recorder import Recorder
from quadpy.ad.switch import begin, end, refuse_inner
from quadpy.core.public import call_site, public, require_switch
from quadpy.errors import ArgumentError
from quadpy.runtime.device.blocks import Block

if TYPE_CHECKING:
    from typing_extensions import Self


class Tape(Block):
    """``with qp.ad.Tape(loss):`` notes this thread's calls of kernels; at its end, the gradients are computed.

    ``loss`` has one element, and a gradient, which begins as 1; where a kernel returns it, set ``tape.loss`` in the block.  Each gradient is that of the numbers that an array held
    when the block first used it.  What later calls or the host overwrite is copied before, if the backward pass needs it.
    All gradients are cleared first, unless ``clear_gradients=False``.
    """

    @public
    def __init__(
        self, loss: Any = None, clear_gradients: bool = True, validation: bool = False, grad_check: object = None
    ) -> None:
        if grad_check is not None:
            raise ArgumentError("a tape checks no gradients", call_site(), hint="call qp.ad.gradcheck(fn, args)")
        require_switch(clear_gradients, "clear_gradients")
        require_switch(validation, "validation")  # what is overwritten is always copied, so there is nothing to find
        self.loss, self._clears = loss, clear_gradients

    @property
    def loss(self) -> Any:
        """What is differentiated."""
        return self._loss

    @loss.setter
    @public
    def loss(self, loss: Any) -> None:
        """Raise ArgumentError if it is not one number with a gradient."""
        if loss is not None and (
            getattr(loss, "size", 0) != 1 or getattr(loss, "element_shape", None) != () or not loss.has_grad()
        ):
            raise ArgumentError(
                f"the loss of a tape is a field or an ndarray of one number with a gradient, or what a kernel returns on it, not {loss!r}",
                call_site(), hint="make it with qp.field(qp.f32, (), needs_grad=True)",
            )  # fmt: skip
        self._loss = loss

    @public
    def __enter__(self) -> Self:
        refuse_inner()
        recorder = Recorder()
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
            if self._clears:
                clear_all_gradients()
            self._loss.grad.fill(1)
            about.go_back()
