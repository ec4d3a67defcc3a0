"""The process that runs some checks, and reports each on its standard output: one line of JSON for each event.

The report has no access to the checks' own output, which goes to standard error.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from quadpy.core.children import events_to_tell, tell
from quadpy.errors import QuadpyError
from quadpy.runtime.device.current import Config
from quadpy.runtime.device.known import world_of
from quadpy.selftest.place import Place
from quadpy.selftest.table import Check, Result, Skip, table


def main(argv: Sequence[str] | None = None, *, prepare: Callable[[], object] = lambda: None) -> None:
    """Run the checks that the command line names; ``prepare`` is called before the device is opened."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", required=True)
    parser.add_argument("--device", type=int, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("checks", nargs="*")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    events = events_to_tell()
    prepare()
    warnings.simplefilter("ignore")
    try:
        place = Place(Config(arch=args.arch, ordinal=args.device), quick=args.quick)
    except QuadpyError as error:
        tell(events, "refused", text=error.message, hint=error.hint)
        return
    tell(events, "device", **_facts(place))
    checks = table()
    for name in args.checks:
        tell(events, "begin", name=name)
        tell(events, "end", **_run(checks[name], place)._asdict())
    tell(events, "done")
    events.close()
    sys.stderr.flush()


def _run(check: Check, place: Place) -> Result:
    begin = time.perf_counter()
    try:
        figures = check.run(place) or {}
        place.device.synchronize()
        status, text = "passed", ""
    except Skip as skip:
        status, text, figures = "skipped", str(skip), {}
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the result
        status, text, figures = "failed", f"{type(error).__name__}: {error}", {}
    return Result(check.name, status, text, time.perf_counter() - begin, figures)  # type: ignore[arg-type]  # one of Status


def _facts(place: Place) -> dict[str, Any]:
    info = place.device.driver.info
    return {
        "arch": info.arch, "name": info.name, "memory": info.total_memory, "units": info.units,
        "features": sorted(place.device.driver.features), "allocator": place.device.memory.allocator,
        "world": world_of(place.device.driver),
    }  # fmt: skip


if __name__ == "__main__":
    main()
