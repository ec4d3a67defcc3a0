"""Values of a call that do not fit their parameters; ``import quadpy`` loads this module, and no other of plans."""

from __future__ import annotations

import struct
from typing import Final

MISFITS: Final = (struct.error, OverflowError, TypeError)
"""Exceptions that such a value raises when it is packed."""


class Misfit(Exception):
    """A value of a call does not fit its parameter; nothing of the call has begun."""
