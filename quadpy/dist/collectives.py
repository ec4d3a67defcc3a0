"""Calls that all ranks make together, with numbers and arrays that each has for itself."""

from __future__ import annotations

import copy
import functools
import json
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quadpy.core.dtypes import BY_NAME, Scalar
from quadpy.core.importing import import_late
from quadpy.core.messages import shown
from quadpy.core.public import public
from quadpy.dist.arrays import DistributedArray
from quadpy.dist.transport.agreement import share_in
from quadpy.dist.transport.protocol import FlatPart, Receive, Send
from quadpy.dist.world import world
from quadpy.errors import ArgumentError, RanksDisagreeError
from quadpy.runtime.arrays.dense import DenseArray
from quadpy.runtime.arrays.ndarray import NDArray, ndarray
from quadpy.runtime.arrays.reinterpret import over_memory_of
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.capturing import refuse_in_capture

if TYPE_CHECKING:
    from quadpy.runtime.streams.stream import Stream

_NAMES: Final = {"sum": "add", "prod": "mul", "min": "min", "max": "max", "add": "add", "mul": "mul"}
"""The operators, which ``qp.algorithms`` has, too."""
_OF_INTEGERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add, "mul": operator.mul, "min": min, "max": max,
}  # fmt: skip
_OF_ARRAYS: Final = {"add": np.add, "mul": np.multiply, "min": np.fmin, "max": np.fmax}
_OF_TEXT: Final[dict[str, Callable[[str], Any]]] = {
    "bool": lambda text: text == "True",
    "int": int,
    "float": float.fromhex,
}


@public
def barrier() -> None:
    """Wait until every rank has made this call."""
    _shared("barrier", b"")


@public
def allreduce(x: Any, op: str = "sum") -> Any:
    """The sum, product, minimum or maximum of what the ranks pass, on every rank.

    The ranks' numbers are combined in the order of ranks, so that the bits are the same on every rank and in every run,
    whatever connects the ranks.  Integers, minima and maxima do not depend on how many ranks there are either; a sum of
    floats does, as each rank rounds its own part.

    Args:
        x: a number, a NumPy array, or an ndarray or a field, with the same type and shape on all ranks; elements may be
            vectors and matrices.
        op: ``"sum"``, ``"prod"``, ``"min"`` or ``"max"``; a number wins over a NaN.

    Returns:
        What ``x`` is: Python's integers are exact, those of arrays wrap around; under ``debug=True``, an ndarray or field
        where they would is an error.  An array is a new one; it is computed on its device, on the calling thread's stream.

    Raises:
        ArgumentError: ``x`` or ``op`` is of another kind.
        RanksDisagreeError: ranks pass other types, shapes or operators, or make other calls.
        CaptureError: in a capture.
    """
    if op not in _NAMES:
        raise ArgumentError(f"allreduce: {shown(op)} is not an operator", hint="use 'sum', 'prod', 'min' or 'max'")
    kind, name = _kind_of(x, "allreduce"), _NAMES[op]
    call = f"allreduce ({op}) of {_told(kind)}"
    if isinstance(x, DenseArray):
        _shared(call, b"")
        return _reduced(copy.copy(x), name)
    values = [_decoded(kind, part) for part in _shared(call, _encoded(x))]
    if isinstance(x, int):
        return functools.reduce(_OF_INTEGERS[name], values)
    with np.errstate(all="ignore"):  # as kernels and MPI
        found = functools.reduce(_OF_ARRAYS[name], values)
    return float(found) if isinstance(x, float) and not isinstance(x, np.generic) else found


@public
def broadcast(x: Any, root: int = 0) -> Any:
    """What rank ``root`` passes, on every rank.

    Args:
        x: as for ``allreduce``.  The other ranks pass the same type and shape, or None; their values are not used.
        root: the number of a rank.

    Returns:
        The root's numbers, as a new object.

    Raises:
        ArgumentError: ``x`` is of another kind, or ``root`` is not the number of a rank.
        RanksDisagreeError: ranks pass other types or shapes or another root, or make other calls.
        CaptureError: in a capture.
    """
    ranks = world()
    _require_rank(root, "broadcast")
    kind = None if x is None and ranks.rank != root else _kind_of(x, "broadcast")
    on_device = isinstance(x, DenseArray)
    mine = _encoded(x) if ranks.rank == root and not on_device else b""
    parts = _shared(f"broadcast from rank {root}", json.dumps(kind).encode() + b"\n" + mine)
    kinds = [json.loads(part.partition(b"\n")[0]) for part in parts]
    _require_same([each or kinds[root] for each in kinds], "broadcast")
    if kinds[root][0] not in ("ndarray", "field"):
        return _decoded(kinds[root], parts[root].partition(b"\n")[2])
    made = copy.copy(x) if on_device else _array_of(kinds[root])
    _spread(made, root)
    return made


@public
def gather(x: Any, root: int = 0) -> list[Any] | None:
    """What each rank passes, as a list in the order of ranks, on rank ``root``; None on the others.

    Args:
        x: as for ``allreduce``.
        root: the number of a rank.

    Raises:
        ArgumentError: ``x`` is of another kind, or ``root`` is not the number of a rank.
        RanksDisagreeError: ranks pass other types or shapes or another root, or make other calls.
        CaptureError: in a capture.
    """
    ranks, kind = world(), _kind_of(x, "gather")
    _require_rank(root, "gather")
    call = f"gather at rank {root} of {_told(kind)}"
    if not isinstance(x, DenseArray):
        parts = _shared(call, _encoded(x))
        return [_decoded(kind, part) for part in parts] if ranks.rank == root else None
    _shared(call, b"")
    if ranks.rank != root:
        _exchange([Send(root, FlatPart.whole(_numbers_of(copy.copy(x))))], [])
        return None
    made = [copy.copy(x) for _ in range(ranks.size)]
    _exchange(
        [], [Receive(peer, FlatPart.whole(_numbers_of(made[peer]))) for peer in range(ranks.size) if peer != root]
    )
    return made


