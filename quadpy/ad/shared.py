"""Arrays with gradients whose memory another library has: a tape cannot see that library write, so it compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quadpy.ad.arrays import Bytes, bytes_in, overlap, storages_of
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.runtime.memory.host_storage import HostStorage, Storage
from quadpy.runtime.streams.stream import Stream


class Shared:
    """Hashes of the numbers that calls on a tape have left in memory of the host that others may write."""

    def __init__(self) -> None:
        self._left: dict[HostStorage, int] = {}

    def watches(self, array: object) -> bool:
        """Whether another library may have it."""
        return any(storage.exported or storage in self._left for storage in _on_host([array]))

    def left(self, arrays: Iterable[object], on: Stream, *, exported: bool = False) -> None:
        """Note what is in those of ``arrays`` that other libraries have, or in all that they may get now."""
        for storage in _on_host(arrays):
            if exported or storage.exported:
                self._left[storage] = _hash_of(storage, on)

    def require_unchanged(self, arrays: Iterable[object], on: Stream) -> None:
        """Raise ArgumentError if one has changed, whose derivatives from before would count for the new numbers."""
        for array in arrays:
            for storage in _on_host([array]):
                if storage in self._left and self._left[storage] != _hash_of(storage, on):
                    raise ArgumentError(
                        f"another library has changed {array!r} after calls on the tape have used it", call_site(),
                        hint="change it by quadpy: x[i] = …, x.from_numpy(…), or in a kernel",
                    )  # fmt: skip

    def overwritten(self, written: Sequence[Bytes]) -> None:
        """A kernel or the host writes these ranges."""
        for storage in [each for each in self._left if any(overlap(bytes_in(each), part) for part in written)]:
            del self._left[storage]


def _on_host(arrays: Iterable[object]) -> Iterable[HostStorage]:
    return (storage for array in arrays for storage in storages_of(array) if isinstance(storage, HostStorage))


def _hash_of(storage: Storage, on: Stream) -> int:
    return hash(storage.read(..., on).tobytes())
