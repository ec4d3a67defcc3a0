from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import quadpy
from quadpy import settings as settings_module
from quadpy._version import __version__
from quadpy.cache.cache import Cache, CacheKey
from quadpy.cli import SUBCOMMANDS, main
from quadpy.dist import probing
from quadpy.examples import mpm88
from quadpy.runtime.device import probe

DIGEST = CacheKey("ir", "cpu", "toolchain").digest()


@pytest.fixture(autouse=True)
def fresh_settings(monkeypatch, tmp_path):
    """Each test has its own cache folder and reads the settings again."""
    monkeypatch.setenv("QUADPY_CACHE_DIR", str(tmp_path / "cache"))
    settings_module.settings.cache_clear()


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.strip() == f"quadpy {__version__}"


@pytest.mark.parametrize("arguments", [[], ["no-such-command"], ["cache", "burn"]])
def test_a_wrong_command_line_is_status_2(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage: quadpy" in capsys.readouterr().err


@pytest.mark.parametrize("command", SUBCOMMANDS, ids=lambda command: command.NAME)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([command.NAME, "--help"])
    assert command.HELP in capsys.readouterr().out.replace("\n", " ")


def test_cache_shows_its_size_and_path_and_clears(tmp_path, capsys):
    Cache(tmp_path / "cache", 1 << 20).store(DIGEST, bytes(3 << 20 >> 2))
    assert main(["cache"]) == 0
    assert capsys.readouterr().out == f"1 entries, 0.8 of 256 MiB in {tmp_path / 'cache'}\n"
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'cache'}\n"
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"freed 0.8 MiB in {tmp_path / 'cache'}\n"
    assert main(["cache", "size"]) == 0
    assert capsys.readouterr().out.startswith("0 entries")


def test_cache_that_is_off(monkeypatch, capsys):
    monkeypatch.setenv("QUADPY_CACHE", "0")
    assert main(["cache"]) == 0
    assert capsys.readouterr().out == "the kernel cache is off\n"


def test_an_error_of_quadpy_is_a_message_and_status_1(monkeypatch, capsys):
    monkeypatch.setenv("QUADPY_CACHE_SIZE", "huge")
    assert main(["cache"]) == 1
    assert "QUADPY_CACHE_SIZE='huge'" in capsys.readouterr().err


def test_doctor_names_every_backend_and_gives_a_reason_for_each_that_is_missing(capsys):
    assert main(["doctor"]) == 0
    lines = {line[6:14].strip(): line for line in capsys.readouterr().out.splitlines()[1:]}
    assert lines["cpu"].startswith("  ok")
    assert "LLVM" in lines["cpu"]
    assert lines["cache"].startswith("  ok")
    for found in (probe.probe_hip(), probe.probe_cuda()):
        assert lines[found.backend].startswith("  ok" if found.available else "  --")
        assert found.reason in lines[found.backend]


@pytest.mark.parametrize("find", [probe.probe_hip, probe.probe_cuda])
def test_a_probe_has_devices_or_a_reason(find):
    found = find()
    assert found.available == bool(found.devices) == (not found.reason)


def test_a_probe_without_its_binding_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)  # what makes an import fail
    found = probe.probe_cuda()
    assert not found.available
    assert "cuda-bindings is not installed: pip install" in found.reason


def test_doctor_says_how_to_mend_a_cache_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("QUADPY_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert main(["doctor"]) == 0
    assert "QUADPY_CACHE=0 to work without a cache" in capsys.readouterr().out


def test_a_terminal_that_is_not_utf_8_and_modules_of_the_users_own(tmp_path):
    """What children import is not what lies in the current folder, and no letter ends a command."""
    for name in ("random", "types", "queue"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('my own module')")
    command = [str(Path(sys.executable).with_name("quadpy")), "selftest", "--arch", "cpu", "--only", "features.torch"]
    environ = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(quadpy.__path__[0]).parent)}
    if not Path(command[0]).exists():
        pytest.skip("quadpy is not installed here")
    for args in (command, [command[0], "doctor"]):
        child = subprocess.run(args, capture_output=True, text=True, cwd=tmp_path, env=environ, check=False)
        assert (child.returncode, child.stderr) == (0, "")
        assert "my own module" not in child.stdout


