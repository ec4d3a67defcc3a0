"""What HIP and CUDA say, each asked in a process of its own: a driver in a bad state may hang, or end the process that asks."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from quadpy.core.children import Child, events_to_tell, python_command, tell
from quadpy.errors import DeviceError
from quadpy.runtime.device.devices import open_device
from quadpy.runtime.device.known import known_of
from quadpy.runtime.device.probe import Probe, probe_cuda, probe_hip
from quadpy.runtime.drivers.rocm_library import Place, places

_SECONDS: Final = 60
_ASK: Final = "from quadpy.cli.drivers import answer; answer({backend!r})"
_LIBRARIES: Final = {"amdgpu": "HIP", "cuda": "CUDA"}
_ALLOCATORS: Final = {"pool": "the driver's pool", "cache": "quadpy's cache"}


class Finding(NamedTuple):
    """Whether a part of quadpy works; ``text`` says what was found, or how to fix it.

    ``off`` has the capabilities that quadpy does without on a GPU, each with the reason.
    """

    works: bool
    subject: str
    text: str
    off: Mapping[str, str] = {}


class Answer(NamedTuple):
    """What a driver says; ``places`` are those where HIP's library is looked for."""

    finding: Finding
    probe: Probe
    places: Sequence[Place] = ()


def ask_drivers() -> list[Answer]:
    """What HIP and CUDA say.  A library that was found and does not answer counts as ``runtime`` without a version."""
    children = {backend: Child(python_command(_ASK.format(backend=backend))) for backend in _LIBRARIES}
    try:
        return [_answer_of(backend, child) for backend, child in children.items()]
    finally:
        for child in children.values():
            child.end()


def _answer_of(backend: str, child: Child) -> Answer:
    where = child.next_event(_SECONDS)
    event = where if isinstance(where, str) else child.next_event(_SECONDS)
    looked = [] if isinstance(where, str) else [Place(name, tuple(files), why) for name, files, why in where["places"]]
    if isinstance(event, str):
        reason = f"{_LIBRARIES[backend]}: {event}"
        return Answer(
            Finding(False, backend, reason), Probe(backend, reason=reason, runtime=_LIBRARIES[backend]), looked
        )
    probe = Probe(**{**event["probe"], "devices": tuple(event["probe"]["devices"])})
    return Answer(Finding(*event["finding"]), probe, looked)


def answer(backend: str) -> None:
    """Tell, as JSON, where its library is looked for, the finding about a backend and its probe."""
    events = events_to_tell()
    tell(events, "places", places=[*places("amdhip64")] if backend == "amdgpu" else [])
    probe = probe_hip() if backend == "amdgpu" else probe_cuda()
    tell(events, "answer", finding=found_of(probe), probe=dataclasses.asdict(probe))
    os._exit(0)  # without the driver's clean-up, which may hang


def found_of(probe: Probe) -> Finding:
    """Which devices there are, whether quadpy can use them, where their memory comes from, and what does not work."""
    found = [*probe.devices, probe.reason, probe.binding, probe.runtime]
    works, off = probe.available, dict[str, str]()
    if works:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                device = open_device(probe.backend)
                found.append(f"memory from {_ALLOCATORS[device.memory.allocator]}")
                found.append("" if known_of(device.driver) else "not tested yet: run `quadpy selftest`")
                off = device.off
            except DeviceError as error:
                works = False
                found = [error.message, error.hint, *found]
        found += [str(warning.message) for warning in warned]
    return Finding(works, probe.backend, "; ".join(filter(None, found)), off)
