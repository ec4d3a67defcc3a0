"""The report of a self-test: data without anything private, in a file that can be sent."""

from __future__ import annotations

import dataclasses
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from quadpy._version import __version__
from quadpy.errors import ArgumentError
from quadpy.jit.kernel_cache import TOOLCHAIN
from quadpy.selftest.page import page
from quadpy.selftest.session import INSTEAD, Session
from quadpy.settings import settings, variable

FORMAT: Final = 1
_DATA: Final = "report.json"
_MOST: Final = 1 << 24
"""Bytes of the data that are read."""
_NO_REPORT: Final = (
    KeyError, TypeError, ValueError, RecursionError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What reading a file that is damaged or something else raises; RuntimeError if it is encrypted or compressed otherwise."""
_PATH: Final = re.compile(
    r"""(?:(?<![\w./\\\])])|(?<=-[A-Z]))  # where a word begins, or an option such as -L ends
    (?:(?:~|[A-Za-z]:)?[\\/]+(?=[\w.])      # an absolute path: its folders may contain spaces
       (?:[^\s'"<>|:\\/]+(?:\ [^\s'"<>|:\\/]+){0,3}[\\/]+)*
      |(?!quadpy/|\d+/)(?:[\w.+-]+[\\/]){2,}     # a relative one
      |(?!quadpy/|\d+/)[\w.+-]+[\\/](?=[\w+-]+\.\w))
    (?:(?P<file>[\w+-][\w.+-]*\.\w+)|[\w.+-]*)  # the name of a file stays, that of a folder does not""",
    re.VERBOSE,
)
_ADDRESS: Final = r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:GPU-)?[0-9a-fA-F]{8}-[0-9a-fA-F-]{4,}|\bGPU-[0-9a-fA-F-]{4,}"
"""Of IP addresses, and UUIDs of GPUs."""
_PARTS: Final = re.compile(r"//|[,;:@=]+")
_COMMON: Final = {"root", "user", "home", "true", "false", "localhost", "linux", "quadpy", platform.machine()}
"""Words that say nothing about anyone: a text without them would be less clear, not more private."""

Report = dict[str, Any]


def report_of(session: Session, found: Sequence[tuple[bool | None, str, str]] = ()) -> Report:
    """The report: the kinds of the machine's parts, what quadpy's own checks say, and scrubbed texts of others.

    ``found`` is what ``quadpy doctor`` found: whether each part works, its name, and a text.
    """
    device, clean, run = dict(session.run.device), scrubber(), session.run
    device.pop("event", None)
    return {
        "format": FORMAT, "quadpy": __version__, "toolchain": TOOLCHAIN, "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "quick": run.quick, "whole": session.whole, "slow": run.slow, "backend": run.arch, "ordinal": run.ordinal,
        "device": device, "host": _host(), "settings": {name: clean(value) for name, value in _settings()},
        "doctor": [{"part": part, "works": works, "text": clean(text)} for works, part, text in found],
        "interrupted": session.interrupted, "status": session.status, "seconds": round(session.seconds, 1),
        "lost": clean(session.lost.message) if session.lost else "",
        "off": {name: {"why": clean(why), "instead": INSTEAD[name]} for name, why in session.off.items()},
        "measured": session.measured and session.measured._asdict(),
        "checks": [
            {**(result := session.result_of(check))._asdict(), "text": clean(result.text),
             "figures": {name: clean(value) if isinstance(value, str) else value for name, value in result.figures.items()},
             "proves": check.proves, "speaks_for": check.speaks_for, "remedy": session.advice(check)}
            for check in session.checks
        ],
    }  # fmt: skip


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
            report = json.loads(file.read(_DATA), parse_int=_number)
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


def _number(text: str) -> float:
    """An integer, unless it has more digits than a float can be compared with."""
    return int(text) if len(text) < 20 else float(text)


def _require_parts(report: Report) -> None:
    """TypeError or KeyError unless ``report`` has the parts that a comparison reads."""
    for name, kind in {"quadpy": str, "host": dict, "device": dict, "off": dict, "checks": list}.items():
        if not isinstance(report[name], kind):
            raise TypeError(f"its {name} is no {kind.__name__}")
    for row in report["checks"]:
        if not (isinstance(row["name"], str) and isinstance(row["status"], str) and isinstance(row["figures"], dict)):
            raise TypeError("a check lacks its name, status or figures")


def scrubber() -> Callable[[str], str]:
    """A function for texts that quadpy did not write: messages of drivers, compilers and crashed processes.

    It removes folders, addresses, serial numbers, the names of the user and the host, and what variables of the environment
    hold, as whole words.  What else such a text says stays.
    """
    names = "|".join(map(re.escape, sorted(_private(), key=len, reverse=True)))
    private = re.compile(rf"(?<!\w)(?:{names or '(?!)'})(?!\w)|{_ADDRESS}")

    def clean(text: str) -> str:
        return private.sub("…", _PATH.sub(lambda path: f"…/{path['file']}" if path["file"] else "…", text))

    return clean


def _private() -> set[str]:
    """Names of the user and the host; values of variables, and the parts of lists and addresses among them."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("QUADPY_")}
    values = {part for value in environ.values() for part in (value, *_PARTS.split(value))}
    host = socket.gethostname()
    names = {host, host.partition(".")[0], *map(environ.get, ("SUDO_USER", "USER", "LOGNAME", "USERNAME"))}
    with suppress(ImportError, KeyError, OSError, RuntimeError):  # a user without a name or a home
        names |= {getpass.getuser(), Path.home().name}
    found = {name for name in names if name and len(name) > 1}
    return (found | {value for value in values if len(value) > 3 and not value.isdigit()}) - _COMMON


def _host() -> dict[str, object]:
    return {
        "system": platform.system(), "release": platform.release(), "machine": platform.machine(),
        "python": platform.python_version(), "numpy": np.__version__, "threads": os.cpu_count(), "cpu": _cpu(),
    }  # fmt: skip


def _settings() -> Iterator[tuple[str, str]]:
    """The settings that are not the default ones; of a folder or a file, only that it is set."""
    own = settings()
    for knob in dataclasses.fields(own):
        value = getattr(own, knob.name)
        if value != knob.default:
            text = ",".join(value) if isinstance(value, tuple) else str(value)
            yield variable(knob.name), "set" if isinstance(value, Path) else text


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
