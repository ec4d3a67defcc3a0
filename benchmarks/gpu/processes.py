"""The parent's end of a child process: start it, ask it, end it, and start it anew after a failure."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gpu.options import Options

BENCHMARKS = Path(__file__).resolve().parent.parent
START, PREPARE, MEASURE = 120.0, 90.0, 60.0  # seconds that an answer may take


class ChildFailure(RuntimeError):
    """A child crashed, hung, or raised; `absent`: its system is not there."""

    def __init__(self, message: str, *, absent: bool = False) -> None:
        super().__init__(message)
        self.absent = absent


@dataclass(frozen=True)
class Place:
    """Where children find the compiled CUDA C, and leave what they compile.

    `path` is an import path for quadpy and Quadrants alone: packages that the other systems have in other versions.
    """

    cuda_c: Path
    cache: Path
    path: str = ""

    def variables(self, system: str) -> dict[str, str]:
        """The environment of a child: this checkout's quadpy, and none of the user's settings."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("QUADPY_", "QD_", "NUMBA_"))}
        own = self.path if system in ("quadpy", "quadpy fast", "Quadrants") else ""
        paths = filter(None, [str(BENCHMARKS.parent), own, os.environ.get("PYTHONPATH")])
        caches = ("QUADPY_CACHE_DIR", "TRITON_CACHE_DIR", "NUMBA_CACHE_DIR", "CUDA_CACHE_PATH")
        return {
            **kept,
            **{name: str(self.cache / name.split("_")[0].lower()) for name in caches},
            "BENCHMARK_LANGUAGE": "quadrants" if system == "Quadrants" else "quadpy",
            "BENCHMARK_CUDA_C": str(self.cuda_c),
            "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0",
            "PYTHONPATH": os.pathsep.join(paths),
        }


class Child:
    """A running child.  `ask` may be split, so that several children work at once."""

    def __init__(self, options: Options, place: Place) -> None:
        self.options, self.place = options, place
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._pending = b""

    def start(self) -> None:
        """Starts the process; its first answer says whether its system is there."""
        self.close()
        log = self.place.cache / f"{self.options.system.replace(' ', '-')}.log"
        self._errors = log.open("w+b")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpu.child", *self.options.command()],
            cwd=BENCHMARKS,
            env=self.place.variables(self.options.system),
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
        answer = json.loads(self._line(timeout))
        if answer.get("raised") or "missing" in answer:
            raise ChildFailure(answer["problem"], absent=answer.get("missing", False))
        return dict(answer)

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
