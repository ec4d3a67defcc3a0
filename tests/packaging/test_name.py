"""On PyPI, ``quadpy`` is another project: ours is installed as ``quadpy-lang`` and imported as ``quadpy``."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
TEXTS = [
    file
    for pattern in (
        "*.md",
        "*.toml",
        "docs/**/*.md",
        "quadpy/**/*.py",
        "quadpy/**/*.pyi",
        "benchmarks/**/*.py",
        ".ci/*",
    )
    for file in sorted(CHECKOUT.glob(pattern))
]

OTHER_PROJECT = re.compile(
    r"""(?:pip3? install[^`\n"&|]*|["'])\bquadpy(?![\w.-])(?:\[[\w,-]+\]|(?=\s*(?:[=<>~!]=|@)))"""
)
"""A requirement named ``quadpy``: with extras or a version anywhere in quotes, or as an argument of pip."""

PLAIN = re.compile(r"""pip3? install (?:-\S+ )*["']?quadpy["']?(?![\w./-])""")


def tells_to_install_the_other(text: str) -> list[str]:
    return OTHER_PROJECT.findall(text) + PLAIN.findall(text)


def test_no_text_tells_users_to_install_the_other_project():
    assert len(TEXTS) > 500
    told = {
        file.relative_to(CHECKOUT).as_posix(): tells_to_install_the_other(file.read_text("utf-8")) for file in TEXTS
    }
    assert {file: found for file, found in told.items() if found} == {}


@pytest.mark.parametrize(
    "text",
    [
        "pip install quadpy",
        "pip install -U quadpy",
        "pip install 'quadpy[cuda]'",
        "'quadpy[cuda]'",
        '"quadpy>=1"',
        "pip install 'quadpy' ",
    ],
)
def test_such_a_text_is_recognised(text):
    assert tells_to_install_the_other(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install quadpy-lang",
        "pip install 'quadpy-lang[cuda]'",
        "pip install '.[examples]' && quadpy demo",
        '"quadpy"',
    ],
)
def test_ours_is_not_taken_for_it(text):
    assert not tells_to_install_the_other(text)


def test_an_installation_over_the_other_project_says_so(tmp_path):
    package = tmp_path / "quadpy"
    shutil.copytree(CHECKOUT / "quadpy", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "t2" / "_dunavant").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", "import quadpy; print(quadpy.__file__)"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(done.stdout.strip()) == package / "__init__.py"
    assert f"the folder {package} also holds files of another project" in done.stderr
    assert "pip uninstall --yes quadpy quadpy-lang && pip install quadpy-lang" in done.stderr


def test_one_alone_says_nothing():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import quadpy"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
