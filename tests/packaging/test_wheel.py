"""What ``pip install`` gets: one pure wheel with everything that runs, and nothing else."""

from __future__ import annotations

import email
import re
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from quadpy._version import __version__

PACKAGE = Path(__file__).parents[2] / "quadpy"
"""The checkout's, which the installed package may be a copy of."""
README = (PACKAGE.parent / "README.md").read_text(encoding="utf-8")


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
    reader = {f"quadpy/graph/saved/c/quadpy_graph.{ending}" for ending in "hc"}
    assert sources | reader | {"quadpy/py.typed"} <= held
    assert {name for name in held if not name.startswith("quadpy/")} == {"quadpy_pytest.py"}
    assert {Path(name).suffix for name in held} <= {".py", ".pyi", ".typed", ".c", ".h"}


def test_metadata_names_version_licence_dependencies_and_command(wheel):
    metadata = email.message_from_string(distribution_info(wheel, "METADATA"))
    required = {line.split(";")[0].strip() for line in metadata.get_all("Requires-Dist") if "extra ==" not in line}
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert required == {"llvmlite<0.51,>=0.50", "numpy>=1.26"}
    assert set(metadata.get_all("Provides-Extra")) == {
        "amd",
        "checkpoints",
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


def test_the_page_of_the_package_links_to_nothing_that_is_not_there(wheel):
    page = email.message_from_string(distribution_info(wheel, "METADATA")).get_payload()
    assert page.startswith("# quadpy\n")
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert [target for target in targets if not target.startswith("https://")] == []
    assert "21 targets" in page
    assert "below" not in page.partition("## A first kernel")[0], "pictures are left out"


def test_addresses_of_the_project_are_complete_or_absent(wheel):
    """None is invented: docs/guides/contributing.md says what whoever publishes the project fills in."""
    metadata = email.message_from_string(distribution_info(wheel, "METADATA"))
    found = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL") or ())
    assert set(found) in (set(), {"Documentation", "Source", "Issues", "Changelog"})
    assert all(re.fullmatch(r"https://(?!.*\b(example|localhost)\b)\S+", address) for address in found.values())


def test_the_page_of_the_package_renders(wheel):
    renderer = pytest.importorskip("readme_renderer.markdown", reason="readme-renderer is not installed")
    metadata = email.message_from_string(distribution_info(wheel, "METADATA"))
    page = renderer.render(metadata.get_payload(), stream=sys.stderr)
    assert page.count("<table>") == len(re.findall(r"^\|---\|", README, re.MULTILINE))
    assert page.count("<pre") == len(re.findall(r"^```\w", README, re.MULTILINE))
    assert "](" not in page


def test_the_source_distribution_has_what_its_pages_and_tests_need(tmp_path, monkeypatch):
    backend = pytest.importorskip("hatchling.build", reason="hatchling is not installed")
    monkeypatch.chdir(PACKAGE.parent)
    with tarfile.open(tmp_path / backend.build_sdist(str(tmp_path))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "zensical.toml",
        "tools/docs/__main__.py",
        "benchmarks/data/instructions-now.json",
        ".ci/run",
        "README.md",
    } <= held
    assert {f"docs/{page.relative_to(PACKAGE.parent / 'docs')}" for page in PACKAGE.parent.glob("docs/**/*.md")} <= held
