"""The parent's end of a child process: it starts it, sends requests, ends it, and starts it again after a failure."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

BENCHMARKS = Path(__file__).resolve().parent.parent
START, PREPARE, MEASURE = 120.0, 180.0, 180.0  # seconds that an answer may take


class ChildFailure(RuntimeError):
    """A child crashed, hung, or raised; the message is its last line that says why."""


@dataclass(frozen=True)
class Options:
    """What a child is told: its system, the modules that have the system and the workloads, and how to run them.

    `package` is what the first row of a table, the import, imports.  `threads` and `cpu_time` concern the CPU alone.
    """

    system: str
    module: str
    workloads: str
    arch: str
    scale: str
    cache: str
    package: str = ""
    fast_math: bool = False
    threads: int = 0
    cpu_time: bool = False


@dataclass(frozen=True)
class Command:
    """How to start a child: its interpreter, what it is told, and its environment on top of the parent's."""

    options: Options
    variables: Mapping[str, str]
    python: Path = Path(sys.executable)
    paths: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ("QUADPY_", "QD_", "TI_", "NUMBA_", "OMP_", "PYTHONDONTWRITEBYTECODE")
    """Prefixes of the user's settings that no child sees."""

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(self.dropped)}
        return {**kept, **self.variables, "PYTHONPATH": os.pathsep.join(filter(None, self.paths))}


@dataclass
class Child:
    """A child process.  `ask` may be split, so that several children work at once."""

    command: Command
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _errors: IO[bytes] | None = field(default=None, init=False)
    _pending: bytes = field(default=b"", init=False)

    def start(self) -> None:
        """Starts the process; its first answer says whether its system is available."""
        self.close()
        options = self.command.options
        Path(options.cache).mkdir(parents=True, exist_ok=True)
        self._errors = (Path(options.cache) / f"{options.system.replace(' ', '-')}.log").open("w+b")
        self._process = subprocess.Popen(
            [str(self.command.python), "-m", "harness.child", json.dumps(asdict(options))],
            cwd=BENCHMARKS,
            env=self.command.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._pending = b""

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None
        if self._errors:
            self._errors.close()
            self._errors = None

    def finish(self) -> None:
        """Lets the process end by itself, so that it can write what it has compiled."""
        if self._process:
            try:
                self._process.communicate(timeout=MEASURE)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self.close()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send(self, do: str, **request: Any) -> None:
        assert self._process
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps({"do": do, **request}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise ChildFailure(self._last_words()) from error

    def receive(self, timeout: float) -> dict[str, Any]:
        """The next answer.

        Raises:
            ChildFailure: the child raised or ended, or no answer came; in the latter cases it is stopped.
        """
        answer: dict[str, Any] = json.loads(self._line(timeout))
        if "raised" in answer:
            raise ChildFailure(answer["raised"])
        return answer

    def ask(self, do: str, timeout: float, **request: Any) -> dict[str, Any]:
        self.send(do, **request)
        return self.receive(timeout)

    def _line(self, timeout: float) -> bytes:
        assert self._process
        assert self._process.stdout
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._process.stdout], [], [], timeout)
            part = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not part:
                reason = self._last_words() if ready else f"no answer within {timeout:.0f} s"
                self.close()
                raise ChildFailure(reason)
            self._pending += part
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _last_words(self) -> str:
        assert self._process
        assert self._errors
        status = self._process.wait(10)
        self._errors.seek(0)
        # Below the line with the exception's name there may be an excerpt, which is indented.
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line[:1].strip()]
        return f"{lines[-1] if lines else 'no message'} (exit status {status})"
