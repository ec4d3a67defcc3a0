"""The checks of ``quadpy doctor`` for AMD GPUs, in the order in which what they find must be mended."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from quadpy.cli.amd import commands
from quadpy.cli.amd.machine import Machine, Node
from quadpy.core.target import AMD_ARCHS
from quadpy.runtime.device.probe import Probe
from quadpy.runtime.drivers.rocm_library import INSTALL, OLDEST, SOUND, Place, is_path

_VISIBLE: Final = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
_OVERRIDE: Final = "HSA_OVERRIDE_GFX_VERSION"


class Check(NamedTuple):
    """Whether a condition is met (None for a note), what was found, and the commands that mend it."""

    works: bool | None
    subject: str
    text: str
    commands: tuple[str, ...] = ()


def examine(machine: Machine, probe: Probe, places: Sequence[Place]) -> list[Check]:
    """All checks, with each command once; ``probe`` is what HIP says, ``places`` where its library is looked for."""
    parts = (*_chip(machine), *_devices(machine))
    found = [
        check for check in parts if check.works or not probe.devices or check.subject == "target"
    ]  # HIP reaches them
    found += [*library_checks(machine, probe, places), *_environment(machine, probe)]
    found += _notes(machine, probe, places)
    first = {check.commands: check for check in reversed(found)}
    return [check if first[check.commands] is check else check._replace(commands=()) for check in found]


def concerns_amd(machine: Machine) -> bool:
    """Whether there is a sign of an AMD GPU."""
    return bool(machine.chips() or machine.there("/dev/kfd") or machine.there("/sys/module/amdgpu"))


def _chip(machine: Machine) -> Iterator[Check]:
    chips, nodes = machine.chips(), machine.nodes()
    targets = ", ".join(f"{node.target} (firmware {node.firmware})" for node in nodes)
    if machine.wsl:
        yield Check(machine.there("/dev/dxg"), "chip", "WSL: the GPU is Windows' /dev/dxg; AMD's driver for Windows must be "
                    "installed there, and ROCDXG here", () if machine.there("/dev/dxg") else ("wsl.exe --update",))  # fmt: skip
    elif not (chips or nodes):
        seen = "no AMD GPU on the PCI bus: in a virtual machine, pass it through"
        hidden = "unknown: /sys has no PCI bus, as in some sandboxes"
        yield Check(False, "chip", seen if machine.there("/sys/bus/pci/devices") else hidden)
    else:
        yield Check(
            True, "chip", "; ".join(filter(None, (", ".join(f"{c.number} at {c.where}" for c in chips), targets)))
        )
    if unknown := sorted({node.target for node in nodes} - AMD_ARCHS.keys()):
        text = f"quadpy cannot compile for {', '.join(unknown)}: use one of {', '.join(AMD_ARCHS)}"
        yield Check(False, "target", text)


def _devices(machine: Machine) -> Iterator[Check]:
    """The kernel's driver, and the files by which programs reach it."""
    if machine.wsl:
        return
    chips, nodes, container = machine.chips(), machine.nodes(), machine.container
    if not (loaded := machine.there("/sys/module/amdgpu")):
        yield _driver(machine, bool(chips))
    elif chips and not nodes:
        text = "amdgpu is loaded, but started no GPU: firmware is missing, or Linux is older than the chip: sudo dmesg | grep amdgpu"
        yield Check(False, "driver", text, commands.FIRMWARE.get(_family(machine), ()))
    else:
        version = machine.text("/sys/module/amdgpu/version")
        yield Check(True, "driver", f"amdgpu{' ' + version if version else ''}, Linux {machine.kernel}")
    if not (loaded or chips or container):
        return
    for device in ("/dev/kfd", *(f"/dev/dri/renderD{node.render}" for node in nodes if node.render)):
        if not machine.there(device):
            if loaded or container:
                yield _absent(machine, device)
        elif machine.may_open(machine.at(device)):
            yield Check(True, device, "can be opened")
        else:
            yield _closed(machine, device)


