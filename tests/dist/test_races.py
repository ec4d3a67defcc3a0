"""Loops over a grid that update an array in place: a warning where they certainly race, whatever the number of ranks."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.errors import RaceWarning
from quadpy.jit import race_warnings

A1, A2 = (qp.types.ndarray(ndim=n) for n in (1, 2))
RANKS = (1, 2, 3, 4)


@pytest.fixture(autouse=True)
def _each_test_warns_again(monkeypatch: pytest.MonkeyPatch):
    qp.init(arch=qp.cpu)
    monkeypatch.setattr(race_warnings, "_warned", set())


@qp.kernel
def smooth(u: A1):
    for i in u:
        if i > 0:
            u[i] = u[i - 1] + 1.0


@qp.kernel
def turn(u: A1):
    for i in u:
        u[i] = u[(i + 1) % u.shape[0]]


@qp.kernel
def by_argument(u: A1, d: qp.i32):
    for i in u:
        if i >= d:
            u[i] = u[i - d] + 1.0


@qp.kernel
def of_vectors(u: A2):
    for i, j in u:
        if 0 < i < u.shape[0] - 1:
            u[i, j].x = 0.5 * (u[i - 1, j].x + u[i + 1, j].x)


@qp.kernel
def own(u: A1, d: qp.i32):
    for i in u:
        u[i] = 2.0 * u[i]


@qp.kernel
def red_black(u: A1, colour: qp.i32):
    for i in u:
        if i % 2 == colour and 0 < i < u.shape[0] - 1:
            u[i] = 0.5 * (u[i - 1] + u[i + 1])


@qp.kernel
def other_component(u: A2):
    for i, j in u:
        if i > 0:
            u[i, j].x = u[i - 1, j].y


def call(kernel: Any, *numbers: int) -> None:
    if kernel in (of_vectors, other_component):
        kernel(qp.dist.Grid((12, 5)).ndarray(qp.math.vec2))
    else:
        kernel(qp.dist.Grid((12,), periodic=True).ndarray(qp.f32), *numbers)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    "call_of", [(smooth,), (turn,), (by_argument, 1), (of_vectors,)], ids=lambda each: each[0].__name__
)
def test_a_certain_race_is_a_warning_at_its_line(call_of: tuple[Any, ...], ranks: int):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_ranks(ranks, lambda: call(*call_of))
    (found,) = [each for each in caught if each.category is RaceWarning]
    assert found.filename == __file__
    assert "u[i" in Path(__file__).read_text(encoding="utf-8").splitlines()[found.lineno - 1]
    assert "have no order" in str(found.message)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    "call_of", [(by_argument, 0), (own, 1), (red_black, 0), (red_black, 1), (other_component,)],
    ids=lambda each: "_".join(str(getattr(part, "__name__", part)) for part in each),
)  # fmt: skip
def test_no_warning_without_a_race(call_of: tuple[Any, ...], ranks: int):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RaceWarning)
        run_ranks(ranks, lambda: call(*call_of))


def test_an_allowed_race_is_no_warning():
    @qp.kernel
    def chaotic(u: A1):
        with qp.hazards.allow(u, reason="converges in any order"):
            for i in u:
                if i > 0:
                    u[i] = 0.5 * u[i - 1]

    with warnings.catch_warnings():
        warnings.simplefilter("error", RaceWarning)
        run_ranks(2, lambda: call(chaotic))
