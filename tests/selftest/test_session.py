"""What is switched off, kept and said, by children that fail as each test wants."""

from __future__ import annotations

import io
import sys

import pytest

from quadpy import settings as settings_module
from quadpy.runtime.device.known import Known, known_in, store
from quadpy.selftest import report as reports, runner
from quadpy.selftest.progress import Progress
from quadpy.selftest.runner import Run
from quadpy.selftest.session import Session
from quadpy.selftest.table import Result, chosen

WORLD = {"quadpy": "0", "chip": "a chip", "backend": "amdgpu"}
CHILD = f"""
import json, os, sys
from pathlib import Path

def tell(event, **facts):
    print(json.dumps(dict(facts, event=event)), flush=True)

def end(name, status="passed"):
    tell("end", name=name, status=status, text="" if status == "passed" else "AssertionError: x", seconds=0.0, figures={{}})

quick, off = "--quick" in sys.argv, os.environ["QUADPY_WITHOUT"].split(",")
names = [name for name in sys.argv[1:] if "." in name]
first = not os.path.exists(FLAG)
Path(FLAG).touch()
OPEN
tell("device", world={WORLD!r}, features=[], name="a chip", arch="gfx942")
for name in names:
    tell("begin", name=name)
    once = not os.path.exists(FLAG + name)
    Path(FLAG + name).touch()
    end(name, "failed" if (FAILS) else "passed")
    AFTER
tell("done")
END
"""


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """``ran(fails, *checks)``: a session whose checks fail where the expression ``fails`` is true."""
    monkeypatch.setattr(runner, "_RESET", 0.0)
    count = iter(range(100))

    def run(fails="False", *only, quick=False, whole=True, opens="pass", after="pass", end="pass"):
        parts = {
            "OPEN": opens,
            "FAILS": fails,
            "AFTER": after,
            "END": end,
            "FLAG": repr(str(tmp_path / f"flag{next(count)}")),
        }
        program = CHILD
        for name, text in parts.items():
            program = program.replace(name, text)
        checks = chosen(quick=quick, only=only or ("graphs.captured", "graphs.large", "memory.pool"))
        session = Session(
            Run("amdgpu", quick=quick, command=[sys.executable, "-S", "-c", program]), checks, whole=whole
        )
        session.go(lambda _: None)
        return session

    return run


def statuses(session):
    return {name: result.status for name, result in session.results.items()}


def said(session):
    out = io.StringIO()
    Progress(out, 1).summary(reports.report_of(session), session)
    return out.getvalue()


def test_a_failure_by_chance_switches_nothing_off(ran):
    """Another program's work, or a busy machine: it passes when it runs again."""
    session = ran("once and name == 'graphs.captured'")
    assert (session.off, session.status, session.results["graphs.captured"].again) == ({}, 1, "passed")
    assert known_in(WORLD) == Known({}, None)
    assert "it passed when it ran again" in said(session)


def test_by_chance_and_for_good(ran):
    session = ran("name == 'graphs.explicit' and 'graphs' not in off or once and name == 'graphs.captured'", "graphs")
    assert list(session.off) == ["graphs"]
    assert session.off["graphs"].startswith("graphs.explicit failed")
    assert session.status == 1, "what failed by chance was not explained"


PARTS = "name == 'streams.parts' and not quick and 'parts' not in off"


@pytest.mark.parametrize(
    ("fails", "quick", "kept"), [("False", True, True), ("False", False, False), (PARTS, False, True)]
)
def test_what_is_off_comes_back_only_by_a_run_that_is_as_deep(ran, fails, quick, kept):
    before = ran(PARTS, "streams")
    assert (list(known_in(WORLD).off), before.status) == (["parts"], 3)
    session = ran(fails, "streams", quick=quick)
    assert ("parts" in known_in(WORLD).off) == ("parts" in session.off) == kept
    assert ("in an earlier run; --full asks again" in said(session)) == quick
    assert "earlier run" not in str(known_in(WORLD).off)


