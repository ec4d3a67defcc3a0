"""Work of other libraries on quadpy's memory, which the checker cannot see: ``qp.hazards.declare``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from quadpy.core.messages import shown
from quadpy.core.public import public
from quadpy.errors import ArgumentError
from quadpy.hazards.checker import Checker
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_or_current
from quadpy.runtime.launch.capturing import CAPTURES
from quadpy.runtime.launch.host_access import ObservedAccess
from quadpy.runtime.memory.blocked import BlockedStorage
from quadpy.runtime.memory.device_storage import stream_of

_HOST = "host"


@public
def declare(what: str, *, reads: Iterable[Any] = (), writes: Iterable[Any] = (), stream: object = None) -> None:
    """Tells the checker that another library is about to use the memory of arrays, as the launch of a kernel would.

    The checker compares it with all other work, and all other work with it; while it is off, nothing happens.  Only
    events and waits of the program order it, as for quadpy's own work.

    Args:
        what: the work, as reports will describe it, such as ``"torch.matmul"``.
        reads: ndarrays and fields of which it may read all elements.
        writes: those of which it writes all elements.
        stream: where it runs: a stream of quadpy's or of the library, None for the calling thread's current stream, or
            ``"host"`` for work that the host does itself, such as NumPy's, and completes before the next call.

    Raises:
        HazardError: nothing orders it after earlier work, certainly, and hazards are not collected.
        ArgumentError: something other than quadpy arrays, or an empty description.
    """
    _require_words(what)
    touched = [*_accesses("reads", reads), *_accesses("writes", writes)]
    checker = CAPTURES.checker
    if not touched or not isinstance(checker, Checker):
        return
    accesses = [(kind, access) for kind, _, access in touched]
    if isinstance(stream, str) and stream == _HOST:
        checker.declared_on_host(what, accesses)
    else:
        checker.declared(stream_of(device_or_current(touched[0][1]), stream), what, accesses)


def _require_words(what: object) -> None:
    if not isinstance(what, str) or not what.strip():
        raise ArgumentError("declare needs a description of the work", hint="declare('torch.matmul', reads=[x])")


def _accesses(kind: str, arrays: Any) -> Iterator[tuple[str, Device | None, ObservedAccess]]:
    """The accesses to all elements of ``arrays``, and their devices."""
    if not isinstance(arrays, (list, tuple, set, frozenset)):
        raise ArgumentError(f"declare takes a list of arrays, not {shown(arrays)}", hint=f"{kind}=[x]")
    for array in arrays:
        try:
            parts = array.leaves() if hasattr(array, "leaves") else [array]
            storages = [part._memory() for part in parts]  # noqa: SLF001 - what it is made of is the checker's concern
        except AttributeError:
            raise ArgumentError(
                f"declare takes ndarrays and fields, not {shown(array)}",
                hint="use view = qp.from_dlpack(tensor) for an array of another library",
            ) from None
        for storage in storages:
            inner: Any = storage.inner if isinstance(storage, BlockedStorage) else storage
            yield kind, inner.device, inner._access(...)  # noqa: SLF001 - as above
