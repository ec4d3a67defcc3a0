"""Parts of arrays as memory: their storage, copies between them, and which send belongs to which receive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quadpy.dist.transport.protocol import FlatPart, Receive, Send
from quadpy.errors import TransportError
from quadpy.runtime.elements.numpy_types import STORAGE
from quadpy.runtime.memory.device_storage import DeviceStorage
from quadpy.runtime.memory.host_storage import HostPart, HostStorage, Storage
from quadpy.runtime.memory.strided_layout import StridedLayout
from quadpy.runtime.streams.stream import Stream

SAME_SIZES: Final = "the ranks must agree on the shape of the grid, the halos and the dtype"
"""What mends messages of other sizes than expected."""


def storage_of(part: FlatPart) -> Storage:
    """The numbers of ``part``, of shape ``(count,)``, in the memory of its array."""
    whole = part.array._memory()  # noqa: SLF001 - the runtime's own way to the memory of an array
    if isinstance(whole, DeviceStorage):
        dtype = STORAGE[part.array.dtype]
        start = whole.layout.start + part.start * dtype.itemsize
        return DeviceStorage(whole.region, StridedLayout(start, dtype, (part.count,), (dtype.itemsize,)))
    assert isinstance(whole, HostStorage)
    return HostPart(whole, whole.view.reshape(-1)[part.start : part.start + part.count])


def copy_part(target: FlatPart, source: FlatPart, stream: Stream) -> None:
    """Copy ``source`` to ``target`` on ``stream``; TransportError if they differ in size."""
    require_same_size(source.nbytes, target.nbytes, "this rank")
    storage_of(target).copy_from(storage_of(source), stream)


def require_same_size(sent: int, received: int, sender: str) -> None:
    """Refuse a message whose size is not that of what receives it."""
    if sent != received:
        raise TransportError(
            f"{sender} sent {sent} bytes to a receive of {received}",
            hint=SAME_SIZES,
        )


def pairs_of(sends: Sequence[Send], receives: Sequence[Receive]) -> list[tuple[Send, Receive]]:
    """The sends of a rank to itself with their receives; TransportError for one without the other."""
    open_receives = {receive.tag: receive for receive in receives}
    pairs = [(send, open_receives.pop(send.tag, None)) for send in sends]
    unmatched = [send.tag for send, receive in pairs if receive is None] + list(open_receives)
    if unmatched or len(receives) != len(pairs):
        raise TransportError(
            f"an exchange of a rank with itself has a send or a receive without its counterpart, with tag {unmatched}"
        )
    return [(send, receive) for send, receive in pairs if receive is not None]
