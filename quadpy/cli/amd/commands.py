"""The commands that mend a machine, by its distribution, and by the kind of container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_FAMILIES: Final = {
    "ubuntu": "ubuntu linuxmint pop zorin elementary",
    "debian": "debian raspbian kali",
    "rhel": "rhel centos rocky almalinux ol amzn azurelinux",
    "fedora": "fedora nobara bazzite",
    "suse": "sles suse opensuse opensuse-leap opensuse-tumbleweed",
    "arch": "arch manjaro endeavouros cachyos",
}

MODULE: Final = {
    "ubuntu": ("sudo apt install linux-modules-extra-$(uname -r)", "sudo modprobe amdgpu"),
    "debian": ("sudo apt install linux-image-amd64", "sudo reboot"),  # the cloud kernel has no drivers of GPUs
    "rhel": ("sudo dnf install kernel-modules-$(uname -r)", "sudo modprobe amdgpu"),
    "fedora": ("sudo dnf install kernel-modules-$(uname -r)", "sudo modprobe amdgpu"),
    "suse": ("sudo zypper install kernel-default", "sudo reboot"),  # kernel-default-base has no drivers of GPUs
    "arch": ("sudo pacman -Syu linux", "sudo reboot"),  # an update removed the modules of the kernel that runs
}
"""Installs the kernel module ``amdgpu``."""

FIRMWARE: Final = {
    "ubuntu": ("sudo apt install --reinstall linux-firmware", "sudo update-initramfs -u", "sudo reboot"),
    "debian": ("sudo apt install firmware-amd-graphics", "sudo reboot"),
    "rhel": ("sudo dnf install linux-firmware", "sudo dracut --force", "sudo reboot"),
    "fedora": ("sudo dnf install amd-gpu-firmware", "sudo dracut --force", "sudo reboot"),
    "suse": ("sudo zypper install kernel-firmware-amdgpu", "sudo dracut --force", "sudo reboot"),
    "arch": ("sudo pacman -S linux-firmware-amdgpu", "sudo mkinitcpio -P", "sudo reboot"),
}
"""Installs the firmware that the driver loads into a chip."""

LIBRARY: Final = {
    "fedora": ("sudo dnf install rocm-hip",),
    "arch": ("sudo pacman -S hip-runtime-amd",),
}
"""Distributions whose own package has HIP 7, too."""

_GRUB: Final = {
    "ubuntu": "sudo update-grub", "debian": "sudo update-grub", "suse": "sudo grub2-mkconfig -o /boot/grub2/grub.cfg",
    "arch": "sudo grub-mkconfig -o /boot/grub/grub.cfg",
}  # fmt: skip

UDEV: Final = (
    """echo 'SUBSYSTEM=="kfd", KERNEL=="kfd", GROUP="render", MODE="0660"' | sudo tee /etc/udev/rules.d/70-kfd.rules""",
    "sudo udevadm control --reload && sudo udevadm trigger",
)
"""Gives ``/dev/kfd`` to the group ``render``, as systemd's own rules do."""

CONTAINERS: Final = {
    "docker": "docker run --device=/dev/kfd --device=/dev/dri --group-add={group} --security-opt seccomp=unconfined …",
    "podman": "podman run --device=/dev/kfd --device=/dev/dri --group-add=keep-groups --security-opt seccomp=unconfined …",
    "apptainer": "apptainer exec --rocm …",
    "kubernetes": "kubectl create -f https://raw.githubusercontent.com/ROCm/k8s-device-plugin/master/k8s-ds-amdgpu-dp.yaml, "
    "and in the pod: resources: limits: amd.com/gpu: 1",
    "lxc": "lxc config device add NAME gpu gpu gid={group}; lxc config device add NAME kfd unix-char path=/dev/kfd gid={group}",
}
"""Gives the GPU to a container of each kind."""


def family(system: Mapping[str, str]) -> str:
    """The family of a distribution, by the lines of its ``/etc/os-release``; empty if it is unknown."""
    for name in (system.get("ID", ""), *system.get("ID_LIKE", "").split()):
        for found, members in _FAMILIES.items():
            if name.lower() in members.split():
                return found
    return ""


def kernel_argument(of: str, argument: str, *, remove: bool = False) -> tuple[str, ...]:
    """Add ``argument`` to what the kernel starts with, or remove it, on a system of family ``of``."""
    if of in ("fedora", "rhel"):
        return f"sudo grubby --update-kernel=ALL --{'remove-args' if remove else 'args'}={argument}", "sudo reboot"
    change = f"s/ *{argument}//" if remove else f's/^GRUB_CMDLINE_LINUX_DEFAULT="/&{argument} /'
    return f"sudo sed -i '{change}' /etc/default/grub", _GRUB.get(of, "sudo update-grub"), "sudo reboot"
