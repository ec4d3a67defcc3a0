"""Kernels as Python calls them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, overload

from quadpy.core.completion import shows
from quadpy.core.copying import ByName, Recipe
from quadpy.core.derivatives import Derivative
from quadpy.core.importing import import_late
from quadpy.core.public import public_init, shortened
from quadpy.errors import ArgumentError, KernelSyntaxError, QuadpyError
from quadpy.jit.bound_kernels import KERNELS, kernels_of
from quadpy.jit.misfits import Misfit
from quadpy.jit.options import KernelOptions
from quadpy.lang.members_found import MembersFound
from quadpy.lang.source import FunctionSource
from quadpy.runtime.device.current import State, current_config
from quadpy.runtime.device.locks import LiveObjects
from quadpy.runtime.launch.capturing import CAPTURES, replaying_here
from quadpy.runtime.launch.fusion import Fusion

if TYPE_CHECKING:
    import inspect
    import os
    from collections.abc import Iterable

    from quadpy.core.artifact import CodeObject
    from quadpy.graph.engines.stats import GraphKernelStats
    from quadpy.jit.dispatcher import Dispatcher
    from quadpy.jit.fast_call.arguments import FastCall
    from quadpy.jit.parameters import Argument
    from quadpy.jit.plan import Plan, Values, Views
    from quadpy.jit.variant_dispatcher import VariantDispatcher
    from quadpy.runtime.launch.launch import Binder, HostLaunch, Prepared

T = TypeVar("T")

_ABOUT: Final = re.compile(r"(?:missing a required[^']*')?(\w+)")
"""The name of the parameter that a message about an argument is about."""

_configured: Final[LiveObjects[Kernel]] = LiveObjects()
"""Kernels that have plans."""


def _forget_plans() -> None:
    for known in _configured:
        known.forget()


State.forget.append(_forget_plans)


@functools.cache
def _watched() -> Callable[..., Callable[[Values, Views, object], object]]:
    """Imported where calls are watched; cached, since an import at each call takes a microsecond."""
    return import_late("quadpy.jit.watched").watched  # type: ignore[no-any-return]  # as annotated


@public_init
@shows("compile", "debug", "fuse", "fusion", "grad", "graph", "graph_stats", "prepare", "save", "wave_size")
class Kernel(ByName):
    """A function that runs as machine code, compiled at its first call with arguments of each type.

    ``kernel(…, stream=s)`` puts the work on stream ``s`` instead of the calling thread's; on the CPU a call returns when the
    work is done.
    """

    __quadpy_kernel__ = True
    _passes_members = False
    receiver: object = None
    bound_class: ClassVar[type[BoundKernel]]
    _arrange: Callable[..., tuple[Argument, ...]]

    def __init__(self, fn: Callable[..., object], options: KernelOptions) -> None:
        functools.update_wrapper(self, fn)
        self._take(options if options.graph else options._replace(fuse=False))
        self.source = FunctionSource(fn)
        code = fn.__code__
        if "stream" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            raise KernelSyntaxError(
                f"{fn.__name__}: a parameter cannot be named stream, because this keyword says where a kernel runs",
                self.source.span, hint="give the parameter another name",
            )  # fmt: skip
        self._by_keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        self._dispatcher: Dispatcher | VariantDispatcher | None = None
        self._fast_call: FastCall | None = None

    def _take(self, options: KernelOptions) -> None:
        self.options = options
        self.graph, self.fuse, self.wave_size, self.debug, *_ = options

    def __call__(self, /, *args: Argument, stream: object = None, **kwargs: Argument) -> Any:
        """Runs the kernel and returns its result.

        Raises:
            ArgumentError: wrong number or types of arguments.
            StreamError: ``stream`` is not a stream, was destroyed, or belongs to another device.
            CompilationError: the kernel itself is at fault; the message shows its line.
        """
        if (fast_call := self._fast_call) is not None and not kwargs:
            try:
                done = fast_call(stream, *args)
            except QuadpyError as error:
                if self._goes_on_after(error):
                    return self(*args, stream=stream)
                raise shortened(error)
            if done is True:
                return None
            if done:
                return done[0]
        dispatcher = self._dispatcher
        if dispatcher is None or dispatcher.config is not State.config:
            dispatcher = self._configure()
        if kwargs or len(args) != len(dispatcher.parameters) or self._by_keyword:
            try:
                args = self._bind(dispatcher, args, kwargs)
            except ArgumentError as error:
                raise shortened(error)
            if self._fast_call is not None:
                return Kernel.__call__(self, *args, stream=stream)
        if CAPTURES.count and (known := replaying_here()) is not None and known.repeats(self, args, stream):
            return None
        try:
            specialisation, values, views = dispatcher.resolve(args)
            plan = specialisation.pick(views)
            run = _watched()(self, plan, args) if CAPTURES.watched else plan.run
            if not specialisation.is_plain:
                if specialisation.can_repeat(stream) and not self._by_keyword:  # it takes all arguments by position
                    self._fast_call = dispatcher.fast_call(specialisation, args, views)
                if specialisation.sections is not None:
                    specialisation.sections.check(plan, values, views)
                if specialisation.waits:
                    run = specialisation.waiting(run)
            try:
                return run(values, views, stream)
            except Misfit:
                return run(dispatcher.checked(args, views), views, stream)
        except MembersFound:
            self._pass_members()
            args, kwargs = self.as_given(args)
            return self(*args, stream=stream, **kwargs)
        except ArgumentError as error:
            raise shortened(self.named(error)) from error.__cause__
        except QuadpyError as error:
            if self._goes_on_after(error):
                args, kwargs = self.as_given(args)
                return self(*args, stream=stream, **kwargs)
            raise shortened(error)

    def _goes_on_after(self, error: QuadpyError) -> bool:
        """Whether the call that raised ``error`` is made again; see ``jit.limits``."""
        if not self.options.as_taichi or not import_late("quadpy.jit.limits").is_tolerated(error, self.source.span):
            return False
        self.guard()
        return True

    def guard(self) -> None:
        """From now on, accesses outside arrays do nothing."""
        if not self.options.guarded:
            self._take(self.options._replace(guarded=True))
            self._configure()

    def prepare(self, *args: Argument, **kwargs: Argument) -> Prepared | HostLaunch:
        """Return what a call with ``args`` and ``kwargs`` would launch, without launching it; a graph takes it as a node.

        Raises:
            ArgumentError: wrong number or types of arguments, or an array of the host for a GPU.
            CompilationError: the kernel itself is at fault; the message shows its line.
        """
        return self.planned(args, kwargs, lambda plan, values, views: plan.prepare(values, views))

    def fusion(self, *args: Argument, **kwargs: Argument) -> Fusion:
        """Whether a call with ``args`` and ``kwargs`` would be one launch, and why.

        Raises:
            ArgumentError: wrong number or types of arguments.
            CompilationError: the kernel itself is at fault; the message shows its line.
        """
        if not self.graph:
            return Fusion(False, "it is not a graph kernel: qp.kernel(graph=True)")
        return self.planned(args, kwargs, lambda plan, values, views: plan.fusion(values))

    def planned(
        self, args: tuple[Argument, ...], kwargs: dict[str, Argument], use: Callable[[Plan, Values, Views], T]
    ) -> T:
        """The result of ``use`` for a call with these arguments; ``__call__`` does the same in as few steps as possible."""
        dispatcher, args = self._in_order(args, kwargs)
        try:
            specialisation, values, views = dispatcher.resolve(args)
            plan = specialisation.pick(views)
            if specialisation.sections is not None:
                specialisation.sections.check(plan, values, views)
            try:
                return use(plan, values, views)
            except Misfit:
                return use(plan, dispatcher.checked(args, views), views)
        except MembersFound:
            self._pass_members()
            return self.planned(*self.as_given(args), use)
        except ArgumentError as error:
            raise self.named(error) from error.__cause__
        except QuadpyError as error:
            if not self._goes_on_after(error):
                raise
            return self.planned(*self.as_given(args), use)

    def _in_order(
        self, args: tuple[Argument, ...], kwargs: dict[str, Argument]
    ) -> tuple[Dispatcher | VariantDispatcher, tuple[Argument, ...]]:
        """The dispatcher of the current configuration, and an argument for each parameter."""
        dispatcher = self._dispatcher
        if dispatcher is None or dispatcher.config is not State.config:
            dispatcher = self._configure()
        if kwargs or len(args) != len(dispatcher.parameters) or self._by_keyword:
            args = self._bind(dispatcher, args, kwargs)
        return dispatcher, args

    def as_given(self, args: tuple[Argument, ...]) -> tuple[tuple[Argument, ...], dict[str, Argument]]:
        """All arguments, given in order, as positional ones and keyword-only ones."""
        count = len(args) - len(self._by_keyword)
        return args[:count], dict(zip(self._by_keyword, args[count:], strict=True))

    def binder(self, *args: Argument) -> Binder | None:
        """Packs the arguments of later calls that run the same code; None if each must be resolved."""
        dispatcher, args = self._in_order(*self.as_given(args))
        specialisation, _, views = dispatcher.resolve(args)
        return dispatcher.binder(specialisation, args, views)

    def compile(self, target: str = "cpu", /, **arguments: Argument) -> CodeObject:
        """Machine code for ``target``, such as ``"gfx942"``, on any machine: without a device, and without a call.

        ``arguments`` are what annotations leave open: ``x=qp.types.ndarray(dtype=qp.f32, ndim=2)`` for an array, a
        value for a ``template()`` parameter.  The code assumes arrays below 4 GiB that do not overlap, and on a
        GPU begin at multiples of 16 bytes; its ``image`` is the file that the target's driver loads.

        Raises:
            UnknownTargetError: there is no such target.
            ArgumentError: a type stays open, or contradicts its annotation.
            CompilationError: the kernel itself is at fault; the message shows its line.
        """
        offline = import_late("quadpy.jit.offline")
        code: CodeObject = offline.compile_for(self, import_late("quadpy.core.target").parse_target(target), arguments)
        return code

    def save(
        self, path: str | os.PathLike[str], targets: Iterable[str] | str | None = None, /, **arguments: Argument
    ) -> None:
        """Write machine code for ``targets`` to the file ``path``, from which ``qp.load_kernel`` makes a kernel without the compiler.

        ``targets`` and ``arguments`` are as for ``qp.graph.Graph.save`` and ``compile``.  A name that ends with ``.hipfb``
        gives a fat binary for AMD's GPUs instead, which ``hipModuleLoadData`` takes.

        Raises:
            GraphError: the kernel prints, or names a field, whose memory a file of a graph can have.
            ArgumentError, CompilationError, UnknownTargetError: as ``compile``.
        """
        compiled = functools.partial(import_late("quadpy.jit.offline").compiled_with_types, self, given=arguments)
        import_late("quadpy.graph.saved.save_kernel").save_kernel(self.source, path, targets, compiled)

    @property
    def grad(self) -> Kernel:
        """The backward kernel, called with the same arguments: it adds to the gradients of what the kernel reads, from
        those of what it writes, which it clears where the kernel has overwritten the old value.

        It runs after the kernel, and the arrays must still hold what that left in them; ``qp.ad.Tape`` sees to it.
        """
        return self.derivative(Derivative("grad"))

    def derivative(self, asked: Derivative) -> Kernel:
        """The kernel that computes this; always the same object."""
        return import_late("quadpy.jit.derivatives").derivative_of(self, asked)  # type: ignore[no-any-return]  # as annotated

    def graph_stats(self) -> GraphKernelStats:
        """Counters of a graph kernel's calls on GPUs since ``qp.init``; all 0 for any other kernel."""
        counts = import_late("quadpy.graph.engines.stats").Counts
        return counts.sum(  # type: ignore[no-any-return]  # as annotated
            each.plans.counts for each in list(self._dispatcher.specialisations.values() if self._dispatcher else ())
        )

    def _configure(self) -> Dispatcher | VariantDispatcher:
        """Starts again after ``qp.init`` changed what kernels depend on."""
        try:
            made: Dispatcher | VariantDispatcher = import_late("quadpy.jit.variant_dispatcher").dispatcher_for(
                self.source, current_config(), self.options, receiver=self.receiver, members=self._passes_members
            )
        except QuadpyError as error:
            raise shortened(error)
        self._arrange = import_late("quadpy.jit.annotations").arranging(self.source.fn, self.receiver is not None)
        self._dispatcher, self._fast_call = made, None
        _configured.add(self)
        return made

    def _pass_members(self) -> None:
        """From now on, calls also pass members of their arguments: the kernel uses the gradient of an array."""
        self._passes_members = True
        self._configure()

    def recipe(self) -> Recipe:
        """How another process makes it again."""
        return self.source.recipe(self.options._asdict())

    def _make_again(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        Kernel.__init__(self, function, KernelOptions(**options))

    def forget(self) -> None:
        """Lets go of all plans, and so of the memory of fields in them."""
        self._dispatcher = self._fast_call = None

    def _bind(
        self, dispatcher: Dispatcher | VariantDispatcher, args: tuple[Argument, ...], kwargs: dict[str, Argument]
    ) -> tuple[Argument, ...]:
        """The arguments by position, from keywords and defaults."""
        try:
            return self._arrange(*args, **kwargs)
        except TypeError:
            names = [parameter.name for parameter in dispatcher.parameters if parameter.name.isidentifier()]
            why, hint = import_late("quadpy.jit.annotations").not_arranged(self, names, self._by_keyword, args, kwargs)
            raise self.named(ArgumentError(why, hint=hint)) from None

    def named(self, error: ArgumentError) -> ArgumentError:
        """``error`` with the name of this kernel and, if it has none, the line of the parameter with whose name it begins."""
        about, name = _ABOUT.match(error.message), self.source.name
        if about and about[1] == name and error.span is not None:
            return error
        found = self.source.span_of_parameter(about[1]) if about else self.source.span
        return ArgumentError(f"{name}: {error.message}", error.span or found, hint=error.hint)

    @overload
    def __get__(self, instance: None, owner: type) -> Kernel: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> BoundKernel: ...
    def __get__(self, instance: object, owner: type | None = None) -> Kernel | BoundKernel:
        if instance is None:
            return self
        try:
            kernels = instance.__dict__[KERNELS]
            if kernels.owner is instance:
                found: BoundKernel = kernels[self]
                return found
        except (AttributeError, KeyError):
            pass
        return kernels_of(instance)[self]  # type: ignore[no-any-return]  # as above

    def __repr__(self) -> str:
        which = "kernel" if not self.options.derivative else f"{self.options.derivative.kind or 'turn'} kernel of"
        return f"<quadpy {which} {self.source.name} at {self.source.span}>"

    def _repr_html_(self) -> str:
        """For notebooks: signature, documentation and source."""
        return import_late("quadpy.jit.rich").html_of(self)  # type: ignore[no-any-return]  # a text


class BoundKernel(Kernel):
    """``obj.kernel``: a kernel whose first argument is ``obj``, with its own code.

    It is the same object as long as ``obj`` lives.
    """

    def __init__(self, kernel: Kernel, instance: object) -> None:
        functools.update_wrapper(self, kernel)
        self._take(kernel.options)
        self.source = kernel.source
        self.__func__, self.__self__ = kernel, instance
        self._by_keyword = kernel._by_keyword  # noqa: SLF001 - of the same class
        self.receiver, self._dispatcher, self._fast_call = instance, None, None

    @property
    def __signature__(self) -> inspect.Signature:
        import inspect

        whole = inspect.signature(self.source.fn)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    def __reduce__(self) -> tuple[Any, ...]:  # found again in its object, not in a module
        return Kernel.__get__, (self.__func__, self.__self__)

    def __repr__(self) -> str:
        return f"<quadpy kernel {self.source.name} of {self.__self__!r}>"


Kernel.bound_class = BoundKernel