def test_what_is_off_stays_where_its_check_could_not_say(ran):
    store(WORLD, Known({"graphs": "before"}, None))
    session = ran("once and name == 'graphs.captured'", "graphs")
    assert (dict(known_in(WORLD).off), session.status) == ({"graphs": "before"}, 1)


GRAPHS = "name.startswith('graphs') and 'graphs' not in off"


@pytest.mark.parametrize(
    ("environ", "whole", "why"),
    [
        ({}, False, "only a whole run on a GPU stores it"),
        ({"QUADPY_CACHE": "0"}, True, "QUADPY_CACHE is 0"),
        ({"QUADPY_WITHOUT": "nothing"}, True, "QUADPY_WITHOUT is set"),
        ({"QUADPY_WITHOUT": "graphs"}, True, ""),
    ],
)
def test_quadpy_does_without_it_only_if_that_is_stored(ran, monkeypatch, environ, whole, why):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    settings_module.settings.cache_clear()
    session = ran(GRAPHS, "graphs.captured", whole=whole)
    text = said(session)
    assert (list(session.off), session.status) == (["graphs"], 1 if why else 3)
    assert why in text
    assert ("quadpy does without it." in text) == (not why)
    assert ("to do without it, set QUADPY_WITHOUT=graphs" in text) == bool(why)


def test_all_is_run_again_without_what_is_off(ran):
    """Else nobody has run the combination with which programs run."""
    session = ran("name == 'memory.pool' and 'pool' not in off or name == 'graphs.large' and 'pool' in off")
    assert (list(session.off), session.status) == (["pool"], 1)
    assert session.results["graphs.large"].without == "failed"
    assert "failed without pool: graphs.large" in said(session)


ENDS = "the process ended with signal 6 (SIGABRT)"


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ({"after": "name == 'memory.pool' and os.abort()"}, "memory.pool"),
        ({"after": "name == names[-1] and os.abort()"}, "memory.room"),
        ({"end": "os.abort()"}, "memory.room"),
    ],
)
def test_a_driver_that_ends_the_process_between_checks(ran, where, name):
    """ROCm does from a thread of its own: the check before is the one that crashed, and the rest runs."""
    checks = [f"memory.{each}" for each in ("copies", "pool", "room")]
    session = ran("False", *checks, **where)
    assert statuses(session) == {**dict.fromkeys(checks, "passed"), name: "crashed"}
    assert session.results[name].text == f"after it, {ENDS}"
    assert session.status == 1


def test_a_process_that_cannot_close_its_device_hangs(ran, monkeypatch):
    monkeypatch.setattr(runner, "_CLOSE", 0.5)
    session = ran("False", "memory.copies", end="import time; time.sleep(100)")
    assert session.results["memory.copies"].text == "after it, no answer within 0 s"


GONE = "tell('refused', text='HIP finds no device', hint='h')"


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        (f"if not first: {GONE}; sys.exit()", 2),
        (
            f"if os.path.exists(FLAG + '1') and not os.path.exists(FLAG + '2'): Path(FLAG + '2').touch(); {GONE}; sys.exit()",
            3,
        ),
    ],
)
def test_a_device_that_is_gone_after_a_crash(ran, gone, left):
    """It is tried once more; what is known then is in the report."""
    after = "if name == 'memory.pool' and first: Path(FLAG + '1').touch(); os.abort()"
    session = ran("False", "memory.copies", "memory.pool", "memory.room", opens=gone, after=after)
    assert len(session.results) == left
    assert session.results["memory.pool"].status == "crashed"
    report = reports.report_of(session)
    assert session.status == report["status"] == 1
    assert report["lost"] == ("HIP finds no device" if left == 2 else "")
    assert {row["status"] for row in report["checks"]} == {"passed", "crashed", *(["not run"] * (left == 2))}


def test_results_say_what_they_mean():
    assert Result("a", "failed", without="skipped").mended
    assert not Result("a", "passed", without="failed").mended
    assert [Result("a", status).unmended for status in ("passed", "skipped", "failed", "not run")] == [
        False,
        False,
        True,
        True,
    ]
    assert Result("a", "passed", without="hung").unmended
