"""Machines that exist as files only, and what ``quadpy doctor`` says about them."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from quadpy.cli.amd import commands
from quadpy.cli.amd.checks import Check, examine
from quadpy.cli.amd.machine import Machine
from quadpy.cli.doctor import print_checks
from quadpy.runtime.device.probe import Probe
from quadpy.runtime.drivers.rocm_library import Place

__all__ = ["SETUPS", "Setup", "checks_of", "print_distributions", "print_doctor"]

SYSTEMS = {
    "debian": 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\n',
    "ubuntu": 'PRETTY_NAME="Ubuntu 24.04.3 LTS"\nID=ubuntu\nID_LIKE=debian\n',
    "fedora": 'PRETTY_NAME="Fedora Linux 44"\nID=fedora\n',
    "rhel": 'PRETTY_NAME="AlmaLinux 10.0"\nID="almalinux"\nID_LIKE="rhel centos fedora"\n',
    "suse": 'PRETTY_NAME="openSUSE Leap 16.0"\nID="opensuse-leap"\nID_LIKE="suse opensuse"\n',
    "arch": 'PRETTY_NAME="Arch Linux"\nID=arch\n',
}

_KERNEL = "6.12.48+deb13-amd64"
_FILE = "/opt/rocm/lib/libamdhip64.so.7"
_PLACES = (
    Place("rocm_sdk", reason="not installed"),
    Place("/opt/rocm*", (_FILE,)),
    Place("the system's loader", ("libamdhip64.so.7", "libamdhip64.so")),
    Place("torch", reason="not installed"),
)
_NOWHERE = (_PLACES[0], Place("/opt/rocm*", reason="no such folder"), *_PLACES[2:])
_RUNTIME = f"HIP 70253211 ({_FILE}, by /opt/rocm*)"
_WORKS = Probe("amdgpu", "ctypes", ("AMD Instinct MI300X (gfx942:sramecc+:xnack-)",), "", _RUNTIME)
_NO_DEVICE = Probe("amdgpu", "ctypes", (), "hipErrorNoDevice", _RUNTIME)
_NO_LIBRARY = Probe("amdgpu", reason="libamdhip64.so.7 is in none of the places where quadpy looks")

_HEALTHY = {
    "/proc/sys/kernel/osrelease": _KERNEL,
    "/proc/cmdline": "root=/dev/sda1 quiet",
    "/sys/bus/pci/devices/0000:63:00.0/vendor": "0x1002",
    "/sys/bus/pci/devices/0000:63:00.0/class": "0x120000",
    "/sys/bus/pci/devices/0000:63:00.0/device": "0x74a1",
    "/sys/bus/pci/devices/0000:02:00.0/vendor": "0x1af4",
    "/sys/bus/pci/devices/0000:02:00.0/class": "0x020000",
    "/sys/module/amdgpu/refcnt": "1",
    "/sys/class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0",
    "/sys/class/kfd/kfd/topology/nodes/1/properties": "cpu_cores_count 0\nsimd_count 1216\ndrm_render_minor 128\n"
    "gfx_target_version 90402\nfw_version 183\nsdma_fw_version 24",
    "/dev/kfd": "",
    "/dev/dri/renderD128": "",
}
_DRIVEN = ("/sys/module", "/sys/class/kfd", "/dev")


@dataclass(frozen=True)
class Setup:
    """A machine: the files that it has beside those of a healthy one, or not; its user; and what HIP says there."""

    system: str = "debian"
    files: dict[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    environ: dict[str, str] = field(default_factory=dict)
    may_open: bool = True
    groups: tuple[int, ...] = ()
    group: str = "render"
    probe: Probe = _WORKS
    places: tuple[Place, ...] = _PLACES
    change: Callable[[Path], None] = lambda root: None


SETUPS = {
    "healthy": Setup(),
    "no_driver": Setup(files={f"/lib/modules/{_KERNEL}/kernel/amdgpu.ko.xz": ""}, without=_DRIVEN, probe=_NO_DEVICE),
    "not_in_render": Setup("ubuntu", may_open=False, probe=_NO_DEVICE),
    "container": Setup("ubuntu", files={"/.dockerenv": ""}, without=("/dev",), probe=_NO_DEVICE),
    "no_library": Setup("fedora", probe=_NO_LIBRARY, places=_NOWHERE),
    "old_rocm": Setup("ubuntu", probe=replace(_WORKS, runtime="HIP 60443482 (/opt/rocm/lib/libamdhip64.so.6, by /opt/rocm*)")),
    "override": Setup("arch", environ={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}, probe=replace(_NO_DEVICE, reason="0 devices")),
    "bare": Setup(without=(*_DRIVEN, "/sys/bus/pci/devices/0000:63"), probe=_NO_LIBRARY, places=_NOWHERE),
}  # fmt: skip


def checks_of(setup: Setup, root: Path) -> list[Check]:
    """What ``doctor`` finds on a machine whose files are made below ``root``."""
    files = {"/etc/os-release": SYSTEMS[setup.system], **_HEALTHY}
    kept = {path: text for path, text in files.items() if not path.startswith(setup.without)} | setup.files
    for path, text in kept.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    number = root.stat().st_gid
    (root / "etc/group").write_text(f"{setup.group}:x:{number}:ana\nvideo:x:44:\n", encoding="utf-8")
    setup.change(root)
    machine = Machine(
        root, {"USER": "me", **setup.environ}, lambda _: setup.may_open, lambda: frozenset(setup.groups or {number + 1})
    )
    return examine(machine, setup.probe, setup.places)


def print_doctor(name: str) -> str:
    """The checks of ``doctor`` on one of ``SETUPS``."""
    with tempfile.TemporaryDirectory() as root:
        checks = checks_of(SETUPS[name], Path(os.path.realpath(root)))
    out = io.StringIO()
    print_checks(checks, out)
    return f"```text\n{out.getvalue().strip()}\n```"


_NAMES = {
    "ubuntu": "Ubuntu",
    "debian": "Debian",
    "fedora": "Fedora",
    "rhel": "RHEL, Alma, Rocky",
    "suse": "SUSE",
    "arch": "Arch",
}


def print_distributions() -> str:
    """The commands for each family of distributions."""
    rows = ["| | the kernel has no `amdgpu` module | firmware is missing |", "|---|---|---|"]
    for family, name in _NAMES.items():
        cells = (
            " && ".join(f"`{command}`" for command in table[family]) for table in (commands.MODULE, commands.FIRMWARE)
        )
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)
