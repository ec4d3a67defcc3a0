"""The parent's end of a child process: start it, ask it to measure, end it."""

from __future__ import annotations

import json
import select
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import final

import numpy as np

from peers.environment import BENCHMARKS, variables
from peers.workloads import Array

# A first call compiles; the slowest seen, numba's mpm88, takes seconds.
TIMEOUT = 180.0


class ChildFailure(RuntimeError):
    """A child crashed, hung, or raised; the message is its last line that says why."""


@dataclass(frozen=True)
class Task:
    """What one child is to run, and how."""

    system: str
    python: Path
    workload: str
    fast_math: bool
    threads: int
    quick: bool
    cache: Path
    cpu_time: bool = False

    def command(self, result: Path) -> list[str]:
        """The child's command line; it leaves its results in the file `result`."""
        words = [str(self.python), "-m", "peers.child", self.system, self.workload]
        words += ["--threads", str(self.threads), "--cache", str(self.cache), "--result", str(result)]
        words += ["--cpu-time"] * self.cpu_time
        return words + ["--fast-math"] * self.fast_math + ["--quick"] * self.quick


@final
class Child:
    """A running child. Use it as a context manager: it never outlives the block."""

    def __init__(self, task: Task) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="quadpy-benchmark-")
        self._result = Path(self._folder.name) / "result.npz"
        self._errors = Path(self._folder.name) / "errors.txt"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                task.command(self._result),
                cwd=BENCHMARKS,
                env=variables(task.system),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def results(self) -> dict[str, Array]:
        """The arrays that one run from fresh inputs left. Waits until the child has compiled, run and written them."""
        self._receive()
        with np.load(self._result) as arrays:
            return dict(arrays)

    def measure(self, budget: float) -> float:
        """Seconds per call, from about `budget` seconds of calls."""
        assert self._process.stdin
        self._process.stdin.write(f"{budget}\n")
        self._process.stdin.flush()
        return self.value()

    def value(self) -> float:
        """The seconds that the child reports next."""
        return float(str(self._receive()["value"]))

    def finish(self) -> None:
        """Lets the child end by itself, so that it can write its compiled kernels to its cache."""
        try:
            self._process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            raise ChildFailure(f"did not end within {TIMEOUT:.0f} s") from None

    def _receive(self) -> dict[str, object]:
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], TIMEOUT)
        if not ready:
            raise ChildFailure(f"no answer within {TIMEOUT:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise ChildFailure(self._last_words())
        reply: dict[str, object] = json.loads(line)
        return reply

    def _last_words(self) -> str:
        status = self._process.wait()
        # Below the line with the exception's name there may be an excerpt, which is indented.
        lines = [line for line in self._errors.read_text().splitlines() if line and not line[0].isspace()]
        return lines[-1] if lines else f"exit status {status}"
