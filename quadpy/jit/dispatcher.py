"""From the arguments of a call to the specialisation for their types."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Final

from quadpy.core.dtypes import Scalar, i32, i64
from quadpy.core.importing import import_late
from quadpy.core.target import TargetSpec, parse_target, with_waves
from quadpy.jit.options import KernelOptions
from quadpy.jit.parameters import (
    Argument,
    ArrayParameter,
    Parameter,
    ScalarParameter,
    SingleParameter,
)
from quadpy.jit.plan import Values
from quadpy.lang.arguments import ArgType, Options
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.view import ArrayView
from quadpy.runtime.device.current import Config
from quadpy.runtime.device.devices import device_of
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.launch import Binder
from quadpy.settings import settings

if TYPE_CHECKING:
    from quadpy.jit.fast_call.arguments import FastCall
    from quadpy.jit.specialisation import Resolved, Specialisation

_NONE: Final = KernelOptions()


def options_of(config: Config, target: TargetSpec, index: Scalar = i32, given: KernelOptions = _NONE) -> Options:
    """The options for code with indices of type ``index``, from ``config``, the decorator and the target.

    A ``debug`` of None leaves it to ``config``, which may leave it to the environment.
    """
    debug = given.debug
    all_checks = next((given for given in (debug, config.debug) if given is not None), bool(settings().debug))
    indices_only = config.check_out_of_bound and debug is None and not all_checks
    return Options(
        config.default_ip, config.default_fp, index, fast_math=config.fast_math, graph=given.graph, wave_size=target.wave_size,
        debug=all_checks or indices_only, indices_only=indices_only, interpreted=config.interpreted,
        block_dim=None if target.family == "cpu" else config.gpu_block_dim, unrolling_limit=config.unrolling_limit,
        as_taichi=given.as_taichi, guarded=given.guarded, derivative=given.derivative,
    )  # fmt: skip


class Dispatcher:
    """A kernel under one configuration: its parameters, and a specialisation for each call signature.

    A call finishes under the configuration that it began with: code that a thread compiles after another ``qp.init``
    never becomes code of the new configuration.
    """

    __slots__ = ("_locks", "config", "options", "parameters", "source", "specialisations")

    def __init__(
        self, source: FunctionSource, config: Config, parameters: tuple[Parameter, ...], options: KernelOptions
    ) -> None:
        self.source, self.config, self.parameters, self.options = source, config, parameters, options
        self.specialisations: dict[Hashable, Specialisation] = {}
        self._locks: dict[Hashable, RLock] = {}

    def resolve(self, args: Sequence[Argument], whole: Sequence[Argument] = ()) -> Resolved:
        """Converts the arguments of a call; numbers that need no conversion are checked when they are packed.

        ``whole`` are the arguments from which ``args`` were taken, if some are compile-time values.
        """
        key: list[Hashable] = []
        values: Values = []
        views: list[ArrayView] = []
        for parameter, given in zip(self.parameters, args, strict=True):
            kind = type(parameter)
            if kind is ScalarParameter:
                values.append(given)
            elif isinstance(parameter, ArrayParameter):
                view = given if type(given) is NDArray else parameter.view(given)
                views.append(view)
                key.append(view.type_key)
                key.append(view.wide)
                if not view.writable:
                    key.append("r")
                values += view.abi
            elif kind is SingleParameter and given.__class__ is float:
                values.append(given)
            else:
                values += parameter.values(given)
        signature = tuple(key)
        return self.specialisations.get(signature) or self._specialise(signature, args, views, whole), values, views

    def checked(self, args: Sequence[Argument], views: Sequence[ArrayView]) -> Values:
        """The values of the argument block again, each checked: reports the argument that did not fit."""
        pairs = zip(self.parameters, self.with_views(args, views), strict=True)
        return [value for parameter, given in pairs for value in parameter.values(given)]

    def with_views(self, args: Sequence[Argument], views: Sequence[ArrayView]) -> list[Argument]:
        """``args``, with the views of arrays in place of the arrays."""
        remaining = iter(views)
        pairs = zip(self.parameters, args, strict=True)
        return [next(remaining) if isinstance(p, ArrayParameter) else given for p, given in pairs]

    def fast_call(self, found: Specialisation, args: Sequence[Argument], views: Sequence[ArrayView]) -> FastCall | None:
        """A function that launches calls like the one of ``args``, whose code is ``found``; None if there is none."""
        return found.fast_call(self.with_views(args, views))

    def binder(self, found: Specialisation, args: Sequence[Argument], views: Sequence[ArrayView]) -> Binder | None:
        """Packs the arguments of later calls like the one of ``args``; None if each must be resolved."""
        return found.binder(views, self.with_views(args, views), self.resolve)

    def _others(self, whole: Sequence[Argument]) -> Mapping[str, ArgType]:
        """The types of the arguments that no launch passes."""
        return {}

    def target(self) -> TargetSpec:
        """The target of the configuration's device, with the wave size that the kernel or ``qp.init`` asks for.

        Raises:
            UnknownTargetError: the device has no waves of that size.
        """
        config = self.config
        arch = "cpu" if config.arch == "cpu" else device_of(config).driver.info.arch
        return with_waves(parse_target(arch), self.options.wave_size or config.wave_size)

    def _specialise(
        self, key: Hashable, args: Sequence[Argument], views: Sequence[ArrayView], whole: Sequence[Argument]
    ) -> Specialisation:
        """The code for a signature, compiled by one thread while others that need it wait."""
        with self._locks.setdefault(key, new_lock()):
            found = self.specialisations.get(key)
            if found is None:
                # loads LLVM, so only when a kernel is first compiled
                made: type[Specialisation] = import_late("quadpy.jit.specialisation").Specialisation
                pairs = zip(self.parameters, self.with_views(args, views), strict=True)
                types = {
                    **self._others(whole),
                    **{parameter.name: parameter.arg_type(given) for parameter, given in pairs},
                }
                index = i64 if any(view.wide for view in views) else i32
                target = self.target()
                options = options_of(self.config, target, index, self.options)
                found = made(self.source, self.parameters, types, options, self.config, target, self.options.fuse)
                self.specialisations[key] = found
            return found
