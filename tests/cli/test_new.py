"""``quadpy new`` writes a project whose test, benchmark and report work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from quadpy.cli import main


@pytest.fixture
def project(tmp_path, capsys):
    folder = tmp_path / "heat-flow"
    assert main(["new", str(folder)]) == 0
    assert capsys.readouterr().out == f"wrote {folder}: cd {folder} && pip install -e '.[dev]' && pytest\n"
    return folder


def test_its_test_passes(project):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
        cwd=project, env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # as in an environment of its own
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_its_benchmark_runs(project):
    file = project / "benchmarks" / "diffusion.py"
    file.write_text(file.read_text().replace("SIZE, STEPS = 2048, 50", "SIZE, STEPS = 64, 2"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(file)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" GB/s\n")


def test_its_kernel_meets_the_budget_of_its_readme(project, capsys):
    assert main(["report", str(project / "heat_flow" / "diffusion.py"), "--target", "gfx942", "--max-spills", "0"]) == 0
    assert "step_t0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("9lives", "cannot be the name"),
        ("a b", "cannot be"),
        ("class", "cannot be"),
        ("json", "another package"),
        ("quadpy", "another"),
    ],
)
def test_a_name_that_cannot_be_a_package_is_refused(name, reason, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", name]) == 1
    assert reason in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(project, capsys):
    (project / "README.md").write_text("mine")
    assert main(["new", str(project)]) == 1
    assert f"{project} already exists" in capsys.readouterr().err
    assert (project / "README.md").read_text() == "mine"
