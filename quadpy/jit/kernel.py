"""Kernels as Python calls them.  Owns: Kernel, ``kernel``.

Imports: leaves, ``lang``, ``runtime``; the compiler when a kernel is first compiled, since it loads LLVM.
"""

from __future__ import annotations

import functools
import importlib
import struct
from collections.abc import Callable
from typing import Any, overload

from quadpy.artifact import CodeObject
from quadpy.copying import ByName
from quadpy.errors import ArgumentError, KernelSourceError, KernelSyntaxError
from quadpy.graph.engines.kernel_stats import Counts, GraphKernelStats
from quadpy.jit.dispatcher import Dispatcher, compiler
from quadpy.lang.source import FunctionSource
from quadpy.runtime.device.current import State, current_config
from quadpy.runtime.launch.capturing import CAPTURES, replaying_here, set_launching_kernel
from quadpy.runtime.launch.fusion import Fuse, Fusion, require_fuse
from quadpy.runtime.launch.launch import Binder, HostLaunch, Prepared
from quadpy.target import parse_target

__all__ = ["Kernel", "kernel"]


class Kernel(ByName):
    """A function that runs as machine code, compiled at its first call with arguments of each type.

    ``kernel(…, stream=s)`` puts the work on a stream, instead of the calling thread's own; on the CPU a call returns
    when the work is done.
    """

    __quadpy_kernel__ = True

    def __init__(self, fn: Callable[..., Any], *, graph: bool = False, fuse: Fuse = "auto") -> None:
        functools.update_wrapper(self, fn)
        require_fuse(fuse, graph=graph)
        self.graph = graph
        self.fuse: Fuse = fuse if graph else False
        self.source = FunctionSource(fn)
        code = fn.__code__
        if "stream" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            raise KernelSyntaxError(
                f"{fn.__name__}: a parameter cannot be called stream, the keyword that says where a kernel runs",
                self.source.span, hint="give the parameter another name",
            )  # fmt: skip
        self._here: Dispatcher | None = None
        self._fast_call: Callable[..., bool] | None = None

    def __call__(self, /, *args: Any, stream: Any = None, **kwargs: Any) -> Any:
        """Runs the kernel and gives its result.

        Raises:
            ArgumentError: wrong number or types of arguments.
            StreamError: ``stream`` is none, was destroyed, or belongs to another device.
            CompilationError: the kernel itself is at fault; the message shows its line.
        """
        if (express := self._fast_call) is not None and not kwargs and express(stream, *args):
            return None
        here = self._here
        if here is None or here.config is not State.config:
            here = self._configure()
        if kwargs or len(args) != len(here.parameters):
            args = self._bind(here, args, kwargs)
            if self._fast_call is not None and self._fast_call(stream, *args):
                return None
        if CAPTURES.count and (known := replaying_here()) is not None and known.repeats(self, args, stream):
            return None
        try:
            variants, values, views = here.resolve(args)
            plan = variants.pick(views)
            if variants.on_gpu and not self.graph:
                self._fast_call = variants.find_fast_call(here.parameters, here.with_views(args, views))
            if CAPTURES.count:
                set_launching_kernel(self, args)
            try:
                return plan.run(values, views, stream)
            except (struct.error, OverflowError, TypeError):
                return plan.run(here.checked(args, views), views, stream)
        except ArgumentError as error:
            raise self._named(error) from error

    def prepare(self, *args: Any, **kwargs: Any) -> Prepared | HostLaunch:
        """What a call with these arguments would launch, without launching it; a graph takes it as a node.

        Raises:
            ArgumentError: wrong number or types of arguments, or an array of the host for a GPU.
            CompilationError: the kernel itself is at fault; the message shows its line.
        """
        here, args = self._in_order(args, kwargs)
        try:
            variants, values, views = here.resolve(args)
            plan = variants.pick(views)
            prepared: Prepared | HostLaunch
            try:
                prepared = plan.prepare(values, views)
            except (struct.error, OverflowError, TypeError):
                prepared = plan.prepare(here.checked(args, views), views)
        except ArgumentError as error:
            raise self._named(error) from error
        return prepared

    def _in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Dispatcher, tuple[Any, ...]]:
        """The configuration of now, and each parameter's argument; as a call does, whose own lines are the shorter way."""
        here = self._here
        if here is None or here.config is not State.config:
            here = self._configure()
        return here, self._bind(here, args, kwargs) if kwargs or len(args) != len(here.parameters) else args

    def binder(self, *args: Any) -> Binder | None:
        """What finds the argument blocks of calls that run the code of this one; None where each must be looked at anew."""
        here, args = self._in_order(args, {})
        variants, _, views = here.resolve(args)
        plan = variants.pick(views)
        found: Binder | None = variants.binder(plan, here.parameters, here.with_views(args, views), here.resolve)
        return found

    def fusion(self, *args: Any, **kwargs: Any) -> Fusion:
        """Whether a call with these arguments would be one launch, and why it would, or would not.

        Raises:
            ArgumentError: wrong number or types of arguments.
            CompilationError: the kernel itself is at fault; the message shows its line.
        """
        if not self.graph:
            return Fusion(False, "it is no graph kernel: qp.kernel(graph=True)")
        here, args = self._in_order(args, kwargs)
        try:
            variants, values, views = here.resolve(args)
            found: Fusion = compiler().fusion_of(variants.pick(views), values)
        except ArgumentError as error:
            raise self._named(error) from error
        return found

    def compile(self, target: str = "cpu", /, **arguments: Any) -> CodeObject:
        """Machine code for ``target``, such as ``"gfx942"``, on any machine: without a device, and without a call.

        ``arguments`` are what annotations leave open: ``x=qp.types.ndarray(dtype=qp.f32, ndim=2)`` for an array, a
        value for a ``template()`` parameter.  The code is that of arrays below 4 GiB that do not overlap, and on a
        GPU begin at multiples of 16 bytes; its ``image`` is the file that the target's driver loads.

        Raises:
            UnknownTargetError: there is no such target.
            ArgumentError: a type stays open, or contradicts its annotation.
            CompilationError: the kernel itself is at fault; the message shows its line.
        """
        offline = importlib.import_module("quadpy.jit.offline")
        code: CodeObject = offline.compile_for(self, parse_target(target), arguments)
        return code

    def graph_stats(self) -> GraphKernelStats:
        """What the calls of a graph kernel came to on GPUs since ``qp.init``; all 0 for any other kernel."""
        return Counts.sum(variants.counts for variants in list(self._here.plans.values() if self._here else ()))

    def _configure(self) -> Dispatcher:
        """Starts anew where ``qp.init`` changed what kernels depend on."""
        self._here, self._fast_call = Dispatcher(self.source, current_config(), graph=self.graph, fuse=self.fuse), None
        return self._here

    def _bind(self, here: Dispatcher, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Positional arguments out of keywords and defaults."""
        names = [parameter.name for parameter in here.parameters]
        try:
            return _signature(self.source.fn, args, kwargs)
        except TypeError as error:
            raise ArgumentError(
                f"{self.source.name}: {error}", self.source.span, hint=f"it takes {', '.join(names) or 'nothing'}"
            ) from None

    def _named(self, error: ArgumentError) -> ArgumentError:
        """``error`` with this kernel's name and place."""
        return ArgumentError(f"{self.source.name}: {error.message}", self.source.span, hint=error.hint)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<quadpy kernel {self.source.name} at {self.source.span}>"


def _signature(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    import inspect

    bound = inspect.signature(fn).bind(*args, **kwargs)
    bound.apply_defaults()
    return tuple(bound.arguments.values())


@overload
def kernel(
    fn: Callable[..., Any], /, *, fastcache: bool = False, graph: bool = False, fuse: Fuse = "auto"
) -> Kernel: ...
@overload
def kernel(
    *, fastcache: bool = False, graph: bool = False, fuse: Fuse = "auto"
) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    fn: Callable[..., Any] | None = None, /, *, fastcache: bool = False, graph: bool = False, fuse: Fuse = "auto"
) -> Any:
    """Makes a kernel of a function: its top-level ``for`` loops run in parallel.

    ``graph=True`` makes a graph kernel of it: its tasks become one graph, with loops over tasks (``qp.graph.do_while``)
    and sections that run at once (``qp.graph.parallel``); it returns nothing.
    ``fuse`` says whether its tasks run as one launch, with loops and all, on a GPU: ``True`` wherever that is possible,
    ``"auto"`` where it is also expected to be quicker, ``False`` never; ``Kernel.fusion`` tells what a call would do.
    ``fastcache`` is accepted for programs written for Quadrants: quadpy caches every kernel that way.

    Raises:
        KernelSourceError: ``fn`` is no Python function.
        ArgumentError: ``fuse`` is none of the three, or True without ``graph=True``.
    """
    if fn is None:
        require_fuse(fuse, graph=graph)
        return functools.partial(kernel, graph=graph, fuse=fuse)
    if not hasattr(fn, "__code__"):
        raise KernelSourceError(f"{fn!r} is no Python function")
    return Kernel(fn, graph=graph, fuse=fuse)
