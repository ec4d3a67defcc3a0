"""How much work an iteration is, roughly.

The estimate decides from how many iterations on a loop is worth waking threads for, how many private copies of an array
are worth making, and which loops are short.
"""

from __future__ import annotations

from typing import Final

from quadpy.ir import nodes as ir
from quadpy.ir.passes.unprinted import unprinted
from quadpy.ir.touches import touched_in, touches
from quadpy.ir.walk import children, walk

_PIECE: Final = 60_000
"""Cost of a piece of a loop that is worth waking a thread, which takes some microseconds."""
_ATOMIC: Final = 30
_ACCESS: Final = 2
_UPDATE: Final = 4
_UNKNOWN_TRIPS: Final = 16
_MOST: Final = 1 << 40
_SLOW: Final = {ir.BinOp.DIV, ir.BinOp.FLOORDIV, ir.BinOp.MOD, ir.BinOp.RAWDIV, ir.BinOp.RAWMOD}


def grain_of(task: ir.ParallelTask, functions: dict[str, ir.Function]) -> int:
    """How many iterations of ``task`` are worth giving to another thread."""
    return max(1, _PIECE // cost_of(task.body, functions))


def private_cost(task: ir.ParallelTask, functions: dict[str, ir.Function]) -> int:
    """The cost of one iteration of ``task`` on private copies, where updates are plain loads and stores.

    It determines the number of copies, and so the bits of the sums: therefore prints cost nothing here.
    """
    body = unprinted(task.body)
    updates = sum(access is ir.Access.ATOMIC for _, _, access in touched_in(body))
    return max(1, cost_of(body, functions) - updates * (_ATOMIC - _UPDATE))


def cost_of(node: ir.Node, functions: dict[str, ir.Function]) -> int:
    """The cost of running ``node`` once, in simple operations; a core does about ten in a nanosecond."""
    return _cost(node, {name: _cost(f.body, {}) for name, f in functions.items()})


def _cost(node: ir.Node, calls: dict[str, int]) -> int:
    inside = sum(_cost(child, calls) for child in children(node))
    match node:
        case ir.For() | ir.While():
            inside *= _trips(node)
        case ir.Call(function=name) | ir.CallMany(function=name):
            inside += calls.get(name, _UNKNOWN_TRIPS)
        case _ if is_slow(node):
            inside += 8
        case _ if node.ACCESSES and (found := touches(node)):
            inside += sum(_ATOMIC if access is ir.Access.ATOMIC else _ACCESS for _, access in found)
        case ir.Const() | ir.VarRead() | ir.ParamRead() | ir.Let() | ir.Block():
            pass
        case _:
            inside += 1
    return max(1, min(inside, _MOST))


def is_slow(node: ir.Node) -> bool:
    """Whether ``node`` is an operation that takes about eight times as long as an addition."""
    return (isinstance(node, ir.Binary) and node.op in _SLOW) or (
        isinstance(node, ir.Unary) and node.op is ir.UnOp.SQRT
    )


def lines_of(node: ir.Node, functions: dict[str, ir.Function]) -> int:
    """The approximate number of instructions of ``node`` with all calls inlined."""
    sizes: dict[str, int] = {}
    for function in functions.values():  # callees come first
        sizes[function.name] = _lines_of(function.body, sizes)
    return _lines_of(node, sizes)


def _lines_of(node: ir.Node, sizes: dict[str, int]) -> int:
    plain = (ir.Const, ir.VarRead, ir.ParamRead, ir.Let, ir.Block)
    calls = sum(sizes.get(n.function, 0) for n in walk(node) if isinstance(n, (ir.Call, ir.CallMany)))
    return calls + sum(not isinstance(n, plain) for n in walk(node))


def _trips(loop: ir.For | ir.While) -> int:
    match loop:
        case ir.For(start=ir.Const(value=a), stop=ir.Const(value=b), step=ir.Const(value=c)) if c:
            return max(0, -int((a - b) // c))
        case _:
            return _UNKNOWN_TRIPS
