"""``quadpy selftest``: proves on this machine what quadpy promises, measures what launches cost, and writes a report."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO

from quadpy.cache.cache import open_cache
from quadpy.cli.drivers import Answer, ask_drivers
from quadpy.core.importing import import_late
from quadpy.core.messages import counted
from quadpy.errors import ArgumentError
from quadpy.settings import settings

NAME: Final = "selftest"
HELP: Final = "prove on this machine what quadpy promises, and measure what its launches cost"

_SLOWEST: Final = 1000
"""The largest factor for time limits."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, no costs that take long: half a minute of processor time on the CPU",
    )
    depth.add_argument("--full", action="store_true", help="everything, in minutes (the default)")
    parser.add_argument("--arch", choices=("cpu", "amdgpu", "cuda"), help="by default, a GPU if there is one")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="which of several GPUs; 0 by default")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a report to this zip file; it can be sent")
    parser.add_argument(
        "--only",
        action="extend",
        nargs="+",
        default=[],
        metavar="CHECK",
        help="run only these checks or subjects, such as memory.pool or graphs; results are not stored",
    )
    parser.add_argument(
        "--slow",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="multiply the time limits, for emulators; a number above 0",
    )
    parser.add_argument("--list", action="store_true", help="print what is checked, and end")
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar="FILE", help="print what differs between two reports, and end"
    )


def run(args: argparse.Namespace, out: TextIO) -> int:
    """The exit status is 0 if all works, 3 if quadpy works around what does not, 1 if something fails."""
    if args.compare:
        reports = import_late("quadpy.selftest.report")
        one, other = map(reports.read, args.compare)
        print(*import_late("quadpy.selftest.comparison").differences(one, other), sep="\n", file=out)
        return 0
    if not 0 < args.slow <= _SLOWEST:
        raise ArgumentError(f"--slow is {args.slow}", hint=f"pass a number above 0, up to {_SLOWEST}")
    table = import_late("quadpy.selftest.table")
    checks = table.chosen(quick=args.quick, only=args.only)
    if unknown := [name for name in args.only if not any(name in (c.name, c.name.partition(".")[0]) for c in checks)]:
        raise ArgumentError(f"there is no check {unknown[0]!r}", hint="quadpy selftest --list shows them")
    if args.list:
        for check in checks:
            print(f"{check.name:<32} {check.proves}", file=out)
        return 0
    return _run(args, checks, out)


def _run(args: argparse.Namespace, checks: list[object], out: TextIO) -> int:
    progress, reports = import_late("quadpy.selftest.progress"), import_late("quadpy.selftest.report")
    if args.out is not None:
        reports.require_writable(args.out)
    open_cache(settings())  # a folder that cannot be written fails no check
    shows = progress.Progress(out, len(checks), patient=args.out is not None)
    wish = args.arch or _wished_arch()
    answers = [] if wish and args.out is None else ask_drivers()
    arch = wish or _default_arch(answers, shows.say)
    found = [*itertools.chain(*import_late("quadpy.cli.doctor").examined(answers))] if args.out is not None else []
    run = import_late("quadpy.selftest.runner").Run(
        arch, args.device, args.quick, args.slow, told=shows.ended, begun=shows.begun
    )
    shows.say(f"quadpy selftest on {arch}, device {args.device}: {counted(len(checks), 'check')}")
    session = import_late("quadpy.selftest.session").Session(run, checks, whole=not args.only)
    with _interrupted_by_any_end():
        session.go(shows.say)
    report = reports.report_of(session, [each[:3] for each in found])
    shows.summary(report, session)
    if args.out is not None:
        reports.write(report, args.out)
        shows.say(f"the report is in {args.out}")
    if trouble := session.lost or shows.trouble:
        raise trouble
    return int(session.status)


@contextlib.contextmanager
def _interrupted_by_any_end() -> Iterator[None]:
    """A time limit of a CI system, or a terminal that is closed, is like Ctrl-C: the report has what ran."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] != signal.SIG_IGN:  # as nohup asks
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wished_arch() -> str:
    """What QUADPY_ARCH asks for; empty if it leaves the choice."""
    wish = (settings().arch or "").partition(":")[0]
    return wish if wish in ("cpu", "amdgpu", "cuda") else ""


def _default_arch(answers: Sequence[Answer], say: Callable[[str], object]) -> str:
    probes = [answer.probe for answer in answers]
    for probe in probes:
        if probe.available:
            return probe.backend
    say("no GPU can be used, so this tests the CPU (see `quadpy doctor`):")
    for probe in probes:
        say(f"  {probe.backend:<7} {probe.reason}")
    return "cpu"
