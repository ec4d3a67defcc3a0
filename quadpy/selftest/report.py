"""The report of a self-test: data without anything private, in a file that can be sent."""

from __future__ import annotations

import getpass
import io
import json
import os
import platform
import re
import socket
import time
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from quadpy._version import __version__
from quadpy.errors import ArgumentError
from quadpy.selftest.page import page
from quadpy.selftest.session import INSTEAD, Session

FORMAT: Final = 1
_DATA: Final = "report.json"
_MOST: Final = 1 << 24
"""Bytes of the data that are read."""
_NO_REPORT: Final = (
    KeyError, TypeError, ValueError, RecursionError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading a file that is damaged or something else raises; RuntimeError if it is encrypted or compressed otherwise."""
_LEAST: Final = 4
"""Characters of the shortest name that is removed: shorter ones are parts of words."""
_PATH: Final = re.compile(r"(?<![\w.])(?:~|[A-Za-z]:)?[\\/](?:[^\s'\":;,()\[\]<>\\/]+[\\/])+")

Report = dict[str, Any]


def report_of(session: Session) -> Report:
    """The report, which holds the kinds of the machine's parts, and nothing that names it or its user."""
    device = dict(session.run.device)
    device.pop("event", None)
    found = {
        "format": FORMAT, "quadpy": __version__, "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "quick": session.run.quick, "backend": session.run.arch, "device": device, "host": _host(),
        "interrupted": session.interrupted, "status": session.status, "seconds": round(session.seconds, 1),
        "off": {name: {"why": why, "instead": INSTEAD[name]} for name, why in session.off.items()},
        "measured": session.measured and session.measured._asdict(),
        "checks": [
            {**session.result_of(check)._asdict(), "proves": check.proves, "speaks_for": check.speaks_for,
             "remedy": session.advice(check)}
            for check in session.checks
        ],
    }  # fmt: skip
    return dict(scrubbed(found))


def require_writable(path: Path) -> None:
    """ArgumentError if a report could not be written to ``path``: known before the checks run."""
    there = path.exists()
    try:
        with path.open("ab"):
            pass
        if not there:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def write(report: Report, path: Path) -> None:
    """Write a zip file with the data and a page; ArgumentError if that is impossible."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_DATA, json.dumps(report, indent=1))
        file.writestr("report.html", page(report))
    try:
        path.write_bytes(made.getvalue())
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> ArgumentError:
    return ArgumentError(
        f"the report cannot be written to {path}: {error.strerror}", hint="name another file with --out"
    )


def read(path: Path) -> Report:
    """The data of a report; ArgumentError if it is none."""
    try:
        with zipfile.ZipFile(path) as file:
            if file.getinfo(_DATA).file_size > _MOST:
                raise ValueError(f"{_DATA} has more than {_MOST} bytes")
            report = json.loads(file.read(_DATA))
        found = report["format"]
        if found == FORMAT:
            _require_parts(report)
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}", hint="pass what --out wrote") from error
    except _NO_REPORT as error:
        raise ArgumentError(f"{path} is no report of quadpy selftest: {error}", hint="pass what --out wrote") from error
    if found != FORMAT:
        raise ArgumentError(
            f"{path} has format {found}, and this quadpy reads {FORMAT}",
            hint="compare it with the quadpy that wrote it",
        )
    return dict(report)


def _require_parts(report: Report) -> None:
    """TypeError or KeyError unless ``report`` has the parts that a comparison reads."""
    for name, kind in {"quadpy": str, "host": dict, "device": dict, "off": dict, "checks": list}.items():
        if not isinstance(report[name], kind):
            raise TypeError(f"its {name} is no {kind.__name__}")
    for row in report["checks"]:
        if not (isinstance(row["name"], str) and isinstance(row["status"], str) and isinstance(row["figures"], dict)):
            raise TypeError("a check lacks its name, status or figures")


def scrubbed(value: Any) -> Any:
    """``value`` without folders, names of the user and the machine, and values of environment variables."""
    private = sorted(_private(), key=len, reverse=True)

    def clean(text: str) -> str:
        for name in private:
            text = text.replace(name, "…")
        return _PATH.sub("…/", text)

    def walk(part: Any) -> Any:
        if isinstance(part, str):
            return clean(part)
        if isinstance(part, Mapping):
            return {key: walk(each) for key, each in part.items()}
        return [walk(each) for each in part] if isinstance(part, (list, tuple)) else part

    return walk(value)


def _private() -> set[str]:
    names = {socket.gethostname(), Path.home().name, str(Path.home())}
    with suppress(ImportError, KeyError, OSError):  # a user without a name
        names.add(getpass.getuser())
    names |= {
        value for name, value in os.environ.items() if not name.startswith("QUADPY_") and len(value) >= 2 * _LEAST
    }
    return {name for name in names if len(name) >= _LEAST and not _is_common(name)}


def _is_common(name: str) -> bool:
    """Whether ``name`` is a word that says nothing about anyone: a text without it would be less clear, not more private."""
    return name in {"root", "user", "home", "true", "false", "localhost", "linux", "quadpy", platform.machine()}


def _host() -> dict[str, object]:
    return {
        "system": platform.system(), "release": platform.release(), "machine": platform.machine(),
        "python": platform.python_version(), "threads": os.cpu_count(), "cpu": _cpu(),
    }  # fmt: skip


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
