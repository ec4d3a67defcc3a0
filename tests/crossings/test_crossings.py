"""Programs that cross features, by fixed numbers, and the generator's own promises.

``python tests/crossings/random_crossings.py --count 10000 --table`` runs more of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations

import pytest
from backends import backends
from crossed_programs import APART, FEATURES, PAIRS, features_of, is_possible, program_of
from random_crossings import alone, run, wrong_with

import quadpy as qp

EACH = 12
"""Programs of one test."""


@pytest.fixture(autouse=True)
def defaults():
    """A program chooses its own."""
    yield
    qp.init(arch=qp.cpu)


@pytest.mark.parametrize("arch", backends())
@pytest.mark.parametrize("first", [0, 77, 154])
def test_programs_compute_what_python_does(arch, first):
    said = []
    failed, _ = run(range(first, first + EACH), arch, say=said.append)
    assert not failed, "\n\n".join(said)


def test_every_pair_has_programs_or_a_reason():
    """The numbers reach each pair in turn, within as many programs as there are pairs."""
    reached = {pair for seed in range(len(PAIRS)) for pair in combinations(features_of(seed), 2)}
    assert reached == set(PAIRS)
    assert {frozenset(pair) for pair in combinations(FEATURES, 2)} - set(map(frozenset, PAIRS)) == set(APART)
    assert all(len(pair) == 2 and pair <= set(FEATURES) and len(why.split()) > 3 for pair, why in APART.items())


NEEDED = {
    "debug": ("debug=True",), "hazards": ("qp.hazards.check(",), "profile": ("qp.profile(",), "ranks": ("run_ranks(",),
    "streams": ("qp.create_stream(",), "sections": ("parallel():",), "graphs": ("graph", "dist.capture("),
    "replay": ("qp.graph.replay(",), "Ctrl-C": ("interrupted(",), "fork": ("forked(",), "sparse": ("qp.root.",),
    "dlpack": ("from_dlpack(",), "strided": ("strided(",), "layouts": ("qp.field(", "grid.field(", "grid.ndarray("),
}  # fmt: skip


@pytest.mark.parametrize("feature", FEATURES)
def test_each_pair_makes_a_program(feature):
    """Its text is Python, has what its features need, and is the same for the same number."""
    for pair in (pair for pair in PAIRS if feature in pair):
        features = features_of(7, pair)
        assert set(pair) <= set(features)
        assert is_possible(features)
        program = program_of(7, features)
        compile(program.text, "program", "exec")
        assert program_of(7, features).text == program.text
        for each in filter(NEEDED.get, features):
            assert any(text in program.text for text in NEEDED[each]), (features, each)


def test_a_difference_is_a_failure_that_is_shown_alone(tmp_path):
    """Where the numbers that Python starts from are not the program's, the program fails, and so does its file."""
    program = program_of(3, ("structs", "hazards", "profile"))
    assert wrong_with(program, tmp_path) is None
    for x in program.arrays[-1].start.values():
        x += 1
    assert "w0" in wrong_with(program, tmp_path)
    file = tmp_path / "alone.py"
    file.write_text(alone(program, "cpu"), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, check=False)
    assert child.returncode
    assert "AssertionError: w0" in child.stderr
