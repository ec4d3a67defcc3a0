"""Programs with known hazards and programs without: what the checker says of each, on every device."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from dataclasses import dataclass, field

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
IN_WORDS = ("record an event after line", "free ", "let ", "move ")
"""How reports begin that no single line of code fixes."""
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


@dataclass
class Found:
    """The reports of one run of a program: of work on streams and graphs, and of iterations of a kernel."""

    certain: list = field(default_factory=list)
    possible: list = field(default_factory=list)
    races: list = field(default_factory=list)


def run(function):
    """Run a program under the checker, which collects."""
    found = Found()
    with warnings.catch_warnings(record=True) as warned, qp.hazards.check(collect=True) as reports:
        warnings.simplefilter("always")
        try:
            function(**{name: thing(name) for name in inspect.signature(function).parameters})
            qp.sync()
        except qp.HazardError as error:
            found.certain.append(error.hazard)
        except qp.KernelFault as error:
            found.races.append(error.hazard)
            with contextlib.suppress(qp.KernelFault):
                qp.sync()
    found.certain += [hazard for hazard in reports.certain if hazard not in found.certain]
    found.possible += reports.possible
    found.races += [warning.message.hazard for warning in warned if isinstance(warning.message, qp.hazards.RaceWarning)]
    return found


def lines_of(hazard):
    return hazard.first.line, hazard.second.line


def said(hazards):
    return "\n\n".join(map(str, hazards))


@pytest.fixture
def program(arch, request):
    program = request.param
    if arch == "recording" and WITH_VALUES in program.kinds:
        pytest.skip("kernels of the simulated device compute nothing")
    if arch != "cpu" and "race" in program.kinds:
        pytest.skip("the compiler warns of a kernel once, whatever the target")
    return program


@pytest.mark.parametrize("program", racy, indirect=True)
def test_a_hazard_is_found_with_its_two_lines(program):
    found = run(program.function)
    in_kernel = program.kinds[0] in IN_KERNELS  # whose two iterations have no order
    reports = found.races if in_kernel else found.certain
    named = {tuple(sorted(lines_of(hazard))) if in_kernel else lines_of(hazard) for hazard in reports}
    assert named == {program.lines}, said([*reports, *found.possible])
    for hazard in reports:
        assert hazard.certain
        assert hazard.kind in program.kinds or in_kernel, hazard
        for access in (hazard.first, hazard.second):
            assert access.file == program.function.__code__.co_filename
    assert [*found.certain, *found.races] == reports, said(found.certain)
    assert {lines_of(hazard) for hazard in found.possible} <= {program.lines}, said(found.possible)


@pytest.mark.parametrize("program", possible, indirect=True)
def test_what_only_the_data_know_is_possible_with_the_reason(program):
    found = run(program.function)
    assert not found.certain, said(found.certain)
    assert {lines_of(hazard) for hazard in found.possible} == {program.lines}, said(found.possible)
    for hazard in found.possible:
        assert hazard.kind in program.kinds
        assert program.reason in hazard.reason


@pytest.mark.parametrize("program", clean, indirect=True)
def test_programs_without_hazards_are_clean(program):
    found = run(program.function)
    assert not found.certain, said(found.certain)
    assert not found.possible, said(found.possible)
    assert not found.races, said(found.races)


@pytest.mark.parametrize("program", [*racy, *possible], indirect=True)
def test_the_fixed_program_is_clean(program):
    found = run(program.fixed)
    assert not found.certain, said(found.certain)
    assert not found.possible, said(found.possible)
    assert not found.races, said(found.races)


@pytest.mark.parametrize("program", [*racy, *possible], indirect=True)
def test_the_program_is_clean_when_it_is_fixed_as_the_report_says(arch, program):
    if arch == "recording" or program.kinds[0] in IN_KERNELS:
        pytest.skip("the reports are those of the CPU, or no line can fix the program")
    found = run(program.function)
    for hazard in (*found.certain, *found.possible)[:1]:
        if not hazard.fix.startswith(IN_WORDS):
            found = run(program.fixed_as_said(hazard.fix))
            assert not found.certain, said(found.certain)
            assert not found.possible, said(found.possible)


def test_the_corpus_is_large():
    assert {program.function.__module__ for program in PROGRAMS} == {module.__name__ for module in MODULES}
    assert len(racy) >= 80
    assert len(clean) >= 80
    for program in (*racy, *possible):
        assert all(program.values[0].lines)
