"""One folder of sealed files, below a size limit.

There are no locks: a writer replaces a whole file at once, a reader checks what it reads, and a process that loses a race
has only done some work twice.  Only files with the cache's own suffixes are ever touched.

Entries are code that will run.  Therefore, neither a folder nor an entry that another user (except root) owns or may write to is
trusted.  Only regular files are opened: no links, and no pipes, for which a reader would wait.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from quadpy.cache.format import seal, unseal

_ENTRY: Final = ".qpc"
_TEMPORARY: Final = ".tmp"
_TALLY: Final = "tally"
_BLOCK: Final = 4096
"""Sizes are counted in whole blocks, as disks do."""
_FRESH: Final = 3600.0
"""Seconds: the resolution of "least recently used", and the age at which a temporary file counts as abandoned."""
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_SAFELY: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_SLACK: Final = 16
"""Each time a sixteenth of the limit has been written, the folder is swept to that much below the limit."""


class _File(NamedTuple):
    used: float
    nbytes: int
    path: Path


class CacheFolder:
    """Payloads by name in ``path``, at most ``limit`` bytes of them; safe from any thread and any process."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path, self.limit = path, limit

    def make(self) -> None:
        """Create the folder and its parents if they are missing, accessible to the owner alone."""
        missing = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not missing and not self.path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def distrust(self) -> str:
        """Why code from the folder must not run; empty if it may, or if there is no folder yet."""
        try:
            return _distrust(self.path.stat())
        except OSError:
            return ""

    def refusal(self) -> OSError | None:
        """Why the folder cannot be written, found without writing to it; ``None`` if it can."""
        try:
            self.make()
        except OSError as error:
            return error
        return None if os.access(self.path, os.W_OK | os.X_OK) else PermissionError(errno.EACCES, "no permission")

    def read(self, name: str) -> bytes | None:
        """The payload of ``name``.  A damaged or foreign file is removed, and counts as none."""
        file = self.path / f"{name}{_ENTRY}"
        try:
            with open(file, "rb", buffering=0, opener=_open) as stream:
                status = os.fstat(stream.fileno())
                sound = stat.S_ISREG(status.st_mode) and not _distrust(status) and status.st_size <= self.limit
                payload, used = unseal(name, stream.read()) if sound else None, status.st_mtime
        except OSError as error:
            if error.errno != errno.ELOOP:  # ELOOP means a link
                return None
            payload, used = None, 0.0
        with contextlib.suppress(OSError):  # a read-only folder still gives hits
            if payload is None:
                file.unlink()
            elif time.time() - used > _FRESH:
                os.utime(file)
        return payload

    def write(self, name: str, payload: bytes) -> None:
        """Keep ``payload``; a reader sees all of it or none.

        Raises:
            OSError: the folder cannot be written.
        """
        data = seal(name, payload)
        target = self.path / f"{name}{_ENTRY}"
        try:
            _replace(target, data)
        except FileNotFoundError:  # no folder yet, or another process has just removed it
            self.make()
            _replace(target, data)
        self._count(len(data))

    def files(self) -> list[_File]:
        """The cache's files, the least recently used first; files that vanish in the meantime are left out."""
        return sorted(self._scan())

    def clear(self) -> int:
        """Remove every entry; gives the number of bytes freed."""
        (self.path / _TALLY).unlink(missing_ok=True)
        return _remove(self.files())

    def sweep(self) -> int:
        """Remove the least recently used entries above the limit; gives the number of bytes freed."""
        files = self.files()
        excess = sum(file.nbytes for file in files) - self.limit * (_SLACK - 1) // _SLACK
        old = []
        for file in files:
            if excess <= 0:
                break
            old.append(file)
            excess -= file.nbytes
        return _remove(old)

    def _count(self, nbytes: int) -> None:
        """Add the bytes written to a tally, and sweep when that is due.

        All processes append to one file, a byte per block, so its size is the sum, and no lock is needed.  Reading
        the whole folder on each write would cost more than a compilation once it holds thousands of files.
        """
        with (
            contextlib.suppress(FileNotFoundError),  # cleared in the meantime
            open(self.path / _TALLY, "ab", buffering=0, opener=_open) as tally,
        ):
            if not stat.S_ISREG(os.fstat(tally.fileno()).st_mode):
                raise OSError(errno.EINVAL, f"{_TALLY} is not a file")
            tally.write(b"+" * _blocks(nbytes))
            if tally.tell() * _BLOCK > self.limit // _SLACK:
                self.sweep()
                tally.truncate(0)

    def _scan(self) -> Iterator[_File]:
        try:
            scan = os.scandir(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return
        stale = time.time() - _FRESH
        with scan:
            for file in scan:
                if not file.name.endswith((_ENTRY, _TEMPORARY)):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    status = file.stat(follow_symlinks=False)
                    if file.name.endswith(_ENTRY) or status.st_mtime < stale:
                        yield _File(status.st_mtime, _blocks(status.st_size) * _BLOCK, Path(file.path))


def _distrust(status: os.stat_result) -> str:
    """Why a file with this status must not run; empty if it may."""
    if not hasattr(os, "geteuid"):  # Windows: the user's own folder has its own access list
        return ""
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to another user, {status.st_uid}"
    if status.st_mode & _OTHERS_MAY_WRITE:
        return f"other users may write to it (its mode is {stat.S_IMODE(status.st_mode):o})"
    return ""


def _open(path: str, flags: int) -> int:
    """Follows no link and waits for no pipe; whatever the umask, other users may not write to a file created here."""
    return os.open(path, flags | _SAFELY, 0o644)


def _blocks(nbytes: int) -> int:
    return -(-nbytes // _BLOCK)


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f"{os.urandom(16).hex()}{_TEMPORARY}")
    try:
        with open(temporary, "xb", opener=_open) as stream:
            stream.write(data)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove(files: Iterable[_File]) -> int:
    freed = 0
    for file in files:
        with contextlib.suppress(OSError):  # another process was faster, or still has the file open
            file.path.unlink()
            freed += file.nbytes
    return freed