# ------------------------------------------------------------------- arrays of the device


def _reduced(x: DenseArray, op: str) -> DenseArray:
    """``x`` with the numbers of all ranks: each rank combines its share of them, and gets the others'."""
    ranks, numbers = world(), _numbers_of(x)
    share = -(-numbers.size // ranks.size)
    shares = [max(0, min(share, numbers.size - rank * share)) for rank in range(ranks.size)]
    if not numbers.size:
        return x
    parts, mine = ndarray(x.dtype, (ranks.size, share)), shares[ranks.rank]
    _exchange(
        [Send(peer, FlatPart(numbers, peer * share, count)) for peer, count in enumerate(shares) if count],
        [Receive(peer, FlatPart(parts, peer * share, mine)) for peer in range(ranks.size) if mine],
    )
    folded, every = ndarray(x.dtype, share), ndarray(x.dtype, share * ranks.size)
    import_late("quadpy.dist.kernels.tiles").fold(parts, folded, mine, op)
    ranks.transport.all_gather(FlatPart.whole(folded), FlatPart.whole(every), _stream())
    found = over_memory_of(every, x.dtype, numbers.shape)
    assert found is not None
    numbers.copy_from(found)
    return x


def _spread(x: DenseArray, root: int) -> None:
    """Give the numbers of rank ``root`` to all: in each round, the ranks that have them send them to as many others."""
    ranks, part = world(), FlatPart.whole(_numbers_of(x))
    place, have = (ranks.rank - root) % ranks.size, 1
    while have < ranks.size:
        other = place - have if place >= have else place + have
        peer = (other + root) % ranks.size
        sends = [Send(peer, part)] if place < have and other < ranks.size else []
        _exchange(sends, [Receive(peer, part)] if have <= place < 2 * have else [])
        have *= 2


def _exchange(sends: list[Send], receives: list[Receive]) -> None:
    world().transport.start_exchange(sends, receives, _stream()).finish()


def _stream() -> Stream:
    return current_device().current_stream()


def _numbers_of(x: DenseArray) -> NDArray:
    """The numbers of ``x`` in a row."""
    found = over_memory_of(x, x.dtype, (x.size * math.prod(x.element_shape),))
    assert found is not None  # a copy has no gaps
    return found


# ------------------------------------------------------------------- what ranks pass


def _kind_of(x: Any, call: str) -> list[Any]:
    """What must be the same on all ranks, as JSON keeps it."""
    if isinstance(x, DistributedArray):
        raise ArgumentError(
            f"{call}: {x!r} already belongs to all ranks",
            hint="qp.algorithms.reduce and kernels take it, to_numpy() has all",
        )
    if isinstance(x, DenseArray) and isinstance(x.dtype, Scalar):
        return [type(x).__name__.lower().removeprefix("dense"), x.dtype.name, list(x.shape), list(x.element_shape)]
    if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
        return [type(x).__name__]
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc":
        return ["numpy", x.dtype.str, list(x.shape)]
    raise ArgumentError(
        f"{call} takes a number, a NumPy array of numbers, an ndarray or a field, not {shown(x)}",
        hint="broadcast of None is for the ranks that receive" if x is None else "convert it to one of these",
    )


def _told(kind: list[Any]) -> str:
    return " ".join(str(tuple(each) if isinstance(each, list) else each) for each in kind if each != [])


def _encoded(x: Any) -> bytes:
    if isinstance(x, (np.ndarray, np.generic)):
        return x.tobytes()
    return (x.hex() if isinstance(x, float) else str(x)).encode()


def _decoded(kind: list[Any], data: bytes) -> Any:
    if kind[0] != "numpy":
        return _OF_TEXT[kind[0]](data.decode())
    found = np.frombuffer(data, kind[1]).reshape(kind[2]).copy()
    return found if kind[2] else found[()]


def _array_of(kind: list[Any]) -> NDArray:
    """An ndarray for what another rank passes."""
    _, name, shape, element = kind
    return ndarray(import_late("quadpy.hostmath.descriptors").type_of(BY_NAME[name], tuple(element)), tuple(shape))


def _require_rank(root: object, call: str) -> None:
    size = world().size
    if not isinstance(root, int) or isinstance(root, bool) or not 0 <= root < size:
        raise ArgumentError(f"{call}: there is no rank {shown(root)}: the program has {size}, from 0 to {size - 1}")


def _require_same(kinds: list[list[Any]], call: str) -> None:
    if any(kind != kinds[0] for kind in kinds):
        told = "; ".join(f"{_told(kind)} on rank {rank}" for rank, kind in enumerate(kinds))
        raise RanksDisagreeError(f"ranks disagree about what they {call}: {told}", hint="pass the same type and shape")


def _shared(call: str, mine: bytes) -> list[bytes]:
    """What each rank passes to this call; all ranks make it together."""
    refuse_in_capture(
        current_device(), f"qp.dist.{call.split(maxsplit=1)[0]}", "call it before the capture, or between launches"
    )
    ranks = world()
    return share_in(ranks.transport, "the next call", call, mine, ranks.calls)
