"""The ranks that this process belongs to, from the environment variables that its launcher set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quadpy.errors import DistributedError


@dataclass(frozen=True, slots=True)
class Launched:
    """This process among those that ``launcher`` started."""

    launcher: str
    rank: int
    size: int
    local_rank: int


LAUNCHERS: Final = (
    ("torchrun", ("RANK", "WORLD_SIZE", "LOCAL_RANK"), "TORCHELASTIC_RUN_ID"),
    ("mpiexec", ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"), "PMI_RANK"),
    ("mpiexec", ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"), "OMPI_COMM_WORLD_RANK"),
    ("srun", ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"), "SLURM_STEP_ID"),
)
"""Each launcher's variables for the rank, the size and the local rank, and a variable that only its processes have.

A batch script of Slurm also has a SLURM_PROCID, but runs outside any step.
"""


def launched_as(environ: Mapping[str, str]) -> Launched | None:
    """This process among its ranks; None if nothing started it as one of several.

    Raises:
        DistributedError: a variable has no number, or they contradict each other.
    """
    for launcher, names, mark in LAUNCHERS:
        if mark in environ and all(name in environ for name in names[:2]):
            rank, size, local = (_number(environ, name) for name in names)
            if not 0 <= rank < size:
                raise DistributedError(f"{names[0]}={rank} is not a rank of {names[1]}={size}, says {launcher}")
            return Launched(launcher, rank, size, local)
    return None


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "0")
    if not (text.isascii() and text.isdecimal()):
        raise DistributedError(f"{name}={text!r} is not a number", hint="the launcher sets it; start the ranks again")
    return int(text)
