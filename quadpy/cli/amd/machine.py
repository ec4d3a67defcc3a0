"""The facts of a machine that decide whether an AMD GPU can be used, read from its files.

A file may be absent, unreadable, a pipe, or contain anything: then it has no text.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

_MOST: Final = 1 << 18
"""Bytes of a file that are read."""
_CLASSES: Final = ("0x03", "0x12")
"""PCI classes of displays and of processing accelerators, such as an MI300."""


class Chip(NamedTuple):
    """A GPU: where it is on the PCI bus, and its numbers there; or its node in the driver's topology."""

    where: str
    number: str


class Node(NamedTuple):
    """A GPU that the driver runs: its target, the versions of its firmware, and its ``/dev/dri/renderD`` number."""

    target: str
    firmware: str
    render: str


def _may_open(file: Path) -> bool:
    return os.access(file, os.R_OK | os.W_OK)


def _groups() -> frozenset[int]:
    return frozenset((*os.getgroups(), os.getegid())) if hasattr(os, "getgroups") else frozenset()


@dataclass(frozen=True)
class Machine:
    """The files below ``root``, and the user: environment, groups, and which devices may be opened."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    may_open: Callable[[Path], bool] = _may_open
    groups: Callable[[], frozenset[int]] = _groups

    def at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def there(self, path: str) -> bool:
        with contextlib.suppress(OSError, ValueError):
            return self.at(path).exists()
        return False

    def text(self, path: str) -> str:
        """The text of a file; empty if there is none."""
        with contextlib.suppress(OSError, ValueError):
            descriptor = os.open(self.at(path), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe does not wait
            try:
                if stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return os.read(descriptor, _MOST).decode(errors="replace").replace("\0", "").strip()
            finally:
                os.close(descriptor)
        return ""

    def names(self, pattern: str) -> list[str]:
        """The paths, from ``root``, that ``pattern`` matches."""
        with contextlib.suppress(OSError, ValueError):
            return sorted(f"/{path.relative_to(self.root).as_posix()}" for path in self.root.glob(pattern.lstrip("/")))
        return []

    @functools.cached_property
    def system(self) -> dict[str, str]:
        """The lines of ``os-release``, by its rules."""
        text = self.text("/etc/os-release") or self.text("/usr/lib/os-release")
        lines = re.findall(r"""^([A-Z_]+)=["']?(.*?)["']?\s*$""", text, re.MULTILINE)
        return dict(lines)

    @property
    def kernel(self) -> str:
        return self.text("/proc/sys/kernel/osrelease")

    @property
    def container(self) -> str:
        """The kind of container that this is; empty outside of one."""
        for kind, file in {
            "podman": "/run/.containerenv",
            "docker": "/.dockerenv",
            "apptainer": "/.singularity.d",
        }.items():
            if self.there(file):
                return kind
        if "KUBERNETES_SERVICE_HOST" in self.environ:
            return "kubernetes"
        found = re.search(
            r"kubepods|docker|podman|lxc", self.text("/proc/1/cgroup") + self.text("/run/systemd/container")
        )
        return found[0].replace("kubepods", "kubernetes") if found else ""

    @property
    def wsl(self) -> bool:
        return "microsoft" in self.text("/proc/version").lower()

    def chips(self) -> list[Chip]:
        """AMD's GPUs on the PCI bus."""
        found = []
        for folder in self.names("/sys/bus/pci/devices/*"):
            if self.text(f"{folder}/vendor") == "0x1002" and self.text(f"{folder}/class").startswith(_CLASSES):
                found.append(
                    Chip(folder.rpartition("/")[2], f"1002:{self.text(f'{folder}/device').removeprefix('0x')}")
                )
        return found

    def nodes(self) -> list[Node]:
        """The GPUs of the driver's topology."""
        found = []
        for file in self.names("/sys/class/kfd/kfd/topology/nodes/*/properties"):
            facts = dict(re.findall(r"^(\w+) (\d+)$", self.text(file), re.MULTILINE))
            if version := int(facts.get("gfx_target_version", "0")):
                major, minor, step = version // 10000, version // 100 % 100, version % 100
                versions = f"MEC {facts.get('fw_version', '?')}, SDMA {facts.get('sdma_fw_version', '?')}"
                found.append(Node(f"gfx{major}{minor:x}{step:x}", versions, facts.get("drm_render_minor", "")))
        return found

    def group_of(self, path: str) -> tuple[str, int]:
        """The group that a device belongs to; its number for a group without a name."""
        try:
            number = self.at(path).stat().st_gid
        except (OSError, ValueError):
            return "", -1
        named = re.search(rf"^([^:\n]+):[^:\n]*:{number}:", self.text("/etc/group"), re.MULTILINE)
        return (named[1] if named else str(number)), number

    def members(self, group: str) -> list[str]:
        found = re.search(rf"^{re.escape(group)}:[^:\n]*:\d+:(.*)$", self.text("/etc/group"), re.MULTILINE)
        return found[1].split(",") if found else []
