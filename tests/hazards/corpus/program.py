"""What a program of the corpus is: its function, what is expected of it, and its fixed form.

A racy program marks the two lines that a report must name with ``# first`` and ``# second``.  The comment ``# fixed by:
line`` stands where a line is missing, and ``# fixed to: line`` says what the line after it must be: the fixed program
has both, on the same lines.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import linecache
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import quadpy as qp

PROGRAMS = []
"""All programs, in the order of their definition."""
_MENDED = re.compile(r"^(?P<indent> *)# fixed (?P<how>by|to): (?P<code>.*)$")
_numbers = itertools.count()


@dataclass(frozen=True)
class Program:
    """``verdict`` is racy, possible or clean; ``kinds`` has the kinds of hazard of which the report has one."""

    function: Callable[..., None]
    verdict: str
    kinds: tuple[str, ...] = ()
    reason: str = ""

    @property
    def name(self):
        return f"{self.function.__module__.rpartition('.')[2]}-{self.function.__name__}"

    @property
    def lines(self):
        """The lines marked ``# first`` and ``# second``."""
        return self._line_of("first"), self._line_of("second")

    def _line_of(self, mark):
        text, start = self._text()
        found = [start + k for k, line in enumerate(text) if re.search(rf"# {mark}\b", line)]
        both = [start + k for k, line in enumerate(text) if re.search(r"# first and second\b", line)]
        (line,) = found or both
        return line

    @functools.cached_property
    def fixed(self):
        """The function with the lines that fix it."""
        return self._with_lines(fix(self._text()[0]))

    def fixed_as_said(self, how):
        """The function with what a report says: a line before the second access, or an edge of its node."""
        lines, start = self._text()
        k = self.lines[1] - start
        if edge := re.match(r"add '(?P<first>.*)' to the deps of '.*'", how):
            lines[k] = lines[k].replace("deps=[", f"deps=['{edge['first']}', ")
        else:
            lines[k] = re.match(" *", lines[k])[0] + f"{how}; {lines[k].strip()}"
        return self._with_lines(lines)

    def _text(self):
        text, start = inspect.getsourcelines(self.function)
        return [line.rstrip("\n") for line in text], start

    def _with_lines(self, lines):
        """The function of other ``lines``, which have the numbers of the old ones."""
        source = "\n" * (self._text()[1] - 1) + textwrap.dedent("\n".join(lines)) + "\n"
        file = f"<{self.name}, fixed, {next(_numbers)}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        names = {**self.function.__globals__, "qp": qp, "racy": _plain, "possible": _plain}
        exec(compile(source, file, "exec"), names)
        return names[self.function.__name__]


def fix(lines):
    """``lines`` with what their comments say; the number of lines stays."""
    found = []
    replaced = False
    for line in lines:
        if replaced:
            line = ""
        given = _MENDED.match(line)
        replaced = given is not None and given["how"] == "to"
        found.append(line if given is None else given["indent"] + given["code"])
    assert found != lines, "nothing fixes this program"
    return found


def _plain(*kinds, **options):
    return lambda function: function


def racy(*kinds):
    """A program with one certain hazard, of one of ``kinds``."""

    def register(function):
        PROGRAMS.append(Program(function, "racy", kinds))
        return function

    return register


def possible(*kinds, reason):
    """A program of which the checker cannot know whether its accesses meet; it must say why, with the word ``reason``."""

    def register(function):
        PROGRAMS.append(Program(function, "possible", kinds, reason))
        return function

    return register


def clean(function):
    """A program without hazards."""
    PROGRAMS.append(Program(function, "clean"))
    return function
