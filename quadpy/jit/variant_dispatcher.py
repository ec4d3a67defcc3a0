"""From the arguments of a call to the variant for its compile-time arguments, and to the specialisation there."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Final

from quadpy.errors import ArgumentError, KernelTypeError
from quadpy.jit.annotations import parameters_of
from quadpy.jit.compile_time_parameters import (
    ContainerParameter,
    Declared,
    TemplateParameter,
    TensorParameter,
    is_array,
    is_field,
)
from quadpy.jit.dispatcher import Dispatcher
from quadpy.jit.options import KernelOptions
from quadpy.jit.parameters import Argument
from quadpy.jit.plan import Values
from quadpy.jit.variants import Receiver, Variant
from quadpy.lang.arguments import MemberPath
from quadpy.lang.members_found import MembersFound
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.view import ArrayView
from quadpy.runtime.device.current import Config
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.launch import Binder, Bound

if TYPE_CHECKING:
    from quadpy.jit.fast_call.arguments import FastCall
    from quadpy.jit.specialisation import Resolved, Specialisation

_MANY: Final = 16
"""The number of variants for the same arguments that triggers a warning."""


def dispatcher_for(
    source: FunctionSource, config: Config, options: KernelOptions, *, receiver: object = None, members: bool = False
) -> Dispatcher | VariantDispatcher:
    """The dispatcher of a kernel, whose first argument is always ``receiver`` if that is not None.

    ``members`` says that calls pass members of their arguments, such as the gradient of an array.

    Raises:
        KernelTypeError: as ``parameters_of``; a method has no parameter for its object.
    """
    declared = parameters_of(source, config, checkpoints=options.checkpoints)
    if receiver is not None and not declared:
        raise KernelTypeError(
            f"{source.name} is called as a method, and has no parameter for its object", source.span,
            hint="write self first; or put @staticmethod above @qp.kernel",
        )  # fmt: skip
    bound = None if receiver is None else (declared[0].name, receiver)
    plain = tuple(p for p in declared if not isinstance(p, (TemplateParameter, ContainerParameter, TensorParameter)))
    if bound is None and len(plain) == len(declared) and not (members or options.derivative):
        return Dispatcher(source, config, plain, options)
    passed = declared if bound is None else declared[1:]
    return VariantDispatcher(source, config, passed, bound, options)


class VariantDispatcher:
    """Like ``Dispatcher``, of a kernel with compile-time arguments.

    The variant of the last call is tried first.  Others are found by the arguments themselves, and among variants for the
    same arguments by what their code depends on.
    """

    __slots__ = ("_current", "_lock", "_receiver", "_variants", "config", "options", "parameters", "source")

    def __init__(
        self, source: FunctionSource, config: Config, declared: tuple[Declared, ...], receiver: Receiver | None,
        options: KernelOptions,
    ) -> None:  # fmt: skip
        self.source, self.config, self.options = source, config, options
        self.parameters, self._receiver = declared, receiver
        self._variants: dict[Hashable, list[Variant]] = {}
        self._current: Variant | None = None
        self._lock = new_lock()

    @property
    def specialisations(self) -> dict[Hashable, Specialisation]:
        """All code, in any order."""
        variants = [each for found in list(self._variants.values()) for each in list(found)]
        return {
            (n, key): made for n, v in enumerate(variants) for key, made in list(v.dispatcher.specialisations.items())
        }

    def resolve(self, args: Sequence[Argument]) -> Resolved:
        """See ``Dispatcher.resolve``."""
        if (variant := self._current) is None or (flat := variant.flat(*args)) is None:
            variant, flat = self._find(args)
        try:
            return variant.resolve(flat, args)
        except MembersFound as members:
            self._extend(variant, args, members.paths)
            return self.resolve(args)

    def checked(self, args: Sequence[Argument], views: Sequence[ArrayView]) -> Values:
        """See ``Dispatcher.checked``."""
        variant, flat = self._find(args)
        return variant.dispatcher.checked(flat, views)

    def with_views(self, args: Sequence[Argument], views: Sequence[ArrayView]) -> list[Argument]:
        """The values that the call passes, with views in place of arrays."""
        variant, flat = self._find(args)
        return variant.dispatcher.with_views(flat, views)

    def fast_call(self, found: Specialisation, args: Sequence[Argument], views: Sequence[ArrayView]) -> FastCall | None:
        """See ``Dispatcher.fast_call``."""
        variant, flat = self._find(args)
        launch = variant.dispatcher.fast_call(found, flat, views)
        if launch is None:
            return None

        def call(stream: object, *args: Argument) -> bool | tuple[object] | None:
            try:
                flat = variant.flat(*args)
            except TypeError:  # too few arguments, or too many
                return False
            return False if flat is None else launch(stream, *flat)

        return call

    def binder(self, found: Specialisation, args: Sequence[Argument], views: Sequence[ArrayView]) -> Binder | None:
        """See ``Dispatcher.binder``."""
        variant, flat = self._find(args)
        known = variant.dispatcher.binder(found, flat, views)
        if known is None:
            return None

        def bind(timeline: object, *args: Argument) -> Bound | None:
            flat = variant.flat(*args)
            return None if flat is None else known.bind(timeline, *flat)

        return known._replace(bind=bind)

    def _find(self, args: Sequence[Argument]) -> tuple[Variant, tuple[Argument, ...]]:
        """The variant for these arguments, which becomes the current one, and what the call passes."""
        known = self._variants.setdefault(self._key(args), [])
        for variant in known:
            if (flat := variant.flat(*args)) is not None:
                self._current = variant
                return variant, flat
        with self._lock:
            variant = self._variant(args, known[-1].paths if known else ())
            flat = variant.flat(*args)
            assert flat is not None
            known.append(variant)
            if len(known) == _MANY:
                self._warn(known, args)
            self._current = variant
            return variant, flat

    def _warn(self, known: Sequence[Variant], args: Sequence[Argument]) -> None:
        """Warns of attributes that change with each call, since each change costs a compilation."""
        changed = known[-2].difference(args)
        warnings.warn(
            f"{self.source.name} was compiled for {_MANY} values of {changed or 'attributes'}, which are compile-time values: "
            "pass values that change as arguments, or use @qp.data_oriented(template_primitives=False)",
            RuntimeWarning, stacklevel=5,
        )  # fmt: skip

    def _extend(self, variant: Variant, args: Sequence[Argument], paths: Collection[MemberPath]) -> None:
        """Puts a variant that passes the members at ``paths``, too, in the place of ``variant``."""
        with self._lock:
            known = self._variants[self._key(args)]
            if variant in known:
                known[known.index(variant)] = self._made(args, (*variant.paths, *paths))
            self._current = None

    def _variant(self, args: Sequence[Argument], paths: Sequence[MemberPath]) -> Variant:
        try:
            return self._made(args, paths)
        except (AttributeError, LookupError, ArgumentError):  # these arguments lack members that others had
            return self._made(args, ())

    def _made(self, args: Sequence[Argument], paths: Sequence[MemberPath]) -> Variant:
        return Variant(self.source, self.config, self.parameters, args, paths, self.options, self._receiver)

    def _key(self, args: Sequence[Argument]) -> Hashable:
        return tuple(_key_of(parameter, given) for parameter, given in zip(self.parameters, args, strict=True))


def _key_of(parameter: Declared, given: Argument) -> Hashable:
    """The key that selects the variant.

    Raises:
        ArgumentError: the parameter does not take ``given``.
    """
    match parameter:
        case TemplateParameter():
            return ("array", type(given)) if is_array(given) else parameter.key(given)
        case ContainerParameter():
            return parameter.of(given).cls
        case TensorParameter():
            return parameter.constant.key(given) if given is None or is_field(given) else ("array", type(given))
        case _:
            return None
