"""Kernels that were saved, as users call them."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from quadpy.core.completion import shows
from quadpy.core.copying import OneProcess
from quadpy.core.dtypes import BY_NAME
from quadpy.core.importing import import_late
from quadpy.core.public import call_site, made_by, public
from quadpy.errors import ArgumentError, GraphError
from quadpy.graph.saved.arrays import SavedArrays
from quadpy.graph.saved.container import reading
from quadpy.graph.saved.manifest import SavedFile
from quadpy.graph.saved.plans import opened, plan_of, span_of
from quadpy.jit.cpu_plan import CpuPlan
from quadpy.jit.gpu_plan import GpuPlan
from quadpy.jit.misfits import Misfit
from quadpy.jit.numbers import number_of
from quadpy.jit.plan import Values, Views
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.modules import Label
from quadpy.runtime.launch.capturing import CAPTURES, differentiating_here
from quadpy.runtime.launch.launch import HostLaunch, Prepared

if TYPE_CHECKING:
    from quadpy.jit.fusion.plan import FusingPlan

T = TypeVar("T")


@public
def load_kernel(path: str | os.PathLike[str], *, target: str | None = None) -> SavedKernel:
    """Load a kernel that ``kernel.save`` wrote; it runs on the current device, without the compiler.

    The file contains machine code: load files only from sources that you trust.

    Args:
        path: the file.
        target: the target whose code runs, such as "x86-64"; by default the best one for the device.

    Raises:
        SavedGraphError: it is not a saved kernel, is damaged, or has no code for the device.
        OSError: the file cannot be read.
    """
    return SavedKernel(*opened(path, target, "kernel"))


@made_by("qp.load_kernel(path) makes one")
@shows("device", "prepare", "target")
class SavedKernel(OneProcess):
    """A kernel from a file, for one device; a graph takes it as a node, and a capture records its calls.

    Arguments are passed in order or by name.  Arrays are below 4 GiB, do not overlap where one of them is written, and on a
    GPU begin at multiples of 16 bytes.
    """

    __quadpy_kernel__ = True
    receiver = None
    error: ClassVar[type[GraphError]] = GraphError
    instead: ClassVar[str] = "load the file where it is used"

    def __init__(self, file: SavedFile, target: str, device: Device) -> None:
        self.device, self.target = device, target
        self._arrays = SavedArrays(file, device)
        with reading("the facts of its kernel cannot be read"):
            (kernel,) = file.manifest["kernels"]
            self._parameters = [(name, *kind) for name, *kind in file.manifest["parameters"]["values"]]
            self._plan: CpuPlan | GpuPlan | FusingPlan = _fusing(plan_of(
                file, kernel, target, device, keep_hidden=True, seed=current_config().random_seed,
                result_shape=ast.literal_eval(file.manifest["parameters"]["result"]),
            ))  # fmt: skip
        self.__name__: str = kernel["name"]
        self._label = Label(self.__name__, span=span_of(kernel["place"]))

    def __call__(self, /, *args: Any, stream: object = None, **kwargs: Any) -> Any:
        """Run the kernel and return its result.

        Raises:
            ArgumentError: an argument is missing, or does not fit, with its name; or derivatives are taken.
            BoundsError: the kernel is certain to leave an array.
            StreamError: ``stream`` was destroyed, or is of another device.
        """
        run: Callable[..., Any] = self._plan.run
        if CAPTURES.watched:
            run = self._watched(run)
        return self._planned(args, kwargs, lambda values, views: run(values, views, stream))

    def _watched(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """``run``, which tells the observer of work."""
        if differentiating_here() is not None:
            raise ArgumentError(
                f"the saved kernel {self.__name__} is called on a tape, and a file has no derivatives", call_site(),
                hint="call the kernel itself; or call it before or after the tape",
            )  # fmt: skip
        if (observer := CAPTURES.observer) is None:
            return run
        return functools.partial(
            import_late("quadpy.jit.observed_call").run_observed, observer, self._label, self._plan
        )

    def prepare(self, /, *args: Any, **kwargs: Any) -> Prepared | HostLaunch:
        """Return what a call with ``args`` and ``kwargs`` would launch; a graph takes it as a node."""
        return self._planned(args, kwargs, self._plan.prepare)

    @public
    def _planned(self, args: Sequence[Any], kwargs: Mapping[str, Any], use: Callable[[Values, Views], T]) -> T:
        names = [name for name, *_ in self._parameters]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        missing = "".join(f", and lacks {name}" for name in names if name not in given)
        if missing or len(args) + len(kwargs) > len(names):
            raise ArgumentError(f"{self.__name__} takes {', '.join(names)}, each once{missing}", call_site())
        views = self._arrays.views({name: given[name] for name in self._arrays.names})
        axes = {info.name: len(info.shape) for info in self._arrays.infos}
        there, values = dict(zip(self._arrays.names, views, strict=True)), list[Any]()
        for name, type, *shape in self._parameters:
            if type == "array":
                values += there[name].abi[: 1 + axes[name]]  # those of elements are known
            elif type == "struct":
                for path, scalar, *extents in map(str.split, shape):
                    values += _numbers(_member(given[name], path, name), scalar, extents, f"{name}.{path}")
            else:
                values += _numbers(given[name], type, shape, name)
        try:
            return use(values, views)
        except Misfit:
            raise ArgumentError(f"an argument of {self.__name__} does not fit its type", call_site()) from None

    def __repr__(self) -> str:
        return f"<SavedKernel {self.__name__} for {self.target} on {self.device}>"


def _fusing(plan: CpuPlan | GpuPlan) -> CpuPlan | GpuPlan | FusingPlan:
    """``plan``, whose loops on a GPU are one launch by the rule of kernels that are compiled."""
    if isinstance(plan, CpuPlan) or (one := plan.origin.one) is None:  # type: ignore[union-attr]  # a SavedOrigin
        return plan
    fusion, (first, *_) = import_late("quadpy.jit.fusion.plan"), plan.launches
    made = functools.partial(fusion.FusedPlan, one, plan, name=first.name.partition(",")[0], spans=[first.span])
    return fusion.FusingPlan(plan, plan.device, "auto", made)  # type: ignore[no-any-return]  # as annotated


def _member(given: Any, path: str, name: str) -> Any:
    """The member of ``given``, a struct or a dict, at the end of the ``path`` of names."""
    try:
        for step in path.split("."):
            given = given[step] if isinstance(given, Mapping) else getattr(given, step)
    except (KeyError, AttributeError):
        raise ArgumentError(
            f"{name} takes a struct or a dict with {path}", hint="pass one with all of its members"
        ) from None
    return given


def _numbers(given: Any, type: str, extents: Sequence[str], name: str) -> list[Any]:
    """``given`` as numbers of the argument block."""
    shape = tuple(map(int, extents))
    if not shape:
        return [number_of(given, BY_NAME[type], name)]
    try:
        parts = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given)
    except ValueError:
        raise ArgumentError(f"{name} takes shape {shape}, not rows of different lengths") from None
    if parts.shape != shape:
        raise ArgumentError(f"{name} takes shape {shape}, not {parts.shape}")
    return [number_of(part, BY_NAME[type], name) for part in parts.reshape(-1).tolist()]
