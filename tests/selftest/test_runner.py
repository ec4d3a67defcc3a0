"""Children that hang, crash or say too little; Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quadpy.errors import NoDeviceError
from quadpy.selftest.runner import Run
from quadpy.selftest.session import Session
from quadpy.selftest.table import Check, Result

DEVICE = {"event": "device", "world": {}, "features": ["host"]}
PROGRAM = f"""
import json, os, sys, time

def tell(**event):
    print(json.dumps(event), flush=True)

def end(name):
    tell(event="end", name=name, status="passed", text="", seconds=0.0, figures={{}}, without="")

tell(**{DEVICE!r})
for name in sys.argv[1:]:
    if "." not in name:
        continue
    tell(event="begin", name=name)
    what = name.partition(".")[2]
    if what.startswith("hang"):
        time.sleep(1000)
    if what.startswith("abort"):
        sys.stderr.write("before the end\\n")
        sys.stderr.flush()
        os.abort()
    if what.startswith("leave"):
        sys.exit(7)
    if what.startswith("torn"):
        sys.stdout.write('{{"event": "end", "na')
        sys.exit(0)
    end(name)
tell(event="done")
if "last" in name:
    time.sleep(1000)
"""


def check(name, *, speaks_for="a part", seconds=30.0):
    return Check(name, "", speaks_for, "", True, seconds, lambda place: None)


def run(*checks, program=PROGRAM, **options):
    runner = Run("none", command=[sys.executable, "-c", program], **options)
    return [(result.name, result.status, result.text) for result in runner.results(checks)]


def test_each_check_has_a_result_and_a_bad_one_ends_only_its_own_process():
    names = ["a.one", "a.abort", "a.two", "a.leave", "a.torn", "b.three"]
    found = run(*map(check, names))
    assert [name for name, _, _ in found] == names
    assert [status for _, status, _ in found] == ["passed", "crashed", "passed", "crashed", "crashed", "passed"]
    assert found[1][2] == f"the process ended with signal {signal.SIGABRT.value} (SIGABRT): before the end"
    assert found[3][2] == "the process ended with exit status 7"


def test_a_check_that_hangs_is_ended_at_its_limit():
    began = time.monotonic()
    found = run(check("a.hang", seconds=0.5), check("a.one"))
    assert found == [("a.hang", "hung", "no answer within 0 s"), ("a.one", "passed", "")]
    assert time.monotonic() - began < 25


def test_limits_are_multiplied():
    found = run(check("a.hang", seconds=10.0), slow=0.05)
    assert found == [("a.hang", "hung", "no answer within 0 s")]


def test_after_a_hang_no_other_check_of_the_capability_runs():
    checks = [check("a.hang", speaks_for="pool", seconds=1.0), check("a.one", speaks_for="pool"), check("a.two")]
    assert run(*checks) == [
        ("a.hang", "hung", "no answer within 1 s"), ("a.one", "not run", "a.hang hung before"), ("a.two", "passed", ""),
    ]  # fmt: skip


def test_a_device_that_cannot_be_opened_is_an_error_with_the_reason():
    with pytest.raises(NoDeviceError, match="no such device: 5"):
        run(check("a.one"), program="import sys; sys.exit('no such device: 5')")


def test_a_command_that_says_more_than_a_pipe_holds():
    program = "import sys\nsys.stderr.write('x' * 1_000_000 + '\\n')\nsys.stderr.flush()\n" + PROGRAM
    assert run(check("a.one"), program=program) == [("a.one", "passed", "")]


def test_an_interrupt_ends_the_child_and_leaves_what_is_known():
    def interrupt(name):
        if name == "a.hang":
            raise KeyboardInterrupt

    runner = Run("none", command=[sys.executable, "-c", PROGRAM], begun=interrupt)
    session = Session(runner, [check("a.one"), check("a.hang"), check("a.two")], whole=True)
    session.go(print)
    assert (session.status, session.interrupted, list(session.results)) == (130, True, ["a.one"])


def test_results_say_what_they_mean():
    assert Result("a", "hung").bad
    assert not Result("a", "skipped").bad
    assert Result("a", "failed", without="skipped").mended


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_end_writes_a_report_of_what_ran(tmp_path, number):
    """Ctrl-C goes to the children, too, as a terminal does; the time limit of a CI system does not."""
    command = [sys.executable, "-m", "quadpy", "selftest", "--quick", "--arch", "cpu", "--out", "report.zip"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True) as process:
        for line in process.stdout:
            if "language.integers" in line:
                break
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in rest
    assert (tmp_path / "report.zip").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux to end the child")
def test_a_child_that_hangs_ends_with_its_parent():
    hang = "from quadpy.core.children import *; print(os.getpid(), file=events_to_tell(), flush=True); import time; time.sleep(99)"
    start = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {hang!r}], stdout=-1).stdout.readline())"
    asked = subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=True, timeout=60)
    child = int(asked.stdout.strip("b'\\n\n"))
    state = Path(f"/proc/{child}/stat")
    for _ in range(500):
        try:
            if state.read_text().split()[2] == "Z":
                return
        except OSError:
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child goes on")
