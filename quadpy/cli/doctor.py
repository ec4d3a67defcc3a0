"""``quadpy doctor``: shows which backends work here and why the others do not."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import warnings
from collections.abc import Sequence
from typing import Final, TextIO

from quadpy._version import __version__
from quadpy.cache.cache import open_cache
from quadpy.cli.amd.checks import Check, concerns_amd, examine, library_checks
from quadpy.cli.amd.machine import Machine
from quadpy.cli.drivers import Answer, Finding, ask_drivers
from quadpy.dist.probing import mpi_found
from quadpy.errors import CacheError, TransportError
from quadpy.settings import Settings, settings

NAME: Final = "doctor"
HELP: Final = "show which backends work here and why the others do not"

_NOTABLE: Final = ("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bf16", "avx512fp16", "neon", "sve")
"""The CPU features that decide how wide and fast loops are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON: the versions, for each part whether it works and why, and the checks for AMD GPUs",
    )


def run(args: argparse.Namespace, out: TextIO) -> int:
    """Print one line for each part, and what an AMD GPU needs; the exit status is 0 if kernels run on the CPU."""
    findings, checks = examined(ask_drivers())
    versions = {"quadpy": __version__, "python": platform.python_version(), "platform": platform.platform()}
    if args.json:
        parts = {each.subject: {"works": each.works, "text": each.text, "off": each.off} for each in findings}
        print(
            json.dumps({**versions, "parts": parts, "amd": [check._asdict() for check in checks]}, indent=2), file=out
        )
    else:
        print("quadpy {quadpy}, Python {python}, {platform}".format(**versions), file=out)
        for works, subject, text, off in findings:
            print(f"  {'ok' if works else '--'}  {subject:<7} {text}", file=out)
            for name, why in off.items():
                print(f"      {'':<7} without {name}: {why}", file=out)
        print_checks(checks, out)
    return 0 if findings[0].works else 1


def examined(answers: Sequence[Answer]) -> tuple[list[Finding], list[Check]]:
    """What was found about each part, the CPU first, and the checks for AMD GPUs; ``answers`` are the drivers'."""
    (amd, probe, places), (nvidia, *_) = answers
    machine, check = Machine(), {"linux": examine, "win32": library_checks}.get(sys.platform)
    wanted = concerns_amd(machine) or not nvidia.works
    checks = [*check(machine, probe, places)] if check and wanted else []
    return [_cpu(), amd, nvidia, _mpi(), _cache(settings())], checks


def print_checks(checks: list[Check], out: TextIO) -> None:
    """Each check, and below it the commands that mend what it found."""
    if checks:
        print("\nFor an AMD GPU, in the order to mend:", file=out)
    width = max((len(check.subject) for check in checks), default=0)
    for works, subject, text, commands in checks:
        print(f"  {'  ' if works is None else 'ok' if works else '--'}  {subject:<{width}}  {text}", file=out)
        for command in commands:
            print(f"      {'':<{width}}  $ {command}", file=out)


def _cpu() -> Finding:
    try:
        import llvmlite
        import llvmlite.binding as llvm

        from quadpy.codegen.host import resolve_cpu
        from quadpy.runtime.cpu.pool import default_threads
    except (ImportError, OSError) as error:
        return Finding(False, "cpu", f"llvmlite cannot be imported ({error}): pip install 'llvmlite>=0.50,<0.51'")
    name, features = resolve_cpu()
    notable = " ".join(feature for feature in _NOTABLE if f"+{feature}" in features.split(","))
    version = ".".join(map(str, llvm.llvm_version_info))
    threads = settings().num_threads or default_threads()
    return Finding(
        True, "cpu", f"{name} ({notable}), {threads} threads; llvmlite {llvmlite.__version__}, LLVM {version}"
    )


def _mpi() -> Finding:
    """Whether ``quadpy run`` can start several ranks."""
    try:
        return Finding(True, "mpi", mpi_found())
    except TransportError as error:
        return Finding(False, "mpi", f"{error.message}: {error.hint}")


def _cache(knobs: Settings) -> Finding:
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            cache = open_cache(knobs)
    except CacheError as error:
        return Finding(False, "cache", f"{error.message}; {error.hint}")
    if cache.path is None:
        why = "".join(f" ({warning.message})" for warning in warned)
        return Finding(False, "cache", f"off: each process compiles its kernels again{why}")
    stats = cache.stats()
    size = f"{stats.nbytes / 2**20:.1f} of {stats.limit / 2**20:.0f} MiB"
    trouble = cache.trouble()
    return Finding(not trouble, "cache", f"{cache.path}, {size}" + (f"; {trouble}" if trouble else ""))
