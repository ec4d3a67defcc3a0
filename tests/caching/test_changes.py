"""What changes between two runs, or under a program that runs, is seen; what does not change is found without a trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from changes import CHANGES

NAMES = [change.name for change in CHANGES]


def test_each_change_has_a_name_of_its_own():
    assert len(set(NAMES)) == len(NAMES)


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """A folder for each change."""
    folder = tmp_path_factory.mktemp("programs")
    for number, change in enumerate(CHANGES):
        program = folder / f"{number:03}"
        for version, text in (("first", change.first), ("second", change.second)):
            (program / version).mkdir(parents=True)
            (program / version / "cfg.py").write_text(text)
        (program / "program.py").write_text(change.text)
        if change.late:
            (program / "late").touch()
    return folder


def run(programs: Path, cache: Path, *modes: str) -> list[dict[str, Any]]:
    """What a child gives for each program and mode: name -> result."""
    child = subprocess.run(
        [sys.executable, Path(__file__).with_name("run_changes.py"), programs, *modes],
        env={**os.environ, "QUADPY_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    return [dict(zip(NAMES, json.loads(line).values(), strict=True)) for line in child.stdout.splitlines()]


@pytest.fixture(scope="module")
def between_processes(programs, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return [run(programs, cache, mode)[0] for mode in ("first", "second", "first", "second")]


@pytest.fixture(scope="module")
def in_one_process(programs, tmp_path_factory):
    return run(programs, tmp_path_factory.mktemp("cache"), "first", "second", "first", "second", "late")


@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_another_process_sees_the_change(change, between_processes):
    assert [found[change.name][0] for found in between_processes] == [*change.results, *change.results]


@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_a_process_without_a_change_does_not_trace(change, between_processes):
    traced = [found[change.name][1] for found in between_processes]
    assert traced[0]
    assert traced[2:] == [not change.recorded] * 2


@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_kernels_of_one_text_in_one_process_are_told_apart(change, in_one_process):
    assert [found[change.name][0] for found in in_one_process[:4]] == [*change.results, *change.results]


@pytest.mark.parametrize("change", [change for change in CHANGES if change.late], ids=lambda change: change.name)
def test_a_signature_keeps_its_meaning(change, in_one_process):
    assert in_one_process[4][change.name] == [change.results[0]] * 3
