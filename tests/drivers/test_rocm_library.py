"""Where ROCm's libraries are found: in wheels, in folders, by the loader, in torch; with and without a version."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hip_library import compiler, put

from quadpy.dist.transport.gpu.rccl import load_rccl
from quadpy.errors import TransportError
from quadpy.runtime.drivers import rocm_library
from quadpy.runtime.drivers.rocm_library import LibraryMissing, open_rocm_library, places

ASK = """
import ctypes, sys
from quadpy.runtime.device.probe import probe_hip
print(probe_hip().runtime)
"""

ROCM_SDK = '''
"""As AMD's wheel ``rocm``: it knows where the wheel ``rocm-sdk-core`` has its libraries."""

import importlib
from pathlib import Path

PATTERNS = {"amdhip64": "libamdhip64.so*", "roctx64": "libroctx64.so*"}


def find_libraries(*names):
    found = []
    for name in names:
        if name not in PATTERNS:
            raise ModuleNotFoundError(f"Unknown rocm library '{name}'")
        try:
            core = importlib.import_module("_rocm_sdk_core")
        except ModuleNotFoundError:
            pass
        files = sorted((Path(core.__file__).parent / "lib").glob(PATTERNS[name]))
        if not files:
            raise FileNotFoundError(f"Could not find rocm library '{name}'")
        found.append(files[0])
    return found
