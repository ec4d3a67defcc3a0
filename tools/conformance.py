"""Runs the conformance suite of drivers, and keeps the outcomes for the table in the documentation.

    python tools/conformance.py                              every driver that this machine has
    python tools/conformance.py --only amdgpu --note emulated

Each driver is a column, kept in docs/reference/conformance/<column>.json; a later run of the same column replaces it.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from pathlib import Path

from quadpy.errors import NoDeviceError
from quadpy.runtime.device.devices import open_device

ROOT = Path(__file__).parents[1]
COLUMNS = ROOT / "docs/reference/conformance"
SUITE = "tests/drivers"
DRIVERS = ("cpu", "recording", "amdgpu", "cuda")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=DRIVERS, help="test only this driver")
    parser.add_argument("--note", default="", help="a text to add to the column's name, such as: emulated")
    parser.add_argument("--out", type=Path, default=COLUMNS, help="the folder for the columns")
    options = parser.parse_args()
    wanted = [options.only] if options.only else [name for name in DRIVERS if is_here(name)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        status = run_suite(wanted, report)
        found = rules_of(report)
    for driver in wanted:
        keep(driver, options.note, found[driver], options.out)
    return status


def is_here(driver: str) -> bool:
    try:
        return driver == "recording" or bool(open_device(driver))
    except NoDeviceError:
        return False


def run_suite(drivers: list[str], report: Path) -> int:
    """In a process of its own: a driver's crash must not lose the other columns' results."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", SUITE]
    command += ["-k", " or ".join(drivers), f"--junitxml={report}"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def rules_of(report: Path) -> dict[str, dict[str, list[str]]]:
    """By driver and rule, the outcome of each test of it: ``passed``, ``failed``, or why it was skipped."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for case in ET.parse(report).getroot().iter("testcase"):
        name, _, parameters = case.get("name", "").partition("[")
        driver = next((d for d in DRIVERS if d in re.split(r"[-\]]", parameters)), None)
        if driver is not None:
            group = case.get("classname", "").rpartition(".")[2]
            found[driver][f"{group}: {in_words(name)}"].append(outcome_of(case))
    return found


def outcome_of(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    return "passed" if skipped is None else skipped.get("message", "skipped")


def in_words(test: str) -> str:
    words = test.removeprefix("test_").replace("_s_", "'s ").replace("_", " ")
    return re.sub(r"^s(\d+) ", r"S\1 ", words)


def keep(driver: str, note: str, rules: dict[str, list[str]], folder: Path) -> None:
    """Write the column; if a rule has several tests, a failure outranks a success, and a success outranks a skip."""
    name = (
        driver if driver in ("cpu", "recording") else f"{driver} {open_device(driver).driver.info.arch.split(':')[0]}"
    )
    name += f", {note}" if note else ""
    merged = {}
    for rule, outcomes in rules.items():
        counts = [outcome for outcome in ("failed", "passed") if outcome in outcomes]
        merged[rule] = counts[0] if counts else outcomes[0]
    tests = sum(map(len, rules.values()))
    facts = {"column": name, "driver": driver, "python": platform.python_version(), "tests": tests, "rules": merged}
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.json"
    file.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{name}: {tests} tests of {len(merged)} rules -> {file}")


if __name__ == "__main__":
    raise SystemExit(main())
