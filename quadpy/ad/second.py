"""Second order: a tape in forward mode, whose backward pass computes duals of gradients."""

from __future__ import annotations

from quadpy.ad.calls import Launch
from quadpy.ad.forward import ForwardRunner
from quadpy.ad.recorder import Recorder
from quadpy.core.derivatives import Derivative
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.streams.stream import Stream


class SecondOrder(Recorder):
    """Notes calls as a tape does, and runs them as forward mode does: values and duals are kept alike."""

    takes_tensors = False

    def __init__(self, forward: ForwardRunner) -> None:
        super().__init__()
        self.takes_graphs = False
        self.forward = forward

    def chosen(self, given: Launch) -> tuple[Launch, Derivative]:
        """Like ``Recorder.chosen``: the forward kernel, and the tangents of the backward one."""
        launch, directions = self.forward.replaced(given)
        if self.unnoted:
            return launch, Derivative()
        self.require_duals(given, directions)
        if launch is given:
            return given, Derivative("grad")
        return launch, Derivative("grad.dual", directions)

    def wrote(self, on: Stream, target: ObservedAccess) -> None:
        """Like ``Taker.wrote``: a constant has no gradient, and no dual."""
        self.forward.wrote(on, target)
        super().wrote(on, target)
