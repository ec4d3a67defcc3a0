"""The processes of the ranks on this host: whether they still run.

MPI tells the other ranks of a killed process late or never; on one host, the system knows.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

_STATE, _START = 0, 19
"""Fields of ``/proc/PID/stat`` after the name: the state, and when the process started."""


@dataclass(frozen=True, slots=True)
class Process:
    """One rank's process.

    host   its host, and the namespace that gives it its number
    pid    its number
    start  when it started, as another process may get the number later; empty if the system does not say
    """

    host: str
    pid: int
    start: str

    @classmethod
    def from_text(cls, text: str) -> Process:
        host, pid, start = text.split("\n")
        return cls(host, int(pid), start)

    def to_text(self) -> str:
        return f"{self.host}\n{self.pid}\n{self.start}"

    def has_ended(self) -> bool:
        """Whether the process is known to have ended; False for one of another host."""
        if not self.start or self.host != this_process().host:
            return False
        fields = _fields(self.pid)
        return fields is None or fields[_STATE] in "ZX" or fields[_START] != self.start

    def kill(self) -> None:
        """End the process if it is one of this host and still runs."""
        if self.start and self.host == this_process().host and not self.has_ended():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)


def this_process() -> Process:
    fields = _fields(os.getpid())
    return Process(_host(), os.getpid(), fields[_START] if fields else "")


def _host() -> str:
    """A name that two processes share if they see each other's numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{socket.gethostname()} {boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _fields(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
