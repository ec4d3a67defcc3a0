"""The kernel cache: what it finds, what it stores, and what happens if its folder cannot be used.

A folder that cannot be written, or that others may write to, leads to one warning; entries then live as long as the
process.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Final

from quadpy.cache.folder import CacheFolder
from quadpy.cache.format import pack_parts, unpack_parts
from quadpy.cache.keys import CacheKey, IndexKey, IndexRecord
from quadpy.core.light import dataclass
from quadpy.errors import CacheError
from quadpy.settings import Settings, default_cache_dir

__all__ = [
    "Cache", "CacheKey", "CacheStats", "IndexKey", "IndexRecord", "open_cache", "pack_parts", "unpack_parts",
]  # fmt: skip

_OWN: Final = "make it writable only by you (chmod go-w), or set QUADPY_CACHE_DIR to a folder of your own"
_HINT: Final = "set QUADPY_CACHE_DIR to a writable folder, or QUADPY_CACHE=0 to work without a cache"


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The contents of the cache's folder: number of files, their size on disk, and its limit, in bytes."""

    entries: int
    nbytes: int
    limit: int


class Cache:
    """Payloads by digest, safe from any thread and any process.

    ``folder`` is ``None`` for a cache in memory; ``limit`` is in bytes; ``enabled=False`` makes a cache that
    keeps nothing.
    """

    def __init__(self, folder: Path | None, limit: int, *, enabled: bool = True) -> None:
        self.enabled, self.limit = enabled, limit
        self._folder = CacheFolder(folder, limit) if folder and enabled else None
        self._memory: dict[str, bytes] = {}  # entries that could not be written to disk
        self._trusted = False

    @property
    def path(self) -> Path | None:
        """The folder; ``None`` if there is none, or it failed."""
        return self._folder.path if self._folder else None

    def load(self, digest: str) -> bytes | None:
        """The payload stored under ``digest``; a damaged or foreign file counts as none."""
        held = self._memory.get(digest)
        return folder.read(digest) if held is None and (folder := self._trusted_folder()) else held

    def store(self, digest: str, payload: bytes) -> None:
        """Stores ``payload`` under ``digest``: on disk, or in memory if that fails."""
        if folder := self._trusted_folder():
            try:
                folder.write(digest, payload)
            except OSError as error:
                self._folder = None
                _warn(f"the kernel cache in {folder.path} cannot be written ({error.strerror})")
            else:
                return
        if self.enabled and sum(map(len, list(self._memory.values()))) + len(payload) <= self.limit:
            self._memory[digest] = payload

    def find(self, key: IndexKey) -> tuple[tuple[str, str], ...]:
        """The objects that ``key`` may lead to: pairs of a digest and the facts that must hold, as remembered."""
        blob = self.load(key.digest())
        return () if blob is None else IndexRecord.from_bytes(blob).ways

    def remember(self, key: IndexKey, digest: str, facts: str) -> None:
        """Store that ``key`` leads to the object ``digest`` if ``facts`` hold."""
        self.store(key.digest(), IndexRecord(self.find(key)).plus(digest, facts).to_bytes())

    def stats(self) -> CacheStats:
        """The folder's current contents."""
        files = self._folder.files() if self._folder else []
        return CacheStats(len(files), sum(file.nbytes for file in files), self.limit)

    def trouble(self) -> str:
        """Why the folder cannot be written or read, and what to do; empty if it can."""
        error = self._folder.refusal() if self._folder else None
        return f"it cannot be written ({error.strerror}): {_HINT}" if error else self.distrust()

    def distrust(self) -> str:
        """Why the folder is not trusted although it works, and what to do; empty if it is trusted."""
        why = self._folder.distrust() if self._folder else ""
        return f"it is not used, because {why}: {_OWN}" if why else ""

    def _trusted_folder(self) -> CacheFolder | None:
        """The folder, if code from it may run; otherwise one warning says so."""
        folder = self._folder
        if folder is None or self._trusted:
            return folder
        if why := folder.distrust():
            self._folder = None
            message = f"the kernel cache in {folder.path} is not used, because {why}: {_OWN}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
            return None
        self._trusted = folder.path.exists()
        return folder

    def clear(self) -> int:
        """Remove every entry, and no other file; gives the number of bytes freed on disk."""
        self._memory.clear()
        return self._folder.clear() if self._folder else 0


def open_cache(settings: Settings) -> Cache:
    """The cache that ``settings`` ask for.

    Raises:
        CacheError: ``QUADPY_CACHE_DIR`` names a folder that cannot be written.  Nobody chose the default folder
            wish: where that fails, the first store warns and the process goes on without.
    """
    limit = settings.cache_size << 20
    if not settings.cache:
        return Cache(None, limit, enabled=False)
    if settings.cache_dir is not None:
        cache = Cache(settings.cache_dir, limit)
        if not cache.distrust() and (trouble := cache.trouble()):
            raise CacheError(f"the kernel cache in {settings.cache_dir}: {trouble}")
        return cache
    folder = default_cache_dir(os.environ)
    if folder is None:
        _warn("there is no home folder to keep the kernel cache in")
    return Cache(folder, limit)


def _warn(what: str) -> None:
    message = f"{what}: kernels are compiled again in each process; {_HINT}"
    warnings.warn(message, RuntimeWarning, stacklevel=3)
