"""A check fails if one number of the device's differs from the reference's."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp
from quadpy.runtime.device.current import Config, current_config
from quadpy.selftest.checks.language import array_of, edges
from quadpy.selftest.kernels import blocks, data, language
from quadpy.selftest.place import Place
from quadpy.selftest.table import table


def wrong(run, at):
    """``run``, which on the device under test changes one number of its argument ``at``, or of its result."""

    def changing(*args, **options):
        found = run(*args, **options)
        if not current_config().interpreted:
            array = found[0] if isinstance(found, tuple) else found if at is None else args[at]
            first = (0,) * array.ndim
            array[first] = array[first] == 0  # another number than before
        return found

    return changing


WHERE = {
    "language.integers": (language, "integer_operations", 2),
    "language.floats": (language, "float_operations", 2),
    "language.truth": (language, "truth", 2),
    "language.casting": (language, "casts", 13),
    "language.mathematics": (language, "functions", 1),
    "blocks.atomics-of-small-numbers": (blocks, "small_atomics", 1),
    "blocks.fences": (blocks, "last_block", 3),
    "data.structs": (data, "move", 1),
    "data.trees": (data, "grow", 3),
    "data.quantised": (data, "pack", 5),
    "data.parts": (data, "change_parts", 0),
    "algorithms.scans": (qp.algorithms, "inclusive_scan", None),
    "algorithms.sorts": (qp.algorithms, "sort", None),
    "algorithms.histograms": (qp.algorithms, "histogram", None),
}


@pytest.fixture
def place():
    return Place(Config(arch="cpu"), quick=True)


@pytest.mark.parametrize("name", WHERE)
def test_one_wrong_number_fails(name, place, monkeypatch):
    module, function, at = WHERE[name]
    monkeypatch.setattr(module, function, wrong(getattr(module, function), at))
    with pytest.raises(AssertionError, match="differ; at"):
        table()[name].run(place)


def test_a_wrong_tile_fails(place, monkeypatch):
    monkeypatch.setitem(blocks.factors_of, 16, wrong(blocks.factors_of[16], 0))
    with pytest.raises(AssertionError, match="differ; at"):
        table()["blocks.tiles"].run(place)


def test_a_wrong_field_of_a_class_fails(place, monkeypatch):
    class Wrong(data.Smoothing):
        def step(self):
            super().step()
            if not current_config().interpreted:
                self.after[0, 5] += 1.0

    monkeypatch.setattr(data, "Smoothing", Wrong)
    with pytest.raises(AssertionError, match="differ; at"):
        table()["data.classes"].run(place)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda last, old, owners: old.__setitem__(5, old[6]), "exchanged numbers"),
        (lambda last, old, owners: last.__setitem__(1, 5), "5 iterations won 4 elements"),
        (lambda last, old, owners: owners.__setitem__(2, 1), "4 iterations won 4 elements"),
    ],
)
def test_lost_exchanges_fail(place, monkeypatch, change, what):
    exchanges = blocks.exchanges

    def losing(x, *found):
        exchanges(x, *found)
        change(*found)

    monkeypatch.setattr(blocks, "exchanges", losing)
    with pytest.raises(AssertionError, match=what):
        table()["blocks.exchanges"].run(place)


def test_the_numbers_of_bf16_are_exact():
    np.testing.assert_array_equal(array_of("bf16", edges("bf16")).to_numpy(), edges("bf16"))
