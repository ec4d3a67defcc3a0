"""Streams, events, memory and devices.  ``StreamManager`` is public here, and is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quadpy.core.importing import import_late
from quadpy.core.messages import no_attribute

if TYPE_CHECKING:
    from quadpy.runtime.streams.manager import StreamManager

__all__ = ["StreamManager"]


def __getattr__(name: str) -> Any:
    """Import the class on first use: the modules below import this package first."""
    if name == "StreamManager":
        return import_late("quadpy.runtime.streams.manager").StreamManager
    raise no_attribute(f"module {__name__!r}", name, __all__)


def __dir__() -> list[str]:
    return __all__
