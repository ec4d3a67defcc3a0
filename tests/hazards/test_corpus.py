"""Programs with known hazards and programs without: what the checker says of each, on every device."""

from __future__ import annotations

import inspect

import pytest

import quadpy as qp

from .corpus import (
    atomics,
    captures,
    copies,
    events,
    foreign,
    graphs,
    inkernel,
    memory,
    ranges,
    sections,
    streams,
    threads,
)
from .corpus.program import PROGRAMS

MODULES = (atomics, captures, copies, events, foreign, graphs, inkernel, memory, ranges, sections, streams, threads)
IN_KERNELS = ("race", "race at run time")
WITH_VALUES = "race at run time"
"""These need kernels that compute."""

racy, possible, clean = (
    [pytest.param(program, id=program.name) for program in PROGRAMS if program.verdict == verdict]
    for verdict in ("racy", "possible", "clean")
)
NUMBERS = {"x": 1, "y": 1, "z": 1, "u": 2, "v": 2, "w": 2}
INTEGERS = ("c", "d", "index")
STREAMS = ("s1", "s2", "s3")
EVENTS = ("ready", "done", "other")


def thing(name):
    """What a program gets for its parameter ``name``."""
    if name in NUMBERS:
        return qp.ndarray(qp.f32, 64 if NUMBERS[name] == 1 else (16, 16))
    if name in INTEGERS:
        return qp.ndarray(qp.i32, 64)
    if name in STREAMS:
        return qp.create_stream()
    if name in EVENTS:
        return qp.create_event()
    assert name == "streams", name
    with qp.create_stream() as one:
        return one.device.streams


def run(function):
    """Run a program."""
    function(**{name: thing(name) for name in inspect.signature(function).parameters})
    qp.sync()


def test_the_corpus_is_large():
    assert len(racy) >= 80
    assert len(clean) >= 80
    for program in (*racy, *possible):
        first, second = program.values[0].lines
        assert first
        assert second


@pytest.mark.parametrize("program", [*racy, *possible])
def test_each_program_runs_as_it_is_and_mended(arch, program):
    if arch == "recording" and WITH_VALUES in program.kinds:
        return
    run(program.function)
    run(program.mended)
