"""Functions of the math library as IR, traced once per process."""

from __future__ import annotations

import functools
from collections.abc import Callable

from quadpy.core.dtypes import Scalar
from quadpy.ir.nodes import Call, CallMany, Function
from quadpy.ir.walk import walk
from quadpy.mathlib.library import LibraryFunction

_tracer: list[Callable[[LibraryFunction, str], Function]] = []
_made: dict[str, Function] = {}


def set_tracer(trace: Callable[[LibraryFunction, str], Function]) -> None:
    """``lang.trace`` passes in the function that traces, because it imports this module."""
    _tracer[:] = [trace]


@functools.cache
def library_function(name: str, types: tuple[Scalar, ...], *, fast_math: bool = False) -> Function | None:
    """The library's ``name`` for operands of ``types``, or None where it has none."""
    from quadpy.mathlib.registry import fast_lookup, lookup

    found = fast_lookup(name, types) if fast_math else lookup(name, types)
    return None if found is None else traced(found)


def traced(described: LibraryFunction) -> Function:
    """The IR of a library function."""
    symbol = f"{described.fn.__name__}.{'.'.join(type.name for _, type in described.params)}"
    if symbol not in _made:
        _made[symbol] = _tracer[0](described, symbol)
    return _made[symbol]


def required(function: Function) -> list[Function]:
    """``function`` and all that it calls, callees first."""
    order: dict[str, Function] = {}

    def visit(current: Function) -> None:
        for node in walk(current.body):
            if isinstance(node, (Call, CallMany)) and node.function not in order:
                visit(_made[node.function])
        order[current.name] = current

    visit(function)
    return list(order.values())


def with_callees(name: str, types: tuple[Scalar, ...]) -> list[Function]:
    """The library's ``name`` for operands of ``types``, after the functions that it calls: for ``ir.grad``."""
    function = library_function(name, types)
    assert function is not None, f"the math library has no {name} of {types}"
    return required(function)
