"""Builds the HIP library of ``hip_library.c``, with the system's C compiler or the one in ziglang's wheel."""

import functools
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("hip_library.c")


def compiler() -> list[str]:
    """A C compiler's command; a test without one is skipped."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if sys.platform != "linux" or not (found or importlib.util.find_spec("ziglang")):
        pytest.skip("needs Linux and a C compiler, or ziglang's wheel")
    return [found] if found else [sys.executable, "-m", "ziglang", "cc"]


@functools.cache
def hip_library() -> bytes:
    """The file's content."""
    command = compiler()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "libamdhip64.so.7"
        subprocess.run([*command, "-shared", "-fPIC", "-w", "-o", str(file), str(SOURCE)], check=True, timeout=200)
        return file.read_bytes()


def put(folder: Path, name: str = "libamdhip64.so.7") -> Path:
    """Puts the library into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_bytes(hip_library())
    return file
