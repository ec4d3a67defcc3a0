"""The peers' own Python environment: found or made, never quadpy's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCHMARKS = HERE.parent
REQUIREMENTS = HERE / "requirements.txt"
PEERS = ("numba", "taichi", "quadrants")
SYSTEMS = (*PEERS, "quadpy")

# The Pythons that all three peers have wheels for, best first.
SUPPORTED = ("3.12", "3.13", "3.11", "3.10")


class EnvironmentFailure(RuntimeError):
    """The peers' environment cannot be made."""


def default_folder() -> Path:
    """Where the environment goes unless `--env` says otherwise: the user's cache folder."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "quadpy" / "benchmark-peers"


def prepare(folder: Path) -> Path:
    """The interpreter of the peers' environment in `folder`, which is made, or made again if the pins have changed."""
    python = folder / "bin" / "python"
    stamp = folder / "installed.txt"
    if stamp.exists() and stamp.read_text() == REQUIREMENTS.read_text():
        return python
    print(f"installing {', '.join(PEERS)} in {folder}", file=sys.stderr)
    _command(_base_python(), "-m", "venv", "--clear", str(folder))
    _command(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS))
    shutil.copy(REQUIREMENTS, stamp)
    return python


def variables(system: str) -> Mapping[str, str]:
    """The environment variables of a child: this checkout's quadpy, and none of the user's settings."""
    prefixes = ("QUADPY_", "NUMBA_", "TI_", "QD_", "OMP_", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return kept | ({"PYTHONPATH": str(BENCHMARKS.parent)} if system == "quadpy" else {})


def _base_python() -> str:
    """An interpreter that the peers have wheels for: this one, or the first on the path that answers."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" in SUPPORTED:
        return sys.executable
    for version in SUPPORTED:
        found = shutil.which(f"python{version}")
        if found and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0:
            return found
    raise EnvironmentFailure(f"the peers have wheels for Python {', '.join(sorted(SUPPORTED))} only; put one on PATH")


def _command(*words: str) -> None:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        reason = done.stderr.strip().splitlines() or ["no message"]
        raise EnvironmentFailure(f"'{' '.join(words)}' failed: {reason[-1]}")
