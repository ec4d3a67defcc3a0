"""``python -m quadpy.dist.rank program.py ...``: one rank of a program that ``quadpy run`` started.

It connects to the other ranks before the program begins, so that they learn of every failure.  Whole lines of output
begin with the number of the rank.
"""

from __future__ import annotations

import os
import signal
import sys

from quadpy.dist.labelled import LabelledLines
from quadpy.dist.members import World
from quadpy.dist.programs import run_program, shown_error, status_of
from quadpy.dist.supervising import supervise
from quadpy.dist.transport.ending import note_exit_status
from quadpy.dist.world import world
from quadpy.errors import QuadpyError

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Run the program, as Python would; returns the exit status."""
    try:
        ranks = world()
    except QuadpyError as error:
        print(f"quadpy: {error}", file=sys.stderr)  # noqa: T201 - a command's message
        return 1
    outputs = _labelled(ranks)
    try:
        run_program(arguments)
    except SystemExit as exit_:
        return status_of(exit_)
    except BaseException as error:  # noqa: BLE001 - every error is shown, and told to the other ranks
        shown = shown_error(error)
        sys.excepthook(type(shown), shown, shown.__traceback__)
        return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    finally:
        for output in outputs:
            output.finish()
    return 0


def _labelled(ranks: World) -> list[LabelledLines]:
    """Label the output of this process with the number of the rank from now on; only rank 0 reads input."""
    if ranks.size == 1:
        return []
    if ranks.rank > 0:  # launchers give the others a pipe that never ends, so they would wait forever
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
    label = f"[{ranks.rank}] "
    outputs = [LabelledLines(sys.stdout, label), LabelledLines(sys.stderr, label)]
    sys.stdout, sys.stderr = outputs
    return outputs


if __name__ == "__main__":
    _exit_status = supervise()
    if _exit_status is None:
        _exit_status = main(sys.argv[1:])
        note_exit_status(_exit_status)
    sys.exit(_exit_status)