def _driver(machine: Machine, wanted: bool) -> Check:
    """Why the kernel module is not loaded."""
    of, text = _family(machine), f"the kernel module amdgpu is not loaded (Linux {machine.kernel or '?'})"
    if not wanted:
        return Check(False, "driver", f"{text}; you need it only once there is a GPU")
    if machine.container:
        return Check(False, "driver", f"{text}: load it on the host of this container", ("sudo modprobe amdgpu",))
    if "nomodeset" in machine.text("/proc/cmdline").split():
        mends = commands.kernel_argument(of, "nomodeset", remove=True)
        return Check(False, "driver", f"{text}: Linux was started with nomodeset", mends)
    blacklist = re.compile(r"^\s*(blacklist\s+amdgpu|install\s+amdgpu\s)", re.MULTILINE)
    if files := [file for file in machine.names("/etc/modprobe.d/*.conf") if blacklist.search(machine.text(file))]:
        mend = f"sudo sed -i '/^ *blacklist  *amdgpu/d; /^ *install  *amdgpu /d' {shlex.join(files)}"
        why = f"{', '.join(files)} forbid{'s' * (len(files) == 1)} it"
        return Check(False, "driver", f"{text}: {why}", (mend, "sudo modprobe amdgpu"))
    module = machine.names(f"/lib/modules/{machine.kernel}/**/amdgpu.ko*") or machine.names(
        f"/usr/lib/modules/{machine.kernel}/**/amdgpu.ko*"
    )
    if module:
        return Check(False, "driver", text, ("sudo modprobe amdgpu",))
    return Check(False, "driver", f"{text}, and this kernel has no such module", commands.MODULE.get(of, ()))


def _absent(machine: Machine, device: str) -> Check:
    if kind := machine.container:
        flags = commands.CONTAINERS[kind].format(group=_render_group(machine))
        return Check(False, device, f"does not exist in this container ({kind}): start it with the GPU", (flags,))
    return Check(False, device, "does not exist, though the driver runs", ("sudo udevadm trigger",))


def _closed(machine: Machine, device: str) -> Check:
    """A device that may not be opened: the user is not in its group, or it belongs to root alone."""
    group, number = machine.group_of(device)
    user = machine.environ.get("USER") or machine.environ.get("LOGNAME") or "$USER"
    if group in ("root", "0"):
        return Check(False, device, "belongs to root alone: a udev rule is missing", commands.UDEV)
    if kind := machine.container:
        flags = commands.CONTAINERS[kind].format(group=number)
        text = f"may not be opened: it belongs to group {group}, which this container's user is not in"
        return Check(False, device, text, (flags,))
    if number in machine.groups():
        return Check(False, device, f"may not be opened, though {user} is in its group {group}", commands.UDEV)
    if user in machine.members(group):
        text = f"{user} was added to group {group} after this session began"
        return Check(False, device, text, (f"newgrp {group}  # or log in again",))
    text = f"may not be opened: {user} is not in its group {group}"
    named = (f"sudo groupadd --gid {number} gpu",) if group.isdigit() else ()  # usermod takes no group without a name
    group = "gpu" if named else group
    groups = "render,video" if group in ("render", "video") else group
    return Check(
        False, device, text, (*named, f"sudo usermod -aG {groups} $USER", f"newgrp {group}  # or log in again")
    )


def library_checks(machine: Machine, probe: Probe, places: Sequence[Place]) -> Iterator[Check]:
    """Whether there is a HIP library that is new enough; all that is checked on Windows."""
    if not (version := _version(probe)):
        if not probe.runtime:  # else it is there, and does not answer: the last check says so
            yield Check(False, "ROCm", f"{probe.reason}: {_searched(places, probe)}", _install(machine, version))
    elif version < OLDEST:
        yield Check(False, "ROCm", f"{probe.runtime} is too old: quadpy needs HIP 7.0", _install(machine, version))
    elif version < SOUND:
        text = f"{probe.runtime} has bugs in event queries and captures, which 7.2.1 fixed"
        yield Check(None, "ROCm", text, _install(machine, version))
    else:
        yield Check(True, "ROCm", f"{probe.runtime}; called by {probe.binding}")


def _version(probe: Probe) -> int:
    """HIP's version; 0 if it is unknown."""
    found = re.search(r"HIP (\d+)", probe.runtime)
    return int(found[1]) if found else 0


