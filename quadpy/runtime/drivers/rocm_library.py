"""Finds and opens the libraries of ROCm.

They come as wheels (AMD's ``rocm``, which Python imports as ``rocm_sdk``), as packages of a distribution, in folders
under ``/opt``, or with torch.  Packages without development files have only the versioned name, ``libamdhip64.so.7``.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import re
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

INSTALL: Final = "pip install --index-url https://stable.repo.amd.com/rocm/whl-next/ rocm"
"""ROCm from AMD's own index, without its mathematical libraries, which quadpy does not need.  PyPI's ``rocm`` is empty."""
OLDEST: Final = 70_000_000
"""HIP 7.0.  From this version on, frees do not wait and handles are not validated."""
SOUND: Final = 70_253_211
"""ROCm 7.2.1, by its build number, which fixed event queries during captures."""
_VARIABLES: Final = ("ROCM_PATH", "ROCM_HOME", "HIP_PATH")
_FOLDERS: Final = ("/opt/rocm", "/opt/rocm/core-*", "/opt/rocm-*")
_SONAMES: Final = {"amdhip64": 7, "rccl": 1, "rocprofiler-sdk-roctx": 1, "roctx64": 4}
"""The libraries that quadpy uses, and the version in the name of the file whose calls it knows."""

_CALLS: Final = {"amdhip64": "hipRuntimeGetVersion"}
"""A function by which a file shows that it is this library."""


class Place(NamedTuple):
    """Where a library may be: ``files`` in the order in which they are tried, or ``reason``, why there are none."""

    name: str
    files: tuple[str, ...] = ()
    reason: str = ""


class Opened(NamedTuple):
    """A library, its file and the place where that was."""

    library: ctypes.CDLL
    file: str
    place: str


class LibraryMissing(OSError):
    """No place has a library that can be opened."""


@functools.cache
def open_rocm_library(name: str) -> Opened:
    """Library ``name``, such as ``amdhip64``, from the first place where it can be opened.  Only success is cached.

    Raises:
        LibraryMissing: there is none.
    """
    refused = [f"{_file_names(name)[0]} is in none of the places where quadpy looks"]
    for file, where in ((file, place.name) for place in places(name) for file in place.files):
        try:
            _require_whole(file)
            library = ctypes.CDLL(file)
            if name not in _CALLS or hasattr(library, _CALLS[name]):
                return Opened(library, _mapped(name) or file, where)
            refused += [f"{file} is no {name}: it has no {_CALLS[name]}"]
        except OSError as error:  # noqa: PERF203 - a file that is there, but not one that it needs
            refused += (
                []
                if _absent(file, str(error))
                else [f"{file} cannot be opened: {str(error).removeprefix(f'{file}: ')}"]
            )
    raise LibraryMissing(refused[len(refused) > 1])


def _absent(file: str, why: str) -> bool:
    """Whether an error means that the file does not exist; otherwise it, or a library that it needs, is broken."""
    if is_path(file) or sys.platform != "linux":
        return not Path(file).exists()
    return file in why and "No such file" in why


def is_path(file: str) -> bool:
    """Whether ``file`` has a folder; a bare name is left to the system's loader."""
    return Path(file).name != file


def _require_whole(file: str) -> None:
    """OSError if an ELF file is shorter than its header says, as after a full disk: the loader would end the process."""
    if not is_path(file):
        return
    with contextlib.suppress(FileNotFoundError), Path(file).open("rb") as opened:
        head = opened.read(64)
        if head.startswith(b"\x7fELF\2\1") and len(head) == 64:  # 64 bits, little-endian
            (start,), (size, count) = struct.unpack_from("<Q", head, 0x28), struct.unpack_from("<HH", head, 0x3A)
            if start + size * count > opened.seek(0, os.SEEK_END):
                raise OSError("the file is incomplete")


def places(name: str, environ: Mapping[str, str] = os.environ, root: Path = Path("/")) -> Iterator[Place]:
    """The places of library ``name``, in the order in which they are searched."""
    if loaded := _mapped(name):  # by torch, say: two copies of HIP in a process cannot exchange memory or streams
        yield Place("this process", (loaded,))
    yield _of_wheels(name)
    for variable in _VARIABLES:
        if folder := environ.get(variable):
            yield _of_folder(f"{variable}={folder}", name, [Path(folder)])
    if sys.platform != "win32":
        found = [
            folder for pattern in _FOLDERS for folder in sorted(root.glob(pattern[1:]), key=_version, reverse=True)
        ]
        yield _of_folder("/opt/rocm*", name, found)
    yield Place("the system's loader", _file_names(name))
    yield _of_torch(name)


def _file_names(name: str) -> tuple[str, ...]:
    """The names of the file, first the one with the version that quadpy knows."""
    if sys.platform == "win32":
        return f"{name}_{_SONAMES[name]}.dll", f"{name}.dll"
    return f"lib{name}.so.{_SONAMES[name]}", f"lib{name}.so"


def _of_wheels(name: str) -> Place:
    """AMD's wheels contain only files with versions; their own search raises errors of several kinds."""
    try:
        import rocm_sdk

        return Place(
            "rocm_sdk", tuple(str(path) for path in rocm_sdk.find_libraries(name)), "not in the installed wheels"
        )
    except ModuleNotFoundError as error:
        return Place("rocm_sdk", reason="not installed" if error.name == "rocm_sdk" else str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - UnboundLocalError for a wheel that is missing
        return Place("rocm_sdk", reason=f"{type(error).__name__}: {error}")


def _of_folder(label: str, name: str, folders: Sequence[Path]) -> Place:
    """The files of ``name`` in ``folders``: those of the known version, those without one, then the others."""
    inner = ("bin",) if sys.platform == "win32" else ("lib", "lib64", "lib/x86_64-linux-gnu")
    files, names, reason = list[Path](), _file_names(name), "no such file" if folders else "no such folder"
    for part in (folder / each for folder in folders for each in inner):
        try:
            others = sorted(part.glob(f"{names[-1]}.*"), key=_version, reverse=True)
            files += [file for file in (*(part / one for one in names), *others) if file.is_file()]
        except OSError:  # noqa: PERF203 - others can be read
            reason = f"{part} cannot be read"
    files.sort(key=lambda file: names.index(file.name) if file.name in names else len(names))
    return Place(label, tuple(dict.fromkeys(map(str, files))), "" if files else reason)


def _of_torch(name: str) -> Place:
    """Wheels of torch for ROCm have HIP inside."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        spec = None
    folders = [Path(folder).resolve() for folder in spec.submodule_search_locations or ()] if spec else []
    found = _of_folder("torch", name, folders)
    return found if folders else Place("torch", reason="not installed")


def _version(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]


def _mapped(name: str) -> str:
    """The file from which this process has loaded library ``name``; empty if it has not, or on other systems than Linux."""
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:  # noqa: PTH123
        for line in maps:
            if f"/lib{name}.so" in line:
                return line[line.index("/") :].rstrip("\n")
    return ""
