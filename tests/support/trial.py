"""A change that is tried in a copy of quadpy: its size is counted, and a program runs with it."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import quadpy

__all__ = ["Trial"]

_ROOT = Path(quadpy.__file__).parent


@dataclass
class Trial:
    """A copy of quadpy in ``folder``; ``lines`` counts the lines touched, by file."""

    folder: Path
    lines: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shutil.copytree(_ROOT, self.folder / "quadpy", ignore=shutil.ignore_patterns("__pycache__"))

    def add(self, file: str, text: str, before: str = "", indent: int = 0) -> None:
        """Insert ``text`` into ``file`` before the only line that begins with ``before``; at its end without one."""
        path = self.folder / "quadpy" / file
        old = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        at = len(old)
        if before:
            (at,) = [k for k, line in enumerate(old) if line.startswith(before)]
        added = textwrap.indent(textwrap.dedent(text).lstrip("\n"), " " * indent)
        new = [*old[:at], *added.splitlines(keepends=True), *old[at:]]
        self._write(path, old, new)

    def replace(self, file: str, before: str, after: str) -> None:
        """Replace the only occurrence of ``before`` in ``file``."""
        path = self.folder / "quadpy" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, (file, before, text.count(before))
        self._write(path, text.splitlines(keepends=True), text.replace(before, after).splitlines(keepends=True))

    def run(self, program: str) -> str:
        """What ``program`` prints with the changed quadpy."""
        script = self.folder / "program.py"
        script.write_text(textwrap.dedent(program), encoding="utf-8")
        return self._python(str(script))

    def command(self, *words: str) -> str:
        """What the command line of the changed quadpy prints."""
        return self._python("-m", "quadpy", *words)

    def _python(self, *words: str) -> str:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder), str(Path(__file__).parent)])}
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def _write(self, path: Path, old: list[str], new: list[str]) -> None:
        touched = sum(line[0] in "+-" for line in list(difflib.unified_diff(old, new))[2:])
        name = path.relative_to(self.folder).as_posix()
        self.lines[name] = self.lines.get(name, 0) + touched
        path.write_text("".join(new), encoding="utf-8")
