"""Compiled kernels in the cache of this process, by what they were made from."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
from typing import Final

import llvmlite

from quadpy._version import __version__
from quadpy.cache.format import pack_parts, unpack_parts
from quadpy.cache.process import kernel_cache
from quadpy.codegen.host import host_spec_string
from quadpy.core.artifact import CodeObject
from quadpy.core.target import TargetSpec

FOLDERS: Final = (
    "algorithms", "cache", "codegen", "compat", "core", "dist/kernels", "hostmath", "interpreter", "intrinsics", "ir", "jit", "lang",
    "linalg", "math", "mathlib", "runtime", "selftest", "simt",
)  # fmt: skip
"""Of quadpy, that machine code depends on: they have the compiler, or functions that kernels call."""


def _own_files() -> str:
    """A digest of quadpy's own files: in a checkout they change while its version does not."""
    root = Path(__file__).parent.parent
    files = [file for file in os.scandir(root) if file.is_file()]
    for folder in FOLDERS:
        files += _files_in(root / folder)
    stats = [(file.path, file.stat()) for file in files if file.name.endswith(".py")]
    text = repr(sorted((path[len(str(root)) :], stat.st_size, stat.st_mtime_ns) for path, stat in stats))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _files_in(folder: str | Path) -> list[os.DirEntry[str]]:
    """The files in a folder and the folders in it; paths as text, because every process reads them."""
    found = [*os.scandir(folder)]
    return [file for file in found if file.is_file()] + [
        file for inner in found if inner.is_dir() and inner.name != "__pycache__" for file in _files_in(inner.path)
    ]


TOOLCHAIN: Final = f"quadpy-{__version__}-{_own_files()};llvmlite-{llvmlite.__version__}"


@functools.cache
def target_text(target: TargetSpec) -> str:
    """What keys say of ``target``."""
    return f"{target.key};{host_spec_string(target.arch)}" if target.family == "cpu" else target.key


def load_code(digest: str) -> CodeObject | None:
    """The code kept under ``digest``; None if there is none."""
    payload = kernel_cache().load(digest)
    if payload is None:
        return None
    parts = unpack_parts(payload)
    return CodeObject.from_parts(parts["manifest"].decode(), parts["image"])


def store_code(digest: str, code: CodeObject) -> None:
    """Keeps ``code`` under ``digest``."""
    kernel_cache().store(digest, pack_parts({"manifest": code.manifest().encode(), "image": code.image}))
