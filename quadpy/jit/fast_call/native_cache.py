"""Native code of quadpy's own, kept between processes beside the kernels'.  Owns: ``cached_code``.  Imports: specialise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from quadpy.jit.compilation import kernel_cache

__all__ = ["cached_code"]


def cached_code(key: str, build: Callable[[], bytes]) -> bytes:
    """The object kept under ``key``; where there is none, what ``build`` makes is."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    found = kernel_cache().load(digest)
    if found is None:
        found = build()
        kernel_cache().store(digest, found)
    return found
