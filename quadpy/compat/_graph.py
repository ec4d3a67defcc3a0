"""``ti.graph``: graphs whose arguments have names, over quadpy's own; all other names are those of ``quadpy.graph``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import quadpy.graph
from quadpy.errors import ArgumentError
from quadpy.graph import Graph, GraphExec
from quadpy.graph.model.makers import kernel_node
from quadpy.runtime.device.locks import new_lock


class ArgKind(Enum):
    """The kinds of arguments of a graph."""

    SCALAR = auto()
    MATRIX = auto()
    NDARRAY = auto()
    TEXTURE = auto()
    RWTEXTURE = auto()


@dataclass(frozen=True, slots=True)
class Arg:
    """A named argument of a graph.  For an array, the number of axes is checked, if it is given."""

    tag: ArgKind
    name: str
    dtype: object = None
    ndim: int | None = None
    field_dim: int | None = None
    element_shape: object = None
    fmt: object = None

    def check(self, value: Any) -> None:
        """Refuse an array of another rank.

        Raises:
            ArgumentError: it has another number of axes.
        """
        wanted = self.field_dim if self.ndim is None else self.ndim
        found = getattr(value, "ndim", None)
        if self.tag is ArgKind.NDARRAY and hasattr(value, "element_shape") and wanted not in (None, found):
            raise ArgumentError(f"the graph's argument {self.name!r} has {wanted} axes, and this array has {found}")


@dataclass(frozen=True, slots=True)
class _Call:
    """A kernel and the arguments that it will have."""

    kernel: Any
    args: tuple[Arg, ...]


class Sequential:
    """Calls in their order, which a graph may contain several times."""

    def __init__(self) -> None:
        self._parts: list[_Call | Sequential] = []

    def dispatch(self, kernel: Any, *args: Arg) -> None:
        """Add a call of ``kernel`` with named arguments.

        Raises:
            ArgumentError: not a kernel, not as many arguments as it has, or one that is not a ``ti.graph.Arg``.
        """
        name = getattr(kernel, "__name__", repr(kernel))
        if not getattr(kernel, "__quadpy_kernel__", False):
            raise ArgumentError(f"{name} is not a kernel: a graph dispatches kernels")
        for arg in args:
            if not isinstance(arg, Arg):
                raise ArgumentError(
                    f"{name}: {arg!r} is not a ti.graph.Arg", hint="numbers are arguments, too: ArgKind.SCALAR"
                )
        try:
            inspect.signature(kernel).bind(*args)
        except TypeError as error:
            raise ArgumentError(f"{name}: {error}") from None
        self._parts.append(_Call(kernel, args))

    def append(self, part: Sequential) -> None:
        """Add the calls of ``part``."""
        self._parts.append(part)

    def calls(self) -> Iterator[_Call]:
        """All calls, in their order."""
        for part in self._parts:
            if isinstance(part, _Call):
                yield part
            else:
                yield from part.calls()


class GraphBuilder(Sequential):
    """Calls of which ``compile`` makes a graph."""

    def create_sequential(self) -> Sequential:
        """Calls that ``append`` can add any number of times."""
        return Sequential()

    def compile(self) -> CompiledGraph:
        """A graph of the calls so far."""
        return CompiledGraph(self.calls())


class CompiledGraph:
    """Calls that run as one graph.  It is built by the first run; other arguments later change it in place."""

    def __init__(self, calls: Iterator[_Call]) -> None:
        self._calls = {f"{number} {call.kernel.__name__}": call for number, call in enumerate(calls)}
        self._args = {arg.name: arg for call in self._calls.values() for arg in call.args}
        self._exec: GraphExec | None = None
        self._bound: dict[str, Any] = {}
        self._lock = new_lock()

    def run(self, args: Mapping[str, Any]) -> None:
        """Launch the graph on the current stream.

        Raises:
            ArgumentError: an argument is missing, is not one of the graph's, or has another number of axes.
        """
        self._check(args)
        with self._lock:
            if self._exec is None:
                self._exec = self._built(args)
            else:
                self._change({name for name in args if not _same(args[name], self._bound[name])}, args)
            self._bound = dict(args)
            self._exec.launch()

    def _check(self, args: Mapping[str, Any]) -> None:
        for name, arg in self._args.items():
            if name not in args:
                raise ArgumentError(f"the graph's argument {name!r} is missing")
            arg.check(args[name])
        if unknown := sorted(args.keys() - self._args.keys()):
            raise ArgumentError(f"the graph has no argument {unknown[0]!r}; it has {', '.join(self._args)}")

    def _built(self, args: Mapping[str, Any]) -> GraphExec:
        graph = Graph()
        for name, call in self._calls.items():
            graph.add_kernel(call.kernel, *(args[arg.name] for arg in call.args), name=name)
        return graph.instantiate()

    def _change(self, changed: set[str], args: Mapping[str, Any]) -> None:
        executable = self._exec
        assert executable is not None
        if changed:
            nodes = {
                name: kernel_node(executable.device, call.kernel, *(args[arg.name] for arg in call.args))
                for name, call in self._calls.items()
                if not changed.isdisjoint(arg.name for arg in call.args)
            }
            executable.replace(nodes)


def _same(value: Any, before: Any) -> bool:
    """Whether a bound argument needs no change: the same array, or an equal number."""
    if isinstance(value, (int, float)):
        return type(value) is type(before) and repr(value) == repr(before)  # tells 0.0 from -0.0, and NaN is NaN
    return value is before and hasattr(value, "element_shape")


def __getattr__(name: str) -> Any:
    return getattr(quadpy.graph, name)
