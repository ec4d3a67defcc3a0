"""Whether this host can run programs on several ranks."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from typing import Final

from quadpy.core.children import python_command
from quadpy.dist.launching import INSTALL, environment_for, find_mpiexec
from quadpy.errors import TransportError

_ASK: Final = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print("mpi4py", mpi4py.__version__ + ",", MPI.Get_library_version().splitlines()[0].strip("\\0"))
"""
_SECONDS: Final = 30


def mpi_found() -> str:
    """The mpiexec and the library that ``quadpy run`` uses, as one line.

    Raises:
        TransportError: one of them is missing, or does not work.
    """
    mpiexec = find_mpiexec()
    if importlib.util.find_spec("mpi4py") is None:
        raise TransportError(f"{mpiexec}, but mpi4py is not installed", hint=INSTALL)
    try:  # in a separate process: a library that does not fit may end the process that loads it
        asked = subprocess.run(  # noqa: S603 - this Python
            python_command(_ASK), env={**os.environ, **environment_for(2)}, capture_output=True, text=True,
            check=False, timeout=_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TransportError(f"mpi4py did not load its library within {_SECONDS} s", hint=INSTALL) from None
    if asked.returncode:
        why = (asked.stderr.strip().splitlines() or [f"exit status {asked.returncode}"])[-1]
        raise TransportError(f"mpi4py cannot load an MPI library: {why}", hint=INSTALL)
    return f"{asked.stdout.strip().splitlines()[-1]}; {mpiexec}"  # libraries may print before it
