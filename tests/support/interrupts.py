"""Ctrl-C at any place of quadpy's own Python code, one place in each run.

``places_of`` lists the instructions that a program passes; ``interrupt`` runs it and raises before one of them.  Places at
which CPython never looks for a signal are left out: the call of ``__exit__`` at the end of a ``with`` block, the return
of a function, and the handler at the end of a generator, which runs when one is dropped.
"""

from __future__ import annotations

import dis
import functools
import random
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import quadpy

__all__ = ["COMPILER", "Interrupt", "Place", "interrupt", "meanwhile", "places_of", "sample"]

_ROOT = str(Path(quadpy.__file__).parent)
_PARTS = ("runtime", "graph", "jit")
COMPILER = ("jit", "lang", "ir", "codegen")


class Interrupt(KeyboardInterrupt):
    """Is raised in place of Ctrl-C."""


class Place(NamedTuple):
    """The instruction at ``offset`` of ``code``, when a run reaches it for the ``turn``-th time, counted from 1."""

    code: CodeType
    offset: int
    turn: int = 1

    def __str__(self) -> str:
        where = self.code.co_filename.removeprefix(_ROOT + "/")
        lines = [line for start, end, line in self.code.co_lines() if line and start <= self.offset < end]
        name = self.code.co_name
        return f"{where}:{lines[0] if lines else '?'} {name}, instruction {self.offset}, time {self.turn}"


def places_of(program: Callable[[], object], parts: tuple[str, ...] = _PARTS) -> list[Place]:
    """Every place in these packages that one run of ``program`` passes: the first time, and the last."""
    seen: Counter[tuple[CodeType, int]] = Counter()

    def look(frame: FrameType) -> None:
        if frame.f_lasti not in _left_out(frame.f_code):
            seen[frame.f_code, frame.f_lasti] += 1

    _run(program, lambda code: _is_ours(code.co_filename, parts), look)
    return [Place(code, at, turn) for (code, at), turns in seen.items() for turn in sorted({1, turns})]


def interrupt(program: Callable[[], object], place: Place) -> bool:
    """Run ``program`` and raise at ``place``; True if it reached the place and the exception came out."""
    left = place.turn

    def look(frame: FrameType) -> None:
        nonlocal left
        if frame.f_lasti == place.offset:
            left -= 1
            if not left:
                raise Interrupt

    try:
        _run(program, lambda code: code is place.code, look)
    except Interrupt:
        return True
    except quadpy.QuadpyError as error:  # without its traceback, for the reason below
        raise error.with_traceback(None) from None
    except Exception as error:  # noqa: BLE001 - as text: pytest cannot show instructions that have no line
        text = "".join(traceback.format_exception(error))
        raise AssertionError(f"another error came out of an interrupt at {place}:\n{text}") from None
    return False


def meanwhile(program: Callable[[], object], place: Place, other: Callable[[], object]) -> None:
    """Run ``program``, and ``other`` on another thread before ``place``; ``program`` waits for it."""
    left = place.turn

    def look(frame: FrameType) -> None:
        nonlocal left
        if frame.f_lasti == place.offset:
            left -= 1
            if not left:
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()

    _run(program, lambda code: code is place.code, look)


def sample(places: list[Place], count: int, seed: int) -> list[Place]:
    """``count`` of ``places``, at random; all of them for 0."""
    return random.Random(seed).sample(places, count) if 0 < count < len(places) else places


def _run(program: Callable[[], object], looks: Callable[[CodeType], bool], look: Callable[[FrameType], None]) -> None:
    """Run ``program``; ``look`` is called before each instruction of code that ``looks`` accepts, with its frame."""

    def inside(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            look(frame)
        return inside

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        if not looks(frame.f_code):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return inside

    before = sys.gettrace()
    # Python 3.12 looks at this attribute, of any frame, when tracing starts; one that is set later may have no effect.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(enter)
    try:
        program()
    finally:
        sys.settrace(before)


@functools.cache
def _is_ours(file: str, parts: tuple[str, ...]) -> bool:
    return file.startswith(tuple(f"{_ROOT}/{part}/" for part in parts))


@functools.cache
def _left_out(code: CodeType) -> frozenset[int]:
    """The offsets of returns, of what calls ``__exit__(None, None, None)``, and of a generator's last handler."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "PRECALL", "PUSH_NULL")]
    found = {step.offset for step in steps if step.opname.startswith("RETURN")}
    if len(steps) > 1 and "STOPITERATION_ERROR" in steps[-2].argrepr:  # from Python 3.12 on
        found |= {step.offset for step in steps[-2:]}
    for k in range(len(steps) - 3):
        first, second, third, call = steps[k : k + 4]
        alike = all(step.opname == "DUP_TOP" or _is_none(step) for step in (second, third))
        if _is_none(first) and alike and call.opname.startswith("CALL"):
            found |= set(range(first.offset, call.offset + 1, 2))
    return frozenset(found)


def _is_none(step: dis.Instruction) -> bool:
    return step.opname == "LOAD_CONST" and step.argval is None