@pytest.mark.skipif(os.name != "posix", reason="the shell closes standard output")
def test_a_standard_output_that_is_closed():
    program = [sys.executable, "-m", "quadpy", "selftest", "--list"]
    child = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *program], capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")


def test_the_module_runs_as_a_program():
    child = subprocess.run([sys.executable, "-m", "quadpy", "--version"], capture_output=True, text=True, check=True)
    assert child.stdout.startswith("quadpy ")


def test_doctor_says_that_others_may_write_the_cache(tmp_path, capsys):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    main(["doctor"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if " cache " in line]
    assert line.startswith("  --")
    assert "it is not used, because other users may write to it (its mode is 777)" in line


def test_cache_and_doctor_print_json(tmp_path, capsys):
    Cache(tmp_path / "cache", 1 << 20).store(DIGEST, bytes(1000))
    assert main(["cache", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.pop("nbytes") >= 1000
    assert found == {"path": str(tmp_path / "cache"), "entries": 1, "limit": 256 << 20, "freed": 0}
    assert main(["cache", "clear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["freed"] >= 1000
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["quadpy"] == __version__
    assert {name: part["works"] for name, part in found["parts"].items() if name in {"cpu", "cache"}} == {
        "cpu": True,
        "cache": True,
    }


def test_ctrl_c_in_a_demo_is_quiet(monkeypatch, capsys):
    def interrupted(_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(mpm88, "main", interrupted)
    assert main(["demo", "mpm88"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["reprot"], "invalid choice: 'reprot'(.*); did you mean 'report'?"),
        (["doctor", "--jsn"], "quadpy doctor: error: unrecognized arguments: --jsn; did you mean '--json'?"),
        (["cache", "sise"], "did you mean 'size'?"),
        (["demo", "mpm8"], "did you mean 'mpm88'?"),
        (["profile", "--sort=totl", "p.py"], "did you mean 'total'?"),
        (["report", "a:b", "--target=gfx942", "--max-vgps=3"], "unrecognized arguments: --max-vgps=3; did you mean '--max-vgprs'?"),
        (["doctor", "zzz"], "unrecognized arguments: zzz$"),
    ],
)  # fmt: skip
def test_a_misspelled_command_line_says_what_was_meant(line, message, capsys):
    with pytest.raises(SystemExit) as caught:
        main(line)
    assert caught.value.code == 2
    assert re.search(message.replace("?", r"\?"), capsys.readouterr().err.strip())


def test_doctor_says_which_mpi_runs_ranks(capsys):
    assert main(["doctor", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["parts"]["mpi"]
    if importlib.util.find_spec("mpi4py") is None:
        assert not row["works"]
        assert "quadpy-lang[mpi]" in row["text"]
    else:
        assert row["works"], row["text"]
        assert re.search(r"^mpi4py \d\S*, .*/mpiexec", row["text"])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("raise SystemExit('no library')", "mpi4py cannot load an MPI library: no library: pip install"),
        ("import os; os.abort()", "mpi4py cannot load an MPI library: exit status -6"),
        ("import time; time.sleep(60)", "did not load its library within 1 s"),
    ],
)
def test_doctor_says_why_mpi_does_not_work(broken, message, monkeypatch, capsys):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    monkeypatch.setattr(probing, "_ASK", broken)
    monkeypatch.setattr(probing, "_SECONDS", 1)
    monkeypatch.setattr(probing, "find_mpiexec", lambda: "mpiexec")
    assert main(["doctor"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "  mpi " in line]
    assert line.startswith("  --")
    assert message in line


@pytest.mark.parametrize("command", ["profile", "run"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nomodule", "there is no module 'nomodule'"),
        ("nomodule.part", "there is no module 'nomodule.part'"),
        ("email", "'email' is a package without __main__"),
    ],
)
def test_a_module_that_cannot_run_is_refused(command, name, message, capsys):
    assert main([command, "-m", name]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
