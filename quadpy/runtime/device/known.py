"""What ``quadpy selftest`` found on a device: capabilities that do not work there, and what launches cost.

It is stored beside the kernel cache, in a file for each combination of chip, driver, libraries and version of quadpy, and is
read when a device is opened: there, quadpy does without what is off.  A store that is damaged, foreign or cannot be written
counts as none.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import math
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quadpy._version import __version__
from quadpy.cache.folder import CacheFolder
from quadpy.core.target import EXCHANGE
from quadpy.settings import CAPABILITIES, NO_CAPABILITY, default_cache_dir, settings

if TYPE_CHECKING:
    from quadpy.runtime.drivers.driver import Driver

_LIMIT: Final = 1 << 20
"""Bytes of all that is stored."""
_log: Final = logging.getLogger("quadpy")


class Measured(NamedTuple):
    """What launches of small kernels cost on a device, in microseconds; each launch waits for the one before.

    launch_us      each further launch in a stream
    wait_us        one launch, and the wait for it
    graph_us       one graph of one node, and the wait for it
    graph_node_us  each further node of a graph
    fused_us       one cooperative launch, and the wait for it; 0 where there are none
    barrier_us     each further task of a cooperative launch: its blocks meet; 0 where there are none
    block_us       the same for a launch of one block
    graph_from     the number of launches from which a graph is faster; 0 if it never was
    fused_from     the number of small tasks from which one cooperative launch is faster; 0 if it never was
    fused_up_to    iterations of a task up to which one launch of several tasks is faster than several; 0 if it never was
    looped_up_to   the same for tasks in a loop on the device
    """

    launch_us: float
    wait_us: float
    graph_us: float
    graph_node_us: float
    fused_us: float
    barrier_us: float
    block_us: float
    graph_from: int
    fused_from: int
    fused_up_to: int
    looped_up_to: int


class Known(NamedTuple):
    """What is stored of a device.  ``off`` has the reason why each capability is off, by its name."""

    off: Mapping[str, str]
    measured: Measured | None


def world_of(driver: Driver) -> dict[str, str]:
    """Everything on which the answers depend: another world asks again."""
    info = driver.info
    return {
        "quadpy": __version__,
        "backend": driver.name,
        "chip": f"{info.name}, {info.arch.removesuffix(f':{EXCHANGE}')}",
        "library": info.library,
        "kernel driver": _kernel_driver({"amdgpu": "amdgpu", "cuda": "nvidia"}.get(driver.name, "")),
    }


def known_of(driver: Driver) -> Known | None:
    """What is stored of the device of ``driver``; None if nothing is, or it cannot be read."""
    return known_in(world_of(driver))


def known_in(world: Mapping[str, str]) -> Known | None:
    """The same for a device with these ``world_of``."""
    folder = _folder()
    if folder is None or folder.distrust():
        return None
    payload = folder.read(_name(world))
    try:
        stored: dict[str, Any] = json.loads(payload) if payload is not None else {}
        if stored.get("world") != world:
            return None
        measured = stored["measured"]
        off = {name: str(why) for name, why in stored["off"].items() if name in CAPABILITIES}
        sound = not measured or all(map(math.isfinite, measured.values()))
        return Known(off, Measured(**measured) if measured else None) if sound else None
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        _log.info("what is stored of %s cannot be read: %r", world["chip"], error)
        return None


def store(world: Mapping[str, str], known: Known) -> str:
    """Store what is ``known`` of a device with these ``world_of``; returns why that was impossible, or an empty text."""
    folder = _folder()
    if folder is None:
        return "there is no cache folder, or QUADPY_CACHE is 0"
    if why := folder.distrust():
        return why
    measured = known.measured and known.measured._asdict()
    stored = {"world": dict(world), "off": dict(known.off), "measured": measured}
    try:
        folder.write(_name(world), json.dumps(stored).encode())
    except OSError as error:
        return f"the cache folder cannot be written ({error.strerror})"
    return ""


def off_on(driver: Driver) -> dict[str, str]:
    """The capabilities that quadpy does without on the device of ``driver``, each with the reason.

    ``QUADPY_WITHOUT`` decides if it is set; else what is stored.
    """
    wish: Iterable[str] | None = settings().without
    if wish is not None:
        return {name: "QUADPY_WITHOUT names it" for name in wish if name != NO_CAPABILITY}
    if "host" in driver.features:
        return {}
    known = known_of(driver)
    return dict(known.off) if known is not None else {}


def _name(world: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(world, sort_keys=True).encode()).hexdigest()


def _folder() -> CacheFolder | None:
    knobs = settings()
    folder = knobs.cache_dir or default_cache_dir(os.environ)
    return CacheFolder(folder / "devices", _LIMIT) if knobs.cache and folder is not None else None


@functools.cache
def _kernel_driver(module: str) -> str:
    """The version of a driver of the system; that of the kernel for a driver that is a part of it."""
    try:
        return Path(f"/sys/module/{module}/version").read_text(encoding="utf-8").strip() if module else ""
    except OSError:
        return platform.release()
