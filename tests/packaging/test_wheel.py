"""What ``pip install`` gets: one pure wheel with everything that runs, and nothing else."""

from __future__ import annotations

import email
import zipfile
from pathlib import Path

import pytest

from quadpy._version import __version__

PACKAGE = Path(__file__).parents[2] / "quadpy"
"""The checkout's, which the installed package may be a copy of."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, monkeypatch_module) -> zipfile.ZipFile:
    backend = pytest.importorskip("hatchling.build", reason="hatchling is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    monkeypatch_module.chdir(PACKAGE.parent)
    with zipfile.ZipFile(folder / backend.build_wheel(str(folder))) as archive:
        yield archive


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def distribution_info(wheel: zipfile.ZipFile, name: str) -> str:
    return wheel.read(f"quadpy_lang-{__version__}.dist-info/{name}").decode()


def test_the_wheel_is_pure(wheel):
    tags = email.message_from_string(distribution_info(wheel, "WHEEL"))
    assert (tags["Root-Is-Purelib"], tags["Tag"]) == ("true", "py3-none-any")


def test_it_holds_the_package_whole_and_nothing_else(wheel):
    sources = {f"quadpy/{file.relative_to(PACKAGE).as_posix()}" for file in PACKAGE.rglob("*.py")}
    held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert sources | {"quadpy/py.typed"} <= held
    assert {name for name in held if not name.startswith("quadpy/")} == set()
    assert {Path(name).suffix for name in held} <= {".py", ".pyi", ".typed"}


def test_metadata_names_version_licence_dependencies_and_command(wheel):
    metadata = email.message_from_string(distribution_info(wheel, "METADATA"))
    required = {line.split(";")[0].strip() for line in metadata.get_all("Requires-Dist") if "extra ==" not in line}
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert required == {"llvmlite<0.51,>=0.50", "numpy>=1.26", "hip-python>=10"}
    assert set(metadata.get_all("Provides-Extra")) == {
        "compat",
        "cuda",
        "dev",
        "docs",
        "examples",
        "mpi",
        "nccl",
        "tools",
        "types",
        "view",
    }
    assert "quadpy = quadpy.cli:main" in distribution_info(wheel, "entry_points.txt")
