"""The reader of saved graphs in C, built as a library, and how tests call it."""

from __future__ import annotations

import ctypes
import functools
import json
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from hip_library import compiler

from quadpy.graph.saved import c

if TYPE_CHECKING:
    from typing_extensions import Self

FOLDER = Path(c.__path__[0])
STRICT = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
_KEPT = tempfile.TemporaryDirectory(prefix="quadpy-reader-")


@functools.cache
def reader_library() -> Path:
    """The reader as a shared library; a test without a C compiler is skipped."""
    file = Path(_KEPT.name) / "libqpg.so"
    command = [*compiler(), *STRICT, "-shared", "-fPIC", "-o", file, FOLDER / "quadpy_graph.c", "-ldl"]
    subprocess.run(command, check=True, timeout=200)
    return file


class Array(ctypes.Structure):
    """``qpg_array``."""

    _fields_ = [
        ("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("memory", ctypes.c_char_p), ("access", ctypes.c_char_p),
        ("item", ctypes.c_size_t), ("rank", ctypes.c_int), ("shape", ctypes.c_int64 * 32), ("pointer", ctypes.c_void_p),
    ]  # fmt: skip


class Reader:
    """A graph that the reader in C has opened; ValueError with its text for what it refuses."""

    def __init__(self, source: Path | bytes, target: str | None = None) -> None:
        self.library = ctypes.CDLL(str(reader_library()))
        for name in ("qpg_open", "qpg_open_memory"):
            getattr(self.library, name).restype = ctypes.c_void_p
        for name in ("qpg_error", "qpg_target"):
            getattr(self.library, name).restype = ctypes.c_char_p
        error, asked = ctypes.create_string_buffer(512), None if target is None else target.encode()
        if isinstance(source, bytes):
            found = self.library.qpg_open_memory(
                source, ctypes.c_size_t(len(source)), asked, error, ctypes.c_size_t(512)
            )
        else:
            found = self.library.qpg_open(str(source).encode(), asked, error, ctypes.c_size_t(512))
        if not found:
            raise ValueError(error.value.decode())
        self.graph = ctypes.c_void_p(found)

    def target(self) -> str:
        return self.library.qpg_target(self.graph).decode()

    def arrays(self) -> list[Array]:
        found = []
        for k in range(self.library.qpg_array_count(self.graph)):
            found.append(Array())
            assert self.library.qpg_array_info(self.graph, k, ctypes.byref(found[-1])) == 0
        return found

    def bind(self, name: str, pointer: int, *shape: int) -> None:
        axes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self._check(self.library.qpg_bind(self.graph, name.encode(), ctypes.c_void_p(pointer), axes, len(shape)))

    def run(self, stream: int | None = None, **arrays: np.ndarray) -> None:
        """Runs the graph, after ``arrays`` are bound, which are scalars in C order."""
        for name, array in arrays.items():
            self.bind(name, array.ctypes.data, *array.shape)
        self._check(self.library.qpg_run(self.graph, ctypes.c_void_p(stream)))

    def threads(self, count: int) -> None:
        self.library.qpg_set_threads(self.graph, count)

    def close(self) -> None:
        self.library.qpg_close(self.graph)

    def _check(self, status: int) -> None:
        if status:
            raise ValueError(self.library.qpg_error(self.graph).decode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def changed(file: Path, change: Callable[[Any], object], instead: Mapping[str, bytes] | None = None) -> bytes:
    """The bytes of ``file`` with another manifest: ``change`` changes it in place, or returns the new one's bytes.

    With ``instead``, the file has these entries and data, not its own code.
    """
    with zipfile.ZipFile(file) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    manifest = json.loads(entries["manifest.json"])
    found = change(manifest)
    entries["manifest.json"] = found if isinstance(found, bytes) else json.dumps(manifest).encode()
    if instead is not None:
        entries = {name: data for name, data in entries.items() if not name.startswith("code/")} | dict(instead)
    return zipped(entries)


def zipped(entries: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    with tempfile.TemporaryFile() as out:
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, data in entries.items():
                archive.writestr(zipfile.ZipInfo(name), data, method)
        out.seek(0)
        return out.read()
