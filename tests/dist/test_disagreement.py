"""Ranks that make different calls are told so, by each other's messages or the next call of all ranks."""

import re
from pathlib import Path

import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.errors import RanksDisagreeError

cells = qp.types.ndarray(qp.f32, ndim=2)


@qp.kernel
def shift(u: cells, v: cells):
    for i, j in u:
        if i > 0:
            v[i, j] = u[i - 1, j]


@qp.kernel
def add(u: cells, x: qp.f32):
    for i, j in u:
        u[i, j] += x


@qp.kernel
def total(u: cells) -> qp.f32:
    found = 0.0
    for i, j in u:
        found += u[i, j]
    return found


def swapped(u, v, first):
    shift(*((u, v) if first else (v, u)))
    u.to_numpy()


def skipped(u, v, first):
    if first:
        shift(u, v)
    u.to_numpy()


def skipped_without_messages(u, v, first):
    shift(u, v)
    if first:
        add(u, 1.0)
    total(v)


def once_more(u, v, first):
    for _ in range(4 - first):
        shift(u, v)
        shift(v, u)
    total(u)


def another_order(u, v, first):
    for kernel in (shift, add) if first else (add, shift):
        kernel(u, v if kernel is shift else 1.0)
    u.fill(0)


def another_array(u, v, first):
    total(u if first else v)


def another_array_of_the_host(u, v, first):
    add(u if first else v, 1.0)
    u[3, 4]


def launched_once_more(u, v, first):
    step = qp.dist.capture(lambda: shift(u, v))
    for _ in range(2 - first):
        step.launch()
    u.to_numpy()


MESSAGES = {
    swapped: [
        "call 1 was shift(array 1, array 2) at HERE:LINE on rank 0; shift(array 2, array 1) at HERE:LINE on rank 1"
    ],
    skipped: ["before to_numpy of", "call 1 was shift(array 1, array 2) at HERE:LINE on rank 0; none on rank 1"],
    skipped_without_messages: ["call 2 was add(array 1) at HERE:LINE on rank 0; total(array 2) at HERE:LINE on rank 1"],
    once_more: ["call 7 was total(array 1) at HERE:LINE on rank 0; shift(array 1, array 2) at HERE:LINE on rank 1"],
    another_order: ["call 1 was shift(array 1, array 2) at HERE:LINE on rank 0; add(array 1) at HERE:LINE on rank 1"],
    another_array: ["call 1 was total(array 1) at HERE:LINE on rank 0; total(array 2) at HERE:LINE on rank 1"],
    another_array_of_the_host: ["call 1 was add(array 1) at HERE:LINE on rank 0; add(array 2) at HERE:LINE on rank 1"],
    launched_once_more: [
        "rank 0 in share",
        "rank 1 in an exchange for call 4, a launch of the step that was captured at call 2",
    ],
}


def lines_named(message):
    """``message`` with LINE in place of lines, and the lines of this file that it names."""
    here = Path(__file__).name
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    named = [lines[int(number) - 1] for number in re.findall(rf"{here}:(\d+)", message)]
    return re.sub(rf"{here}:\d+", "HERE:LINE", message), named


def run(program):
    def ranks():
        grid = qp.dist.Grid((12, 7))
        program(grid.ndarray(qp.f32), grid.ndarray(qp.f32), qp.dist.world().rank == 0)

    run_ranks(2, ranks, timeout=20)


@pytest.mark.parametrize("program", MESSAGES, ids=lambda program: program.__name__)
def test_different_calls(program):
    with pytest.raises(RanksDisagreeError) as caught:
        run(program)
    message, named = lines_named(str(caught.value))
    for part in MESSAGES[program]:
        assert part in message
    assert all(re.search(r"shift|add|total|kernel", line) for line in named)


@pytest.mark.parametrize("program", MESSAGES, ids=lambda program: program.__name__)
def test_all_ranks_tell_one_story(program):
    told = [None] * 2

    def ranks():
        grid = qp.dist.Grid((12, 7))
        rank = qp.dist.world().rank
        try:
            program(grid.ndarray(qp.f32), grid.ndarray(qp.f32), rank == 0)
        except RanksDisagreeError as error:
            told[rank] = error.message
            raise

    with pytest.raises(RanksDisagreeError):
        run_ranks(2, ranks, timeout=20)
    assert told[0] is not None
    assert told[0] == told[1]


@pytest.mark.usefixtures("debug")
@pytest.mark.parametrize("program", MESSAGES, ids=lambda program: program.__name__)
def test_debug_finds_the_first_that_differs(program):
    with pytest.raises(RanksDisagreeError, match=r"ranks disagree about|have made different calls"):
        run(program)