'''


@pytest.fixture
def wheels(tmp_path):
    """The folder of a virtual environment's packages, with AMD's wheels: only names with a version, no links."""
    (tmp_path / "rocm_sdk").mkdir()
    (tmp_path / "rocm_sdk/__init__.py").write_text(ROCM_SDK)
    put(tmp_path / "_rocm_sdk_core/lib")
    (tmp_path / "_rocm_sdk_core/__init__.py").touch()
    return tmp_path


OF_ROCM = ("rocm_sdk", "_rocm_sdk_core")


@pytest.fixture
def packages(monkeypatch):
    """``packages(folder)``: lets Python import what is there, and forgets at the end what was imported."""

    def imported():
        return {
            name: module for name, module in sys.modules.items() if name == "torch" or name.partition(".")[0] in OF_ROCM
        }

    def add(folder):
        monkeypatch.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        for name in imported():
            del sys.modules[name]

    before = imported()
    yield add
    for name in imported():
        del sys.modules[name]
    sys.modules.update(before)


def by_name(name="amdhip64", environ=(), root=Path("/nowhere")):
    return {place.name.partition("=")[0]: place for place in places(name, dict(environ), root)}


def ask(binding, **environ):
    """What a process with these variables finds, with hip-python or without."""
    script = ("import sys; sys.modules['hip'] = None\n" if binding == "ctypes" else "") + ASK
    command = [sys.executable, "-c", script]
    child = subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, env={**ENVIRON, **environ}
    )
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()


ROOT = str(Path(rocm_library.__file__).parents[3])
ENVIRON = {"PATH": "/usr/bin", "PYTHONPATH": ROOT, "HOME": "/nonexistent"}


@pytest.mark.parametrize("binding", ["hip-python", "ctypes"])
def test_amds_wheels_need_no_variable(wheels, binding):
    assert (
        ask(binding, PYTHONPATH=f"{ROOT}:{wheels}")
        == f"HIP 70253211 ({wheels}/_rocm_sdk_core/lib/libamdhip64.so.7, by rocm_sdk)"
    )


@pytest.mark.parametrize("binding", ["hip-python", "ctypes"])
@pytest.mark.parametrize(
    "names", [["libamdhip64.so.7"], ["libamdhip64.so"], ["libamdhip64.so.7", "libamdhip64.so.7.2.53211"]]
)
def test_a_folder_with_either_name(tmp_path, names, binding):
    for name in names:
        put(tmp_path / "lib", name)
    expected = f"HIP 70253211 ({tmp_path}/lib/{names[0]}, by ROCM_PATH={tmp_path})"
    assert ask(binding, ROCM_PATH=str(tmp_path)) == expected


@pytest.mark.parametrize("binding", ["hip-python", "ctypes"])
def test_the_loaders_library_has_a_version_only(tmp_path, binding):
    """A distribution's runtime package: no ``libamdhip64.so``, which development packages have."""
    put(tmp_path)
    assert (
        ask(binding, LD_LIBRARY_PATH=str(tmp_path))
        == f"HIP 70253211 ({tmp_path}/libamdhip64.so.7, by the system's loader)"
    )


def test_folders_of_opt_in_their_order(tmp_path):
    for folder, name in {"rocm": "so.6", "rocm-6.4.3": "so.6", "rocm-7.2.0": "so.7", "rocm-7.10.0": "so.7"}.items():
        put(tmp_path / "opt" / folder / "lib", f"libamdhip64.{name}")
    put(tmp_path / "opt/rocm/core-10.0/lib")
    files = [file.removeprefix(f"{tmp_path}/opt/") for file in by_name(root=tmp_path)["/opt/rocm*"].files]
    assert files == [
        "rocm/core-10.0/lib/libamdhip64.so.7", "rocm-7.10.0/lib/libamdhip64.so.7", "rocm-7.2.0/lib/libamdhip64.so.7",
        "rocm/lib/libamdhip64.so.6", "rocm-6.4.3/lib/libamdhip64.so.6",
    ]  # fmt: skip


def test_the_order_of_the_places(tmp_path):
    environ = {"ROCM_PATH": str(tmp_path), "HIP_PATH": str(tmp_path)}
    assert [*by_name(environ=environ)][-6:] == [
        "rocm_sdk",
        "ROCM_PATH",
        "HIP_PATH",
        "/opt/rocm*",
        "the system's loader",
        "torch",
    ]


def test_each_place_says_why_it_has_none(tmp_path):
    found = by_name(environ={"ROCM_PATH": str(tmp_path)})
    assert found["ROCM_PATH"].reason == "no such file"
    assert found["/opt/rocm*"].reason == "no such folder"


def test_a_wheel_without_its_libraries_is_no_error(wheels, packages):
    packages(wheels)
    assert by_name()["rocm_sdk"].files == (f"{wheels}/_rocm_sdk_core/lib/libamdhip64.so.7",)
    assert by_name("rccl")["rocm_sdk"].reason == "Unknown rocm library 'rccl'"
    assert by_name("roctx64")["rocm_sdk"].reason == "FileNotFoundError: Could not find rocm library 'roctx64'"


def test_a_wheel_without_its_core_is_no_error(wheels, packages):
    (wheels / "_rocm_sdk_core").rename(wheels / "gone")
    packages(wheels)
    assert by_name()["rocm_sdk"].reason.startswith("UnboundLocalError: ")  # as AMD's own does in 2026


def test_torch_for_rocm_has_the_library(tmp_path, packages):
    put(tmp_path / "torch/lib", "libamdhip64.so")
    (tmp_path / "torch/__init__.py").write_text("raise RuntimeError('imported')")
    packages(tmp_path)
    assert by_name()["torch"].files == (f"{tmp_path}/torch/lib/libamdhip64.so",)


def test_a_library_of_this_process_comes_first(tmp_path):
    script = f"import ctypes; ctypes.CDLL({str(put(tmp_path / 'torch'))!r})\n{ASK}"
    other = put(tmp_path / "rocm/lib").parents[1]
    child = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True,
        env={**ENVIRON, "ROCM_PATH": str(other)},
    )  # fmt: skip
    assert child.stdout.strip() == f"HIP 70253211 ({tmp_path}/torch/libamdhip64.so.7, by this process)"


def test_a_file_that_is_no_library_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/librccl.so.1").write_text("not a library")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.setattr(rocm_library, "_of_wheels", lambda name: rocm_library.Place("rocm_sdk", reason="not installed"))
    monkeypatch.setitem(rocm_library._SONAMES, "rccl", 1)
    open_rocm_library.cache_clear()
    try:
        opened = open_rocm_library("rccl")
    except LibraryMissing as error:
        assert f"{tmp_path}/lib/librccl.so.1 cannot be opened: " in str(error)  # noqa: PT017
    else:
        assert opened.place != f"ROCM_PATH={tmp_path}"


def test_a_library_that_is_nowhere(monkeypatch):
    monkeypatch.setitem(rocm_library._SONAMES, "quadpy_has_no_such", 3)
    with pytest.raises(
        LibraryMissing, match=r"libquadpy_has_no_such\.so\.3 is in none of the places where quadpy looks"
    ):
        open_rocm_library("quadpy_has_no_such")


def test_a_folder_that_cannot_be_read_hides_no_other(tmp_path, monkeypatch):
    for version in ("7.0.2", "7.2.1"):
        put(tmp_path / f"opt/rocm-{version}/lib")
    own = Path.is_file

    def refuses(path, **options):
        if "rocm-7.2.1" in str(path):
            raise PermissionError(13, "Permission denied")
        return own(path, **options)

    monkeypatch.setattr(Path, "is_file", refuses)
    assert by_name(root=tmp_path)["/opt/rocm*"].files == (f"{tmp_path}/opt/rocm-7.0.2/lib/libamdhip64.so.7",)


def test_on_windows_names_and_folders_are_windows_own(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/amdhip64_7.dll").touch()
    found = by_name(environ={"HIP_PATH": str(tmp_path)})
    assert found["HIP_PATH"].files == (f"{tmp_path}/bin/amdhip64_7.dll",)
    assert found["the system's loader"].files == ("amdhip64_7.dll", "amdhip64.dll")
    assert "/opt/rocm*" not in found


@pytest.mark.parametrize("file", ["librocprofiler-sdk-roctx.so.1", "libroctx64.so.4", "libroctx64.so"])
def test_ranges_reach_roctx_where_rocm_is(tmp_path, file):
    put(tmp_path / "lib", file)
    script = f"""
import ctypes
import quadpy as qp

with qp.profiler.range("step"):
    pass
library = ctypes.CDLL({str(tmp_path / "lib" / file)!r})
library.test_log.restype = ctypes.c_char_p
print(library.test_log().decode())
"""
    command = [sys.executable, "-c", script]
    child = subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, env={**ENVIRON, "ROCM_PATH": str(tmp_path)}
    )
    assert child.stdout.split() == ["roctxRangePushA", "step", "roctxRangePop"], child.stderr


def test_rccl_is_opened_where_rocm_is(tmp_path, monkeypatch):
    paths = pytest.importorskip("rocm.bindings.util.paths", reason="hip-python is not installed")
    file, own = put(tmp_path / "lib", "librccl.so.1"), paths.get_library_path

    def opens(_symbol):
        return os.fsdecode(paths.get_library_path("rccl")) == str(file)

    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.setattr(rocm_library, "_of_wheels", lambda name: rocm_library.Place("rocm_sdk", reason="not installed"))
    monkeypatch.setattr(sys.modules["rocm.bindings"], "rccl", SimpleNamespace(has_symbol=opens), raising=False)
    open_rocm_library.cache_clear()
    assert load_rccl().name == "rccl"
    assert paths.get_library_path is own
    open_rocm_library.cache_clear()


def test_without_rccl_the_error_says_how_to_install_it(monkeypatch):
    pytest.importorskip("rocm.bindings", reason="hip-python is not installed")
    monkeypatch.setattr(rocm_library, "places", lambda name: iter(()))
    monkeypatch.setattr(sys.modules["rocm.bindings"], "rccl", SimpleNamespace(), raising=False)
    open_rocm_library.cache_clear()
    with pytest.raises(TransportError, match=r"librccl\.so\.1 is in none of the places") as caught:
        load_rccl()
    assert "'rocm[libraries]'" in caught.value.hint


def incomplete(file):
    data = file.read_bytes()
    file.write_bytes(data[: len(data) * 3 // 4])


def another_library(file):
    name = ctypes.util.find_library("m")
    (path,) = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if f"/{name}" in line} or {
        None
    }
    file.write_bytes(Path(path).read_bytes())


@pytest.mark.parametrize("binding", ["hip-python", "ctypes"])
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (incomplete, "cannot be opened: the file is incomplete"),
        (another_library, "is no amdhip64: it has no hipRuntimeGetVersion"),
        (lambda file: file.write_text("version https://git-lfs.github.com/spec/v1"), "cannot be opened: "),
        (lambda file: file.write_bytes(b""), "cannot be opened: file too short"),
    ],
)
def test_a_damaged_library_is_named_and_the_next_place_is_tried(tmp_path, binding, damage, says):
    """The loader would end the process, with a bus error, at a file that a full disk has cut off."""
    put(tmp_path / "one/lib")
    put(tmp_path / "two/lib")
    broken = tmp_path / "one/lib/libamdhip64.so.7"
    damage(broken)
    found = ask(binding, ROCM_PATH=str(tmp_path / "one"), ROCM_HOME=str(tmp_path / "two"))
    assert found.endswith(f"by ROCM_HOME={tmp_path / 'two'})")
    script = "from quadpy.runtime.device.probe import probe_hip; print(probe_hip().reason)"
    child = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True,
        env={**ENVIRON, "ROCM_PATH": str(tmp_path / "one")},
    )  # fmt: skip
    assert child.stdout.startswith(f"{broken} {says}")


def test_a_library_that_the_loader_finds_and_cannot_open_is_not_absent(tmp_path):
    """Half of an installation, found by LD_LIBRARY_PATH; a broken file of that name in the current folder does not count."""
    reason = "from quadpy.runtime.device.probe import probe_hip; print(probe_hip().reason)"
    (tmp_path / "lib").mkdir()
    for content, why in {b"": "file too short", b"no library" * 99: "invalid ELF header"}.items():
        (tmp_path / "lib/libamdhip64.so.7").write_bytes(content)
        environ = {**ENVIRON, "LD_LIBRARY_PATH": str(tmp_path / "lib")}
        found = subprocess.run([sys.executable, "-c", reason], capture_output=True, text=True, env=environ, check=True)
        assert found.stdout.startswith("libamdhip64.so.7 cannot be opened: ")
        assert why in found.stdout
    here = subprocess.run(
        [sys.executable, "-c", reason], capture_output=True, text=True, cwd=tmp_path / "lib", env=ENVIRON, check=True
    )
    assert "is in none of the places" in here.stdout


@pytest.mark.parametrize(
    "text",
    [None, "def (", "raise SystemExit('broken')", "def find_libraries(*names): raise SystemExit('broken')",
     "def find_libraries(*names): return None", "def find_libraries(*names): return [5, '/nowhere/libamdhip64.so.7']"],
)  # fmt: skip
def test_half_of_amds_wheels_hides_no_other_library(tmp_path, text):
    """What pip leaves of a package that it could not remove, or install, to the end."""
    (tmp_path / "rocm_sdk").mkdir()
    if text is not None:
        (tmp_path / "rocm_sdk/__init__.py").write_text(text)
    put(tmp_path / "good/lib")
    found = ask("ctypes", PYTHONPATH=f"{ROOT}:{tmp_path}", ROCM_PATH=str(tmp_path / "good"))
    assert found.endswith(f"by ROCM_PATH={tmp_path / 'good'})")


@pytest.mark.parametrize("value", ["/no\n/such", "x" * 5000, "~", "[", "*", "/dev/null", "\udcff"])
def test_a_variable_without_sense_is_passed_over(tmp_path, value):
    (place,) = (place for place in places("amdhip64", {"ROCM_PATH": value}, tmp_path) if place.name.startswith("ROCM"))
    assert place.files == ()
    assert place.reason


OLD = """
int hipRuntimeGetVersion(int *v) {{ *v = {version}; return 0; }}
int hipGetDeviceCount(int *count) {{ *count = 1; return {status}; }}
{more}
"""
UNKNOWN = "const char *hipGetErrorName(int status) { return 0; }"


@pytest.mark.parametrize(
    ("version", "status", "more", "says", "opens"),
    [
        (50731921, 0, UNKNOWN, "the HIP library has no hipGetDevicePropertiesR0600", "HIP 50731921 is too old"),
        (70253211, 4242, "", "status 4242", "HIP finds no device: status 4242"),
        (70253211, 4242, UNKNOWN, "status 4242", "HIP finds no device: status 4242"),
        (70253211, 0, UNKNOWN, "hipGetDevicePropertiesR0600", "the HIP library cannot be used: the HIP library has no"),
    ],
)
def test_a_library_that_lacks_calls_or_names_is_told(tmp_path, version, status, more, says, opens):
    """HIP 5 of distributions, through ctypes; a program that takes any GPU falls back with a warning."""
    source, library = tmp_path / "hip.c", tmp_path / "libamdhip64.so.7"
    source.write_text(OLD.format(version=version, status=status, more=more))
    subprocess.run([*compiler(), "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    script = """
import sys; sys.modules["hip"] = None
from quadpy.runtime.device.probe import probe_hip; print(probe_hip())
from quadpy.runtime.drivers.hip_api import open_hip_driver
open_hip_driver()
"""
    child = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False,
        env={**ENVIRON, "LD_LIBRARY_PATH": str(tmp_path)},
    )  # fmt: skip
    assert says in child.stdout
    assert f"HIP {version}" in child.stdout
    assert f"NoDeviceError: {opens}" in child.stderr
