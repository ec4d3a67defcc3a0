"""Kernels with compile-time arguments: a variant for each choice of them, to which calls pass the rest.

Calls pass a flat list: the arguments that are run-time values, then the members of others that the kernel uses.
A generated function makes it from the arguments of a call, and checks that the call belongs to its variant.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from quadpy.errors import ArgumentError
from quadpy.jit.comparisons import (
    can_change,
    contents,
    equal_arrays,
    equals_itself_alone,
    firsts,
    is_stable,
    kept,
    same,
)
from quadpy.jit.compile_time_parameters import (
    ContainerParameter,
    Declared,
    TemplateParameter,
    TensorParameter,
    is_array,
    passed_parameter,
    primitives_of,
)
from quadpy.jit.dispatcher import Dispatcher
from quadpy.jit.fast_call.arguments import define
from quadpy.jit.fast_call.owners import read_once
from quadpy.jit.options import KernelOptions
from quadpy.jit.parameters import Argument, ArrayParameter, Parameter
from quadpy.jit.results import adjoint_of_result
from quadpy.lang.arguments import ArgType, MemberPath
from quadpy.lang.decorators import Method
from quadpy.lang.dependencies import MISSING, Dependencies
from quadpy.lang.source import FunctionSource
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.arrays.ordered import OrderedNDArray
from quadpy.runtime.arrays.view import ArrayView
from quadpy.runtime.device.current import Config

if TYPE_CHECKING:
    from quadpy.jit.specialisation import Specialisation

Flat: TypeAlias = Callable[..., "tuple[Argument, ...] | None"]
"""The values that a call passes, from all its arguments; None for a call of another variant."""

Receiver: TypeAlias = tuple[str, object]
"""The name of the first parameter, and the object that it is in every call."""

_UNWATCHED: Final = (Method, MethodType, ModuleType, type(MISSING))
"""Types of attributes that calls do not compare, since each read makes a new object."""

_REFUSALS: Final = (AttributeError, LookupError, TypeError)


class Variant:
    """A kernel for one choice of its compile-time arguments, those of ``args``; ``paths`` are the members that it uses.

    ``flat`` is made again after compilation: then it is known which attributes the code depends on.
    """

    def __init__(
        self, source: FunctionSource, config: Config, declared: Sequence[Declared], args: Sequence[Argument],
        paths: Sequence[MemberPath], options: KernelOptions, receiver: Receiver | None,
    ) -> None:  # fmt: skip
        self.paths = tuple(paths)
        self._names: dict[str, object] = {
            "same": same,
            "key": contents,
            "equal": equal_arrays,
            "firsts": firsts,
            "map": map,
            "id": id,
        }
        self._guards: dict[str, str] = {}  # by the expression that is compared
        self._identities: set[str] = set()  # expressions that are one object in all calls
        self._passed: list[str] = []  # expressions
        self._arrays: dict[str, tuple[str, Argument]] = {}  # those that are differentiated: name, expression, array
        self._parameters: list[Parameter] = []
        self._fixed: dict[MemberPath, TemplateParameter | ContainerParameter] = {}
        self._receiver, self._derivative = receiver, options.derivative
        self._texts = {each.name: f"a{k}" for k, each in enumerate(declared)}
        self._roots: dict[str, Any] = dict(zip(self._texts, args, strict=True))
        if receiver is not None:
            self._names["receiver"] = self._roots[receiver[0]] = receiver[1]
            self._texts[receiver[0]] = "receiver"
            self._fixed[MemberPath(receiver[0])] = TemplateParameter(receiver[0])
        for parameter in declared:
            self._add(MemberPath(parameter.name), parameter)
        for path in self.paths:
            self._add_member(path)
        self._merge_arrays()
        if self._derivative.kind == "grad" and _returns_value(source):
            adjoint_of_result()  # there must be one
            self._parameters.append(ArrayParameter("return.grad", None, (), None))
            self._names["adjoint_of_result"] = adjoint_of_result
            self._passed.append("adjoint_of_result()")
        self._roots = {path.root: self._roots[path.root] for path in self._fixed if self._is_kept(path)}
        self.dispatcher = _Flat(source, config, tuple(self._parameters), options)
        self.dispatcher.variant = self
        self.resolve = self.dispatcher.resolve
        self.flat: Flat = self._generated()

    def fixed_types(self, args: Sequence[Argument]) -> dict[str, ArgType]:
        """The types of arguments that are not passed, in a call with ``args``."""
        roots = dict(zip(self._texts, args, strict=False))
        if self._receiver is not None:
            roots[self._receiver[0]] = self._receiver[1]
        return {str(path): parameter.arg_type(path.of(roots[path.root])) for path, parameter in self._fixed.items()}

    def _is_kept(self, path: MemberPath) -> bool:
        """Whether ``path`` is an argument whose attributes are compared."""
        return not path.steps and isinstance(self._fixed[path], TemplateParameter)

    def _text(self, path: MemberPath) -> str:
        return path.after(self._texts[path.root])

    def _add(self, path: MemberPath, parameter: Declared) -> None:
        """The argument, or member of one, at ``path``: passed, or part of the variant."""
        given, text = path.of(self._roots[path.root]), self._text(path)
        if isinstance(parameter, TensorParameter):
            self._guard(f"{text}.__class__", type(given))
            parameter = parameter.chosen(given)
        if isinstance(parameter, TemplateParameter) and is_array(given):
            parameter.check(given)
            self._guard(f"{text}.__class__", type(given))
            parameter = ArrayParameter(parameter.name, None, (), None)
        if isinstance(parameter, ContainerParameter):
            self._guard(f"{text}.__class__", type(given))
            parameter = parameter.of(given)
        elif isinstance(parameter, TemplateParameter):
            self._guard(text, given)
        else:
            self._parameters.append(parameter)
            self._passed.append(text)
            if isinstance(parameter, ArrayParameter):
                if self._derivative.paths and isinstance(given, (NDArray, OrderedNDArray)):
                    self._arrays[parameter.name] = text, given
                for derivative in self._derivative.paths:
                    self._add_derivative(path, given, derivative)
            elif self._derivative.kind:
                self._add_number(path, given)
            return
        self._fixed[path] = parameter

    def _merge_arrays(self) -> None:
        """An array that is passed twice is one parameter to the code, as its derivative is one, too."""
        names, texts = list(self._arrays), ", ".join(text for text, _ in self._arrays.values())
        first = firsts([id(array) for _, array in self._arrays.values()])
        merged = {name: names[k] for name, k in zip(names, first, strict=True) if names[k] != name}
        self._parameters = [
            replace(each, same=merged.get(each.name, "")) if isinstance(each, ArrayParameter) else each
            for each in self._parameters
        ]
        if len(names) > 1:
            self._guards[f"[{texts}]"] = f"firsts([*map(id, ({texts}))]) != {first}"

    def _add_derivative(self, path: MemberPath, array: Argument, derivative: str) -> None:
        """The gradient or dual of an array that is passed; calls of the variant have one, too, or have none."""
        text = self._text(path)
        self._guard(f"{text}.__class__", type(array))
        name = f"{path}.{derivative}"
        if path.steps[-1:] in (("grad",), ("dual",)):
            return
        found, there = text, array
        for kind in derivative.split("."):
            found, there = f"getattr({found}, {kind!r}, None)", getattr(there, kind, None)
        has_none = there is None
        self._guards[found] = f"{found} is not None" if has_none else f"{found} is None"
        if has_none:
            return
        if all(each.name != name for each in self._parameters):
            self._parameters.append(ArrayParameter(name, None, (), None))
            self._passed.append(f"{text}.{derivative}")

    def _add_number(self, path: MemberPath, given: Argument) -> None:
        """The derivatives of a value that has some."""
        self._guard(f"{self._text(path)}.__class__", type(given))
        for derivative in self._derivative.paths if hasattr(given, "__quadpy_number__") else ():
            self._add_derivative(path, given, derivative)
            found, directions = attrgetter(derivative)(given), self._derivative.directions
            axes = () if directions is None or not derivative.endswith("dual") else (directions,)
            if self._derivative.kind != "dual" if found is None else found.shape != axes:
                raise ArgumentError(
                    f"{path} is {given!r}, which has no {derivative} in {directions or 1} directions",
                    hint=f"make it with needs_dual={directions or True}, or pass what it holds, which is a constant",
                )

    def _add_member(self, path: MemberPath) -> None:
        """A member that the kernel uses."""
        root = self._roots[path.root]
        owner, name = MemberPath(path.root, path.steps[:-1]).of(root), str(path)
        if any(each.name == name for each in self._parameters):
            return
        if path.steps[-1] == "grad" and (is_array(owner) or MemberPath(path.root) not in self._fixed):
            if getattr(owner, "grad", None) is None:
                raise ArgumentError(
                    f"the kernel uses {path}, and the array has no gradient", hint="make it with needs_grad=True"
                )
            self._add(path, ArrayParameter(str(path), None, (), None))
            return
        found: Declared | None = self._fixed[MemberPath(path.root)]
        if isinstance(found, TemplateParameter):
            self._guard(f"{self._text(path)}.__class__", type(path.of(root)))
            found = passed_parameter(str(path), owner, path.of(root), primitives_of(root))
        for length, step in enumerate(path.steps, 1):
            if not isinstance(found, ContainerParameter):
                break
            found, inner = found.members[str(step)], MemberPath(path.root, path.steps[:length])
            if isinstance(found, ContainerParameter):
                found = found.of(inner.of(root))
        if found is not None:
            self._add(path, found)

    def _guard(self, text: str, value: object) -> None:
        """Calls of the variant have ``value`` where ``text`` reads it."""
        if text in self._guards or text.removesuffix(".__class__") in self._identities:
            return
        name = f"g{len(self._names)}"
        self._names[name] = value
        if can_change(value):
            self._names[name], self._names[f"{name}_kept"] = contents(value), kept(value)  # ids stay unique
            self._guards[text] = f"key({text}) != {name}"
        elif equals_itself_alone(value):
            self._guards[text] = f"{text} is not {name}"
            self._guards.pop(f"{text}.__class__", None)
            self._identities.add(text)
        else:
            self._guards[text] = f"(v := {text}) is not {name} and not same(v, {name})"

    def _guard_array(self, text: str, array: Any, contents: Any) -> None:
        """Calls of the variant have ``array`` there, whatever is in it now, or another one with the same ``contents``."""
        if text not in self._guards:
            name = f"g{len(self._names)}"
            self._names[name], self._names[f"{name}_contents"] = array, contents
            self._guards[text] = f"(v := {text}) is not {name} and not equal(v, {name}_contents)"

    def _guard_missing(self, path: MemberPath) -> None:
        """Calls of the variant have no attribute there."""
        owner = self._text(MemberPath(path.root, path.steps[:-1]))
        self._guards.setdefault(self._text(path), f"hasattr({owner}, {path.steps[-1]!r})")

    def _guard_class(self, cls: type, name: str) -> None:
        """Calls of the variant have the same attribute in the class, or in its bases."""
        text = f"{cls.__module__}.{cls.__qualname__}.{name}"
        if text in self._guards:
            return
        tests = []
        for base in cls.__mro__:
            here = f"c{len(self._names)}"
            self._names[here] = found = vars(base)  # a live view of the class
            if name in found:
                self._names[f"{here}_kept"] = found[name]
                tests.append(f"{here}[{name!r}] is not {here}_kept")
                break
            tests.append(f"{name!r} in {here}")
        self._guards[text] = " or ".join(tests)

    def _guard_method(self, path: MemberPath) -> None:
        """Calls of the variant have the same method there: in the class, and none in the object itself."""
        owner, name = MemberPath(path.root, path.steps[:-1]), str(path.steps[-1])
        value = owner.of(self._roots[path.root])
        if name not in getattr(value, "__dict__", (name,)):
            self._guards.setdefault(self._text(path), f"{name!r} in {self._text(owner)}.__dict__")
        self._guard_class(type(value), name)

    def watch(self, reads: Dependencies) -> None:
        """Code was compiled; calls with other values of its reads need other code."""
        before = len(self._guards)
        for cls, name in reads.of_classes():
            self._guard_class(cls, name)
        for path, value in reads.attributes():
            if value is MISSING and path.root in self._roots:
                self._guard_missing(path)
            if isinstance(value, (Method, MethodType)) and path.root in self._roots:
                self._guard_method(path)
            watched = path.root in self._roots and not isinstance(value, _UNWATCHED)
            if not watched or not is_stable(path, self._roots[path.root], value):
                continue
            if isinstance(value, np.ndarray):
                self._guard_array(self._text(path), path.of(self._roots[path.root]), value)
            else:
                self._guard(self._text(path), value)
        if len(self._guards) > before:
            self.flat = self._generated()

    def difference(self, args: Sequence[Argument]) -> str | None:
        """The first compared value that differs in a call with ``args``, as the program names it."""
        roots = {text: value for text, value in zip(self._texts.values(), args, strict=False) if text != "receiver"}
        for text, guard in self._guards.items():
            try:
                differs = eval(guard, {**self._names, **roots})  # noqa: S307  (generated here)
            except _REFUSALS:
                continue
            if differs:
                names = {root: name for name, root in self._texts.items()}
                root, dot, rest = text.partition(".")
                return f"{names.get(root, root)}{dot}{rest}".removesuffix(".__class__")
        return None

    def _generated(self) -> Flat:
        names = [text for text in self._texts.values() if text != "receiver"]
        owners, texts = read_once([*self._guards.values(), *self._passed])
        guard = " or ".join(texts[: len(self._guards)])
        passed = "".join(f"{text}, " for text in texts[len(self._guards) :])
        lines = [f"def call({', '.join(names)}):", "    try:", *(f"        {line}" for line in owners)]
        lines += [f"        if {guard}: return None"] if guard else []
        lines += [f"        return ({passed})", "    except refusals: return None"]
        return define(lines, {**self._names, "refusals": _REFUSALS})  # type: ignore[return-value]  # by its text


class _Flat(Dispatcher):
    """The dispatcher of a variant."""

    __slots__ = ("variant",)

    variant: Variant

    def _others(self, whole: Sequence[Argument]) -> Mapping[str, ArgType]:
        return self.variant.fixed_types(whole)

    def _specialise(
        self, key: Hashable, args: Sequence[Argument], views: Sequence[ArrayView], whole: Sequence[Argument]
    ) -> Specialisation:
        made = super()._specialise(key, args, views, whole)
        made.plans.release()
        self.variant.watch(made.plans.reads)
        return made


def _returns_value(source: FunctionSource) -> bool:
    returned = source.tree.returns
    return returned is not None and not (isinstance(returned, ast.Constant) and returned.value is None)
