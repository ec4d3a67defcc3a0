"""Graph kernels that pause at checkpoints and are resumed there; ``lang.checkpoints`` says how their code does it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quadpy.core.artifact import CHECKPOINT, PAUSED, TURN
from quadpy.core.completion import shows
from quadpy.core.dtypes import i32
from quadpy.core.importing import import_late
from quadpy.core.messages import shown
from quadpy.core.public import made_by, public
from quadpy.errors import ArgumentError
from quadpy.jit.kernel import BoundKernel, Kernel
from quadpy.runtime.arrays.ndarray import NDArray, ndarray
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.launch.fusion import Fusion

if TYPE_CHECKING:
    from quadpy.jit.dispatcher import Dispatcher
    from quadpy.jit.options import KernelOptions
    from quadpy.jit.parameters import Argument
    from quadpy.jit.variant_dispatcher import VariantDispatcher


@shows("checkpoint", "yielded")
@made_by("a call of a kernel with checkpoints returns one")
class GraphStatus:
    """What a kernel with checkpoints returns: whether it paused, and at which checkpoint.

    A call does not wait for the kernel; reading its status does.  The status of a call that a capture recorded is that of
    the graph's last launch.
    """

    __slots__ = ("_ask", "_changes", "_label")

    def __init__(self, ask: Callable[[], Any], *, changes: bool) -> None:
        self._ask, self._changes, self._label = ask, changes, ask

    @property
    def yielded(self) -> bool:
        """Whether a checkpoint paused the kernel."""
        return self.checkpoint is not None

    @property
    def checkpoint(self) -> Any:
        """The label of that checkpoint, for ``kernel.resume(…, from_checkpoint=label)``; None if the kernel is done."""
        if self._changes or self._label is self._ask:
            self._label = self._ask()
        return self._label

    def __repr__(self) -> str:
        return (
            f"GraphStatus(yielded=True, checkpoint={self.checkpoint!r})"
            if self.yielded
            else "GraphStatus(yielded=False)"
        )


@shows("resume")
class CheckpointKernel(Kernel):
    """A kernel whose calls pass an array more than the user's: the state of its checkpoints."""

    def __call__(self, /, *args: Argument, stream: object = None, **kwargs: Argument) -> Any:
        """Runs the kernel to its end, or until a checkpoint pauses it.

        Raises:
            As ``Kernel.__call__``.
        """
        if CHECKPOINT in kwargs:  # again, with the members of arguments that the kernel uses
            return super().__call__(*args, stream=stream, **kwargs)
        return self._start(0, args, stream, kwargs)

    @public
    def resume(
        self, /, *args: Argument, from_checkpoint: int | None, stream: object = None, **kwargs: Argument
    ) -> GraphStatus:
        """Runs the kernel from the beginning of a checkpoint on, with these arguments; what comes before is skipped.

        Raises:
            ArgumentError: the kernel has no such checkpoint; else as for a call.
        """
        labels = self._labels
        if from_checkpoint is None:
            raise ArgumentError(
                f"{self.source.name} did not pause, so there is no checkpoint to resume it from",
                hint="look at status.yielded first",
            )
        if from_checkpoint not in labels:
            raise ArgumentError(
                f"{self.source.name} has no checkpoint {shown(from_checkpoint)}", self.source.span,
                hint=f"it has {', '.join(map(repr, labels)) or 'none'}",
            )  # fmt: skip
        return self._start(1 + labels.index(from_checkpoint), args, stream, kwargs)

    @property
    def _labels(self) -> list[Any]:
        return import_late("quadpy.lang.checkpoints").labels_of(self.source)  # type: ignore[no-any-return]  # as annotated

    def _start(
        self, number: int, args: tuple[Argument, ...], stream: object, kwargs: dict[str, Argument]
    ) -> GraphStatus:
        """A call that begins at checkpoint ``number``, or at the beginning for 0."""
        runs = not CAPTURES.count  # otherwise it may be recorded, and the array belongs to a graph
        try:
            state = self._spare.pop() if runs and stream is None and not number else ndarray(i32, 2, stream=stream)
        except IndexError:
            state = ndarray(i32, 2)
        if number:
            state.fill(number, stream=stream)
        super().__call__(*args, stream=stream, **kwargs, **{CHECKPOINT: state})
        return GraphStatus(functools.partial(self._paused, state, stream, runs), changes=not runs)

    def _paused(self, state: NDArray, stream: object, runs: bool) -> Any:
        """The label of the checkpoint that paused a call; a state that is as new serves another one."""
        turn = state[TURN] if stream is None else int(state.to_numpy(stream=stream)[TURN])
        if runs and not turn and stream is None:
            self._spare.append(state)
        return self._labels[turn - PAUSED - 1] if turn > PAUSED else None

    def _take(self, options: KernelOptions) -> None:
        super()._take(options)
        self._spare: list[NDArray] = []

    def forget(self) -> None:
        """See ``Kernel.forget``."""
        super().forget()
        self._spare = []

    def _bind(
        self, dispatcher: Dispatcher | VariantDispatcher, args: tuple[Argument, ...], kwargs: dict[str, Argument]
    ) -> tuple[Argument, ...]:
        if (state := kwargs.pop(CHECKPOINT, None)) is None:
            raise ArgumentError(
                f"{self.source.name} has checkpoints: only a call has a status, which says whether it paused",
                self.source.span, hint="capture a call of it",
            )  # fmt: skip
        return (*super()._bind(dispatcher, args, kwargs), state)

    def fusion(self, *args: Argument, **kwargs: Argument) -> Fusion:
        """See ``Kernel.fusion``."""
        return super().fusion(*args, **kwargs, **{CHECKPOINT: ndarray(i32, 2)})

    def as_given(self, args: tuple[Argument, ...]) -> tuple[tuple[Argument, ...], dict[str, Argument]]:
        """See ``Kernel.as_given``."""
        given, kwargs = super().as_given(args[:-1])
        return given, {**kwargs, CHECKPOINT: args[-1]}


class BoundCheckpointKernel(CheckpointKernel, BoundKernel):
    """``obj.kernel``, of a kernel with checkpoints."""


CheckpointKernel.bound_class = BoundCheckpointKernel
