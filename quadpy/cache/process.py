"""The cache of this process, for kernels and for quadpy's own machine code."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Final

from quadpy.cache.cache import Cache, open_cache
from quadpy.settings import Settings, settings

_opened: Final = functools.cache(open_cache)


class _Chosen:
    settings: Settings | None = None


def kernel_cache() -> Cache:
    """The cache of this process, as ``qp.init`` or the settings ask for it."""
    return _opened(_Chosen.settings or settings())


def use_cache(chosen: Settings | None) -> None:
    """Uses the cache that ``chosen`` ask for; for None, the one of the process's settings.

    Raises:
        CacheError: its folder cannot be written.
    """
    if chosen is not None:
        _opened(chosen)
    _Chosen.settings = chosen


def cached_code(key: str, build: Callable[[], bytes]) -> bytes:
    """quadpy's own machine code, kept with that of kernels; ``build`` makes it if there is none under ``key``."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    found = kernel_cache().load(digest)
    if found is None:
        found = build()
        kernel_cache().store(digest, found)
    return found
