"""Kernels at random with a print after each assignment: the same bits as without, and the same text on all threads."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
from random_kernels import program_of
from random_programs import differing

EACH = 10


def pytest_generate_tests(metafunc):
    if "first" in metafunc.fixturenames:
        metafunc.parametrize("first", range(0, metafunc.config.getoption("--random-kernels"), EACH))


def with_prints(text):
    """``text`` that prints each name that it assigns, and the places that it passes."""
    return re.sub(r"(?m)^( +)([uvwn]\d+) [-+*]?= .*$", r'\g<0>\n\1print("\2", \2, f"{\2!r:>9}")', text)


def ran(program, text, load):
    """What ``program`` leaves in its arrays, and what it prints."""
    out = io.StringIO()
    module = load(text)
    with contextlib.redirect_stdout(out):
        found = program.called(module)
    return found, out.getvalue()


@pytest.mark.timeout(900)
def test_prints_change_nothing_and_come_in_order(init, load, arch, first):
    printing = 0
    for seed in range(first, first + EACH):
        program = program_of(seed, exact=False)
        text = with_prints(program.text)
        options = {"random_seed": 7, "print_buffer": 64 << 20}
        init(**options)
        silent, nothing = ran(program, program.text, load)
        assert nothing == ""
        texts = []
        for threads in (1, 3) if arch == "cpu" else (1,):
            init(cpu_max_num_threads=threads, **options)
            found, lines = ran(program, text, load)
            assert differing(found, silent) is None, seed
            texts.append(lines)
        if arch != "cpu":
            init(arch="cpu", **options)
            texts.append(ran(program, text, load)[1])
            init(**options)
        assert texts[0] == texts[1], seed
        printing += texts[0] != ""
    assert printing > EACH // 3
