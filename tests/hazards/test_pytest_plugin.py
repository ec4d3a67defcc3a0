"""The plugin for pytest, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

TESTS = """
import pytest
import quadpy as qp

qp.init(arch=qp.cpu)
F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)

@qp.kernel
def ramp(x: F32):
    for i in x:
        x[i] = i

def race():
    x = qp.ndarray(qp.f32, 8)
    ramp(x, stream=qp.create_stream())
    ramp(x, stream=qp.create_stream())

def test_racy():
    race()

def test_clean():
    ramp(qp.ndarray(qp.f32, 8))

def test_by_fixture(quadpy_hazards):
    race()

def test_that_expects_it(quadpy_hazards):
    race()
    assert quadpy_hazards.certain.pop().kind == "write after write"

@pytest.mark.quadpy_hazards(allow="its subject")
def test_allowed(quadpy_hazards):
    race()
    assert len(quadpy_hazards.certain) == 1

@pytest.mark.quadpy_hazards(off="it is timed")
def test_off():
    race()

@pytest.mark.quadpy_hazards(because="of nothing")
def test_wrong_marker(quadpy_hazards):
    pass

@pytest.mark.quadpy_hazards(allow="")
def test_no_reason(quadpy_hazards):
    pass
"""


OTHERS = """
import sys

def test_of_a_project_that_does_not_use_quadpy(pytestconfig):
    assert not pytestconfig.getoption("--quadpy-hazards")
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert not loaded & {"quadpy", "llvmlite"}
    assert sum(name.startswith("quadpy") for name in sys.modules) == 1

def test_no_fixture_of_it_runs(request):
    assert not [name for name in request.fixturenames if "quadpy" in name]
"""


@pytest.fixture
def outcome(tmp_path):
    file = tmp_path / "test_streams.py"

    def run(*flags, tests=TESTS):
        file.write_text(textwrap.dedent(tests))
        command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:randomly", "-p", "no:cacheprovider"]
        loaded = ["-p", "quadpy_pytest"] if not _installed() else []
        done = subprocess.run(
            [*command, *loaded, *flags, str(file)], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        found = {}
        for line in done.stdout.splitlines():
            words = line.split()
            if words and words[0] in ("PASSED", "FAILED", "ERROR") and "::" in line:
                found.setdefault(words[1].partition("::")[2], set()).add(words[0])
        return found, done.stdout

    return run


def _installed():
    from importlib.metadata import entry_points

    return any(point.name == "quadpy" for point in entry_points(group="pytest11"))


def test_the_flag_checks_every_test(outcome):
    found, text = outcome("--quadpy-hazards")
    assert found["test_clean"] == {"PASSED"}
    assert "ERROR" in found["test_racy"]
    assert "write after write of x: nothing orders the two accesses" in text
    assert found["test_allowed"] == found["test_off"] == {"PASSED"}


def test_the_fixture_checks_one(outcome):
    found, _ = outcome()
    assert found["test_racy"] == {"PASSED"}
    assert "ERROR" in found["test_by_fixture"]
    assert found["test_that_expects_it"] == {"PASSED"}


def test_a_marker_needs_a_reason(outcome):
    found, text = outcome("--strict-markers")
    assert found["test_wrong_marker"] == found["test_no_reason"] == {"ERROR"}
    assert "write @pytest.mark.quadpy_hazards(allow='why')" in text
    assert "takes the reason as a string" in text


def test_it_costs_nothing_where_quadpy_is_merely_installed(outcome):
    """Neither quadpy nor what it imports is loaded before a test that is checked."""
    found, text = outcome(tests=OTHERS)
    assert list(found.values()) == [{"PASSED"}, {"PASSED"}], text