def _install(machine: Machine, version: int) -> tuple[str, ...]:
    own = commands.LIBRARY.get(_family(machine), ())
    command = INSTALL.replace("install", "install --upgrade", bool(version))
    return command, *(f"{each}  # instead, for all users" for each in own)


def _searched(places: Sequence[Place], probe: Probe) -> str:
    """The places in their order, with the files that are there.  Only HIP itself says what the system's loader found."""
    loaded = re.search(r"\((.*), by (.*)\)$", probe.runtime)
    found = []
    for place in places:
        files = [file for file in place.files if is_path(file) and Path(file).exists()]
        if loaded and loaded[2] == place.name:
            files = files or [loaded[1]]
        broken = probe.reason.startswith(
            tuple(f"{file} {why}" for file in place.files for why in ("cannot be", "is no "))
        )
        looked = not probe.runtime or all(map(is_path, place.files))
        why = "cannot be opened" if broken else place.reason or ("no such file" if looked else "not known")
        found.append(f"{place.name} ({', '.join(files) or why})")
    return "; ".join(found)


def _environment(machine: Machine, probe: Probe) -> Iterator[Check]:
    """Variables that change which GPU HIP sees, or what it takes it for; and what HIP says in the end."""
    nodes, override = machine.nodes(), machine.environ.get(_OVERRIDE, "")
    if override and (wrong := _overridden(override, nodes)):
        yield Check(False, _OVERRIDE, wrong, (f"unset {_OVERRIDE}",))
    if nodes and not probe.devices:
        for name in _VISIBLE:
            if (value := machine.environ.get(name)) is not None and not _shows(value, len(nodes)):
                yield Check(False, name, f"{value!r} hides every GPU", (f"unset {name}",))
    if probe.devices:
        yield Check(True if _version(probe) >= OLDEST else None, "devices", "; ".join(probe.devices))
    elif probe.runtime:
        mend = () if _version(probe) else ("sudo dmesg | grep -e amdgpu -e kfd",)
        yield Check(False, "devices", f"HIP finds none: {probe.reason}", mend)


def _overridden(version: str, nodes: Sequence[Node]) -> str:
    """Why the override does harm; empty if it is the target of a GPU that is here."""
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version.strip())
    target = f"gfx{found[1]}{int(found[2]):x}{int(found[3]):x}" if found else ""
    if not target:
        return f"{version!r} is not a version such as 11.0.0"
    here = ", ".join(node.target for node in nodes)
    if not here or target in here.split(", "):
        return ""
    return f"{version} makes HIP take {here} for {target}, whose code may fail or be wrong; quadpy compiles for {here} itself"


def _shows(value: str, count: int) -> bool:
    """Whether a list of devices names one of ``count``: by number up to the first that does not exist, or by a UUID."""
    first = value.split(",", maxsplit=1)[0].strip()
    return bool(first) and (not re.fullmatch(r"-?\d+", first) or 0 <= int(first) < count)


def _notes(machine: Machine, probe: Probe, places: Sequence[Place]) -> Iterator[Check]:
    nodes, cmdline = machine.nodes(), machine.text("/proc/cmdline").split()
    if len(nodes) > 1 and machine.names("/sys/class/iommu/*") and "iommu=pt" not in cmdline:
        text = f"on, without iommu=pt: copies between the {len(nodes)} GPUs may be slow or hang"
        yield Check(None, "IOMMU", text, commands.kernel_argument(_family(machine), "iommu=pt"))
    if probe.runtime:
        yield Check(None, "search", _searched(places, probe))
    if xnack := re.search(r"xnack([+-])", " ".join(probe.devices)):
        state = (
            "on: kernels may touch the host's memory, and are slower"
            if xnack[1] == "+"
            else "off; quadpy does not need it"
        )
        yield Check(None, "XNACK", state)
    torch = next((place for place in places if place.name == "torch" and place.files), None)
    if torch and probe.runtime and "torch" not in probe.runtime:
        yield Check(None, "torch", "has its own HIP library: to share arrays with it, import torch before qp.init")


def _family(machine: Machine) -> str:
    return commands.family(machine.system)


def _render_group(machine: Machine) -> str:
    """The number that a container must be given: groups of the host have no names there."""
    return "$(getent group render | cut -d: -f3)"
