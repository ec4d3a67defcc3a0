"""A kernel under one configuration: its parameters, and the plans of each signature.  Owns: Dispatcher.

Imports: leaves, ``lang``, ``runtime``; the compiler when a kernel is first compiled, since it loads LLVM.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Hashable
from threading import RLock
from typing import Any

from quadpy.dtypes import i32, i64
from quadpy.jit.parameters import (
    ArrayParameter,
    CheckedParameter,
    ScalarParameter,
    SingleParameter,
    TemplateParameter,
    VectorParameter,
    parameters_of,
)  # fmt: skip
from quadpy.lang.arguments import ArgType, Options
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import Config
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.launch.fusion import Fuse

__all__ = ["Dispatcher", "compiler"]


class Dispatcher:
    """What ``qp.init`` and a kernel's annotations decide together; after the next ``qp.init`` the kernel has another.

    A call goes through with the one that it began with: what a thread compiles meanwhile never becomes code of the
    next configuration.
    """

    __slots__ = ("_locks", "config", "fuse", "graph", "parameters", "plans", "source")

    def __init__(self, source: FunctionSource, config: Config, *, graph: bool, fuse: Fuse) -> None:
        self.source, self.config, self.graph, self.fuse = source, config, graph, fuse
        self.parameters = parameters_of(source, config)
        self.plans: dict[Hashable, Any] = {}
        self._locks: dict[Hashable, RLock] = {}

    def resolve(self, args: tuple[Any, ...]) -> tuple[Any, list[Any], list[Any]]:
        """The plans for arguments of these types, the values of the argument block, and the arrays as a launch sees them."""
        key: list[Any] = []
        values: list[Any] = []
        views: list[Any] = []
        for parameter, given in zip(self.parameters, args, strict=True):
            if type(parameter) is ScalarParameter:
                values.append(given)
            elif type(parameter) is ArrayParameter:
                view = given if type(given) is NDArray else parameter.view(given)
                views.append(view)
                key.append(view.type_key)
                key.append(view.wide)
                if not view.writable:
                    key.append("r")
                values += view.abi
            elif type(parameter) is SingleParameter:
                values.append(given if given.__class__ is float else parameter.value(given))
            elif type(parameter) is TemplateParameter:
                key.append(parameter.key(given))
            else:
                assert isinstance(parameter, (CheckedParameter, VectorParameter))
                values += parameter.values(given)
        return self.plans.get(tuple(key)) or self._variants(tuple(key), args, views), values, views

    def checked(self, args: tuple[Any, ...], views: list[Any]) -> list[Any]:
        """The values of the argument block once more, each checked: finds the argument that did not fit."""
        values: list[Any] = []
        remaining = iter(views)
        for parameter, given in zip(self.parameters, args, strict=True):
            match parameter:
                case ScalarParameter():
                    values.append(parameter.value(given))
                case VectorParameter():
                    values += parameter.values(given)
                case ArrayParameter():
                    values += next(remaining).abi
        return values

    def with_views(self, args: tuple[Any, ...], views: list[Any]) -> list[Any]:
        """``args``, with the views of arrays in place of the arrays."""
        remaining = iter(views)
        pairs = zip(self.parameters, args, strict=True)
        return [next(remaining) if isinstance(p, ArrayParameter) else given for p, given in pairs]

    def _variants(self, key: tuple[Any, ...], args: tuple[Any, ...], views: list[Any]) -> Any:
        """The plans of a signature, compiled by one thread while others that need them wait."""
        with self._locks.setdefault(key, new_lock()):
            found = self.plans.get(key)
            if found is None:
                types = self._types(args, views)
                index = i64 if any(view.wide for view in views) else i32
                found = compiler().Specialisation(self.source, types, self._options(index), self.config, self.fuse)
                self.plans[key] = found
            return found

    def _types(self, args: tuple[Any, ...], views: list[Any]) -> dict[str, ArgType]:
        """The type of each argument, checked against the annotations."""
        remaining = iter(views)
        types: dict[str, ArgType] = {}
        for parameter, given in zip(self.parameters, args, strict=True):
            match parameter:
                case ArrayParameter(name=name):
                    view = next(remaining)
                    types[name] = parameter.arg_type(view.type_key, view.writable)
                case TemplateParameter(name=name):
                    types[name] = parameter.arg_type(given)
                case _:
                    types[parameter.name] = parameter.arg_type()
        return types

    def _options(self, index: Any) -> Options:
        config = self.config
        return Options(config.default_ip, config.default_fp, index, fast_math=config.fast_math, graph=self.graph)


@functools.cache
def compiler() -> Any:
    """The module that loads LLVM."""
    return importlib.import_module("quadpy.jit.specialisation")
