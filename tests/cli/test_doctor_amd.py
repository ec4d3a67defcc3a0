"""``quadpy doctor`` on machines with an AMD GPU, which exist as files only."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_gpu.driver import RecordingDriver

from quadpy import settings as settings_module
from quadpy.cli import doctor, drivers, main
from quadpy.cli.amd import commands
from quadpy.cli.amd.machine import Machine
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.known import Known, off_on, store, world_of
from quadpy.runtime.device.probe import Probe
from quadpy.runtime.drivers.rocm_library import Place
from tools.docs.machines import _HEALTHY, _KERNEL, SETUPS, SYSTEMS, checks_of

WHEELS = "pip install --index-url https://stable.repo.amd.com/rocm/whl-next/ rocm"
MODULE = f"/lib/modules/{_KERNEL}/updates/dkms/amdgpu.ko.zst"


@pytest.fixture
def found(tmp_path):
    """``found(setup, …)``: its checks that fail, by subject: the text and the commands."""

    def examine(setup="healthy", **changes):
        if "may_open" in changes or "without" in changes:  # then HIP finds no device
            changes = {"probe": SETUPS["not_in_render"].probe, **changes}
        checks = checks_of(replace(SETUPS[setup], **changes), tmp_path)
        return {check.subject: (check.text, check.commands) for check in checks if check.works is False}

    return examine


def test_a_healthy_machine_needs_nothing(found):
    assert found() == {}


@pytest.mark.parametrize(
    ("setup", "subject", "text", "mends"),
    [
        ("no_driver", "driver", "the kernel module amdgpu is not loaded", ["sudo modprobe amdgpu"]),
        ("not_in_render", "/dev/kfd", "me is not in its group render", ["sudo usermod -aG render,video $USER", "newgrp render"]),
        ("container", "/dev/kfd", "does not exist in this container (docker)", ["docker run --device=/dev/kfd --device=/dev/dri"]),
        ("no_library", "ROCm", "rocm_sdk (not installed); /opt/rocm* (no such folder)", [WHEELS, "sudo dnf install rocm-hip"]),
        ("old_rocm", "ROCm", "HIP 60443482", [WHEELS.replace("install", "install --upgrade")]),
        ("override", "HSA_OVERRIDE_GFX_VERSION", "take gfx942 for gfx1100", ["unset HSA_OVERRIDE_GFX_VERSION"]),
    ],
)  # fmt: skip
def test_the_commonest_broken_setups(found, setup, subject, text, mends):
    broken = found(setup)
    assert next(iter(broken)) == subject, "what comes first is mended first"
    assert text in broken[subject][0]
    assert [command.startswith(mend) for command, mend in zip(broken[subject][1], mends, strict=True)] == [True] * len(
        mends
    )


def test_a_bare_system_lacks_the_gpu_then_the_driver_then_rocm(found):
    assert [*found("bare")] == ["chip", "driver", "ROCm"]


@pytest.mark.parametrize(("system", "family"), [("rhel", "rhel"), *((name, name) for name in SYSTEMS)])
@pytest.mark.parametrize("table", ["MODULE", "FIRMWARE"])
def test_every_distribution_has_its_commands(found, system, family, table):
    """Without the module in the kernel, and with a driver that started no GPU."""
    if table == "MODULE":
        broken = found("no_driver", system=system, files={})
    else:
        broken = found(system=system, without=("/sys/class/kfd",))
    assert broken["driver"][1] == getattr(commands, table)[family]
    assert all(
        re.match(r"sudo (apt|dnf|zypper|pacman|modprobe|reboot|update-initramfs|dracut|mkinitcpio)\b", c)
        for c in broken["driver"][1]
    )


@pytest.mark.parametrize("path", ["/etc/os-release", "/usr/lib/os-release"])
def test_a_distribution_says_its_name_in_either_place(found, path):
    files = {"/etc/os-release": "", path: 'NAME="Fedora"\r\nID=fedora\r\n'}
    assert found("no_driver", files=files)["driver"][1] == commands.MODULE["fedora"]


def test_an_unknown_distribution_is_told_what_is_wrong(found):
    broken = found("no_driver", files={"/etc/os-release": "ID=plan9\n"})
    assert "this kernel has no such module" in broken["driver"][0]
    assert broken["driver"][1] == ()


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_kernel_that_was_started_without_graphics(found, system):
    text, mends = found("no_driver", system=system, files={"/proc/cmdline": "root=/dev/sda1 nomodeset quiet"})["driver"]
    assert text.endswith("Linux was started with nomodeset")
    assert "nomodeset" in mends[0]
    assert mends[-1] == "sudo reboot"


@pytest.mark.parametrize("line", ["blacklist amdgpu", "  install amdgpu /bin/false"])
def test_a_module_that_a_file_forbids(found, line):
    text, mends = found("no_driver", files={"/etc/modprobe.d/gpu.conf": f"# mine\n{line}\n", MODULE: ""})["driver"]
    assert text.endswith("/etc/modprobe.d/gpu.conf forbids it")
    assert mends[0].endswith("/etc/modprobe.d/gpu.conf")
    assert mends[1] == "sudo modprobe amdgpu"


@pytest.mark.parametrize(
    ("files", "environ", "mend"),
    [
        ({"/.dockerenv": ""}, {}, "docker run --device=/dev/kfd"),
        ({"/run/.containerenv": ""}, {}, "podman run --device=/dev/kfd --device=/dev/dri --group-add=keep-groups"),
        ({"/.singularity.d/env": ""}, {}, "apptainer exec --rocm"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubectl create -f"),
        ({"/proc/1/cgroup": "0::/kubepods/besteffort/pod1"}, {}, "kubectl create -f"),
        ({"/run/systemd/container": "lxc"}, {}, "lxc config device add"),
    ],
)
def test_each_kind_of_container_has_its_flags(found, files, environ, mend):
    assert found(files=files, environ=environ, without=("/dev",))["/dev/kfd"][1][0].startswith(mend)


def test_a_container_is_given_the_number_of_the_group(found, tmp_path):
    text, mends = found(files={"/.dockerenv": ""}, may_open=False, group="ssh")["/dev/kfd"]
    assert "belongs to group ssh" in text
    assert f"--group-add={tmp_path.stat().st_gid} " in mends[0]


def test_a_group_of_another_name_is_the_one_to_join(found):
    assert found(may_open=False, group="gpu")["/dev/kfd"][1] == (
        "sudo usermod -aG gpu $USER",
        "newgrp gpu  # or log in again",
    )


def test_a_group_without_a_name_gets_one_but_never_roots(found, monkeypatch):
    for number, mends in {
        0: commands.UDEV,
        992: ("sudo groupadd --gid 992 gpu", "sudo usermod -aG gpu $USER", "newgrp gpu  # or log in again"),
    }.items():
        monkeypatch.setattr(Machine, "group_of", lambda _, __, number=number: (str(number), number))
        assert found(may_open=False)["/dev/kfd"][1] == mends


def test_files_with_odd_names_are_quoted(found):
    files = {f"/etc/modprobe.d/{name}.conf": "blacklist amdgpu\n" for name in ("my file", "x';reboot;'")}
    text, mends = found("no_driver", files=files)["driver"]
    assert text.endswith(".conf forbid it")
    assert shlex.split(mends[0])[-2:] == [*files]


def test_a_member_of_the_group_whose_session_is_older(found):
    text, mends = found(may_open=False, environ={"USER": "ana"})["/dev/kfd"]
    assert text == "ana was added to group render after this session began"
    assert mends == ("newgrp render  # or log in again",)


def test_a_device_that_belongs_to_root_needs_a_rule(found):
    text, mends = found(may_open=False, group="root")["/dev/kfd"]
    assert "a udev rule is missing" in text
    assert mends == commands.UDEV


def test_several_devices_are_mended_by_one_command(found):
    broken = found("not_in_render")
    assert broken["/dev/dri/renderD128"][0] == "may not be opened: me is not in its group render"
    assert broken["/dev/dri/renderD128"][1] == ()


def test_a_chip_without_a_target_is_named(found):
    node = "/sys/class/kfd/kfd/topology/nodes/1/properties"
    assert (
        "cannot compile for gfx803: use one of gfx9" in found(files={node: "gfx_target_version 80003\n"})["target"][0]
    )
    assert found(files={node: "gfx_target_version 90010\n"}) == {}  # gfx90a


@pytest.mark.parametrize(
    ("value", "hides"), [("", True), ("-1", True), ("3", True), ("0", False), ("1,0", True), ("GPU-12", False)]
)
@pytest.mark.parametrize("name", ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"])
def test_variables_that_hide_devices(found, name, value, hides):
    broken = found(environ={name: value}, probe=SETUPS["override"].probe)
    assert (name in broken) == hides
    assert not hides or broken[name][1] == (f"unset {name}",)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [("9.4.2", False), ("11.0.0", True), ("", False), ("9.4", True), ("gfx942", True), ("9.0.10", True)],
)
def test_overrides(found, value, wrong):
    assert ("HSA_OVERRIDE_GFX_VERSION" in found(environ={"HSA_OVERRIDE_GFX_VERSION": value})) == wrong


def test_notes_break_nothing(tmp_path):
    node = _HEALTHY["/sys/class/kfd/kfd/topology/nodes/1/properties"]
    second = {"/sys/class/kfd/kfd/topology/nodes/2/properties": node, "/sys/class/iommu/ivhd0/devices": ""}
    probe = Probe("amdgpu", "ctypes", ("MI300A (gfx942:sramecc+:xnack+)",), "", "HIP 70100000 (/x, by rocm_sdk)")
    checks = {
        check.subject: check
        for check in checks_of(replace(SETUPS["healthy"], system="rhel", files=second, probe=probe), tmp_path)
    }
    notes = {name: check for name, check in checks.items() if check.works is None}
    assert {*notes} == {"ROCm", "IOMMU", "XNACK", "search"}
    assert notes["IOMMU"].commands == ("sudo grubby --update-kernel=ALL --args=iommu=pt", "sudo reboot")
    assert "7.2.1 fixed" in notes["ROCm"].text
    assert "may touch the host's memory" in notes["XNACK"].text


def test_under_wsl_the_gpu_is_windows(found):
    wsl = {"/proc/version": "Linux version 6.6.87.2-microsoft-standard-WSL2"}
    assert found("no_driver", files=wsl)["chip"][1] == ("wsl.exe --update",)
    assert found("no_driver", files={**wsl, "/dev/dxg": ""}) == {"devices": ("HIP finds none: hipErrorNoDevice", ())}


def test_what_hip_reaches_is_there(found):
    """On an emulated GPU, and in virtual machines that hide the bus."""
    assert found("bare", probe=SETUPS["healthy"].probe) == {}


def as_folder(file):
    file.mkdir()


def as_loop(file):
    file.symlink_to(file.name)


def as_text_of_nothing(file):
    file.write_bytes(b"\xff\0\x80 gfx_target_version 99999999999999999999\n\xfe" * 999)


def as_pipe(file):
    os.mkfifo(file)


def as_device_without_end(file):
    file.symlink_to("/dev/zero")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "path", [*_HEALTHY, "/etc/os-release", "/etc/group", "/proc/version", "/etc/modprobe.d/x.conf"]
)
@pytest.mark.parametrize("make", [as_folder, as_loop, as_text_of_nothing, as_pipe, as_device_without_end])
def test_odd_files_neither_raise_nor_hang(tmp_path, make, path):
    def change(root):
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        make(file)

    assert {"ROCm"} <= {check.subject for check in checks_of(replace(SETUPS["healthy"], change=change), tmp_path)}


def test_a_bus_that_is_hidden_is_not_a_bus_without_a_gpu(tmp_path):
    (chip,) = (c for c in checks_of(replace(SETUPS["bare"], without=("/sys",)), tmp_path) if c.subject == "chip")
    assert chip.text.startswith("unknown: ")


def test_a_root_without_files(tmp_path):
    machine = Machine(tmp_path / "nowhere", {})
    assert (machine.chips(), machine.nodes(), machine.container, machine.wsl, machine.system) == ([], [], "", False, {})


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        ("import time; time.sleep(60)", "HIP: no answer within 3 s"),
        ("import os; os.abort()", "ended with signal 6 (SIGABRT)"),
        ("import os; print('a library speaks', flush=True); os._exit(0)", "ended with exit status 0"),
        (
            "raise SystemExit('libhsa-runtime64.so.1: no version information')",
            "libhsa-runtime64.so.1: no version information",
        ),
    ],
)
def test_a_driver_in_a_bad_state_ends_neither_doctor_nor_the_self_test(monkeypatch, capsys, ask, says):
    monkeypatch.setattr(drivers, "_ASK", ask)
    monkeypatch.setattr(drivers, "_SECONDS", 3)
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["parts"]["amdgpu"]["works"]
    assert says in found["parts"]["amdgpu"]["text"]
    assert not any("pip install" in command for check in found["amd"] for command in check["commands"]), "it is there"
    assert main(["selftest", "--only", "streams.parts"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("no GPU can be used, so this tests the CPU")
    assert says in said


LOADER = Place("the system's loader", ("libamdhip64.so.7", "libamdhip64.so"))
LOADED = "HIP 70253211 (/usr/lib/libamdhip64.so.7, by {})"


@pytest.mark.parametrize(
    ("probe", "says"),
    [
        (Probe("amdgpu", runtime=LOADED.format(LOADER.name)), "/usr/lib/libamdhip64.so.7"),
        (Probe("amdgpu", runtime=LOADED.format("rocm_sdk")), "not known"),
        (Probe("amdgpu", runtime="HIP", reason="HIP: no answer within 60 s"), "not known"),
        (Probe("amdgpu", reason="libamdhip64.so.7 is in none of the places"), "no such file"),
        (Probe("amdgpu", reason="libamdhip64.so.7 cannot be opened: libhsa-runtime64.so.1: …"), "cannot be opened"),
    ],
)
def test_what_is_said_of_the_loader_is_true(tmp_path, monkeypatch, probe, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "libamdhip64.so.7").touch()  # the loader does not look here
    checks = checks_of(replace(SETUPS["healthy"], probe=probe, places=(LOADER,)), tmp_path)
    assert any(f"the system's loader ({says})" in check.text for check in checks)


@pytest.mark.parametrize("what", ["print('welcome')", "raise SystemExit('no license')", "import time; time.sleep(60)"])
def test_a_wheel_of_amds_that_prints_exits_or_hangs(monkeypatch, capsys, tmp_path, what):
    """Another text before the JSON would be no JSON."""
    (tmp_path / "rocm_sdk.py").write_text(f"def find_libraries(*names):\n    {what}\n    return []\n")
    monkeypatch.setenv("PYTHONPATH", f"{Path(doctor.__file__).parents[2]}:{tmp_path}")
    monkeypatch.setattr(drivers, "_SECONDS", 1 if "sleep" in what else 60)
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parts"]["cpu"]["works"]


def test_doctor_prints_the_checks_of_this_machine(monkeypatch, capsys, tmp_path):
    checks = checks_of(SETUPS["not_in_render"], tmp_path)
    monkeypatch.setattr(doctor, "examine", lambda *_: checks)
    monkeypatch.setattr(doctor, "concerns_amd", lambda _: True)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "For an AMD GPU, in the order to mend:" in out
    assert "$ sudo usermod -aG render,video $USER" in out
    assert main(["doctor", "--json"]) == 0
    assert [row["subject"] for row in json.loads(capsys.readouterr().out)["amd"]] == [check.subject for check in checks]


def test_doctor_shows_what_the_self_test_switched_off(monkeypatch, capsys, tmp_path):
    """First nothing is known; then one capability is off; then a variable decides."""
    monkeypatch.setenv("QUADPY_CACHE_DIR", str(tmp_path))
    working = Probe("recording", "simulated", ("a simulated GPU",), "", "")
    nothing = Probe("cuda", reason="no such library")

    def answers():  # as they are when doctor asks
        return [drivers.Answer(drivers.found_of(probe), probe) for probe in (working, nothing)]

    monkeypatch.setattr(doctor, "ask_drivers", answers)

    def told(*more):
        settings_module.settings.cache_clear()
        driver = RecordingDriver()
        monkeypatch.setattr(drivers, "open_device", lambda _: Device(driver, None, off_on(driver)))
        assert main(["doctor", *more]) == 0
        return capsys.readouterr().out

    assert "not tested yet: run `quadpy selftest`" in told()
    why = "streams.parts failed: AssertionError: work on parts of the GPU"
    assert not store(world_of(RecordingDriver()), Known({"parts": why}, None))
    lines = told().splitlines()
    row = next(number for number, line in enumerate(lines) if "a simulated GPU" in line)
    assert lines[row].startswith("  ok")
    assert "not tested yet" not in lines[row]
    assert lines[row + 1].strip() == f"without parts: {why}"
    assert json.loads(told("--json"))["parts"]["recording"]["off"] == {"parts": why}
    monkeypatch.setenv("QUADPY_WITHOUT", "graphs")
    assert "without graphs: QUADPY_WITHOUT names it" in told()
