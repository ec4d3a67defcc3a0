"""The command, its report, and the comparison of two: on the CPU, for real."""

from __future__ import annotations

import contextlib
import getpass
import json
import re
import socket
import time
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from quadpy.cli import main
from quadpy.errors import ArgumentError
from quadpy.selftest import report as reports
from quadpy.selftest.comparison import differences
from quadpy.selftest.page import page
from quadpy.selftest.runner import Run
from quadpy.selftest.session import Session
from quadpy.selftest.table import Result, chosen
from quadpy.settings import settings

SECRET = "Zx81-secret-value"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A whole quick run on the CPU: the exit status, what it printed, and its report."""
    patch, folder = pytest.MonkeyPatch(), tmp_path_factory.mktemp("selftest")
    said = []

    class Out:
        def write(self, text):
            said.append(text)

        def flush(self):
            pass

        def isatty(self):
            return False

    with patch.context() as patched:
        patched.setattr("sys.stdout", Out())
        patched.setenv("MY_TOKEN", SECRET)
        status = main(["selftest", "--quick", "--arch", "cpu", "--slow", "5", "--out", str(folder / "report.zip")])
    return status, "".join(said), folder / "report.zip"


def test_the_cpu_passes(whole):
    status, said, path = whole
    report = reports.read(path)
    assert status == report["status"] == 0, said
    assert {row["status"] for row in report["checks"]} == {"passed", "skipped"}
    assert [row["name"] for row in report["checks"]] == [check.name for check in chosen(quick=True, only=[])]
    assert said.splitlines()[-2] == "Everything that ran works."


def test_most_checks_really_run_on_the_cpu(whole):
    rows = reports.read(whole[2])["checks"]
    assert sum(row["status"] == "passed" for row in rows) >= 38
    assert all(row["text"] for row in rows if row["status"] == "skipped")


def test_a_report_has_data_and_a_page_that_needs_nothing_else(whole):
    with zipfile.ZipFile(whole[2]) as file:
        assert sorted(file.namelist()) == ["report.html", "report.json"]
        text = file.read("report.html").decode()

    links = []

    class Links(HTMLParser):
        def handle_starttag(self, tag, attrs):
            links.extend((tag, name) for name, _ in attrs if name in ("href", "src"))

    Links().feed(text)
    assert links == []
    assert "Everything that ran works." in text
    assert "language.integers" in text


def test_a_report_has_what_its_reader_asks_next(whole, monkeypatch):
    report = reports.read(whole[2])
    parts = [row["part"] for row in report["doctor"]]
    assert parts[:5] == ["cpu", "amdgpu", "cuda", "mpi", "cache"]
    assert "LLVM" in report["doctor"][0]["text"]
    assert re.fullmatch(r"quadpy-[\d.]+-[0-9a-f]{16};llvmlite-[\d.]+", report["toolchain"])
    assert (report["slow"], report["ordinal"], report["whole"]) == (5.0, 0, True)
    assert report["host"]["numpy"].count(".") == 2
    assert report["settings"]["QUADPY_CACHE_DIR"] == "set"
    monkeypatch.setenv("QUADPY_WITHOUT", "graphs")
    settings.cache_clear()
    later = reports.report_of(Session(Run("cpu", ordinal=1), [], whole=False), [(None, "XNACK", "on /data/acme/x")])
    assert later["settings"]["QUADPY_WITHOUT"] == "graphs"
    assert later["doctor"] == [{"part": "XNACK", "works": None, "text": "on …"}]
    compared = "\n".join(differences(report, later))
    assert re.search(r"XNACK +on …", compared)
    assert re.search(r"QUADPY_WITHOUT +graphs", compared)
    assert "--full --only --device 1 --slow 1" in page(later)


def private():
    home = Path.home()
    return {getpass.getuser(), socket.gethostname(), str(home), SECRET, str(Path(__file__).parent)} - {"root"}


def test_a_report_names_neither_the_machine_nor_its_user(whole):
    with zipfile.ZipFile(whole[2]) as file:
        text = file.read("report.json").decode() + file.read("report.html").decode()
    assert [name for name in private() if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)] == []


def test_what_a_failing_check_says_is_cleaned(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", SECRET)
    monkeypatch.setattr("socket.gethostname", lambda: "workstation-17")
    monkeypatch.setattr("getpass.getuser", lambda: "jsmith")
    text = (
        f"OSError: /home/jsmith/my project/x.py:17: no {SECRET} on workstation-17 (C:\\Users\\jsmith\\y.dll), "
        "'~/cache/quadpy/a.qpc', see 3/4 of 12 GB/s and quadpy/selftest"
    )
    check = chosen(quick=True, only=["memory.copies"])[0]
    session = Session(Run("cpu"), [check], whole=False, results={check.name: Result(check.name, "failed", text)})
    report = reports.report_of(session)
    said = report["checks"][0]["text"]
    for name in ("jsmith", SECRET, "workstation", "/home", "Users", "cache"):
        assert name not in json.dumps(report) + page(report)
    assert "x.py:17: no … on …" in said
    assert said.endswith("see 3/4 of 12 GB/s and quadpy/selftest")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("bob@login1 said no", "…@… said no"),
        ("login1.cluster.example.org and login1", "… and …"),
        ("hunter2 for http://u:passw0rd@proxy:3128", "… for"),
        ("cannot open /data/Secret Project/deep er/x.py", "cannot open …/x.py"),
        (r"C:\Users\Bob Smith\AppData\x.dll", "…/x.dll"),
        ("cc -L/data/acme/lib -lx /secretdir /mnt/acme", "cc … -lx … …"),
        ("acme/secret/file.so and '/data/x;y/z(1)/f'", "…/file.so and '…'"),
        ("192.168.7.12 GPU-3f2e1a77-12ab file:///data/al/x", "… … file:…"),
        (
            "bobbin at 3/4 of 12 GB/s, quadpy/codegen/x.py, 2/1.5, 7.2.1",
            "bobbin at 3/4 of 12 GB/s, quadpy/codegen/x.py, 2/1.5, 7.2.1",
        ),
    ],
)
def test_texts_of_others_are_scrubbed(monkeypatch, text, clean):
    environ = {"USER": "bob", "TOKEN": "hunter2", "https_proxy": "http://u:passw0rd@proxy:3128"}
    monkeypatch.setattr("os.environ", environ)
    monkeypatch.setattr("getpass.getuser", lambda: "bob")
    monkeypatch.setattr("socket.gethostname", lambda: "login1.cluster.example.org")
    found = reports.scrubber()(text)
    assert found.startswith(clean) if "proxy" in text else found == clean
    assert "passw0rd" not in found


@pytest.mark.parametrize("name", ["pass", "pool", "memory", "gfx942", "cuda", "float", "test"])
def test_what_quadpy_writes_is_no_secret(monkeypatch, name):
    """Users and hosts with ordinary names have whole reports; so has a user without a home."""
    monkeypatch.setenv("USER", name)
    monkeypatch.setattr("socket.gethostname", lambda: name)
    monkeypatch.setattr(
        Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("Could not determine home directory."))
    )
    check = chosen(quick=True, only=["memory.pool"])[0]
    run = Run("cuda", device={"arch": "gfx942", "name": f"the {name} GPU"})
    session = Session(
        run, [check], whole=False, results={check.name: Result(check.name, "passed", f"no {name}, {name}ed")}
    )
    report = reports.report_of(session)
    assert report["device"] == run.device
    assert {key: report["checks"][0][key] for key in ("name", "status", "proves", "text")} == {
        "name": "memory.pool", "status": "passed", "proves": check.proves, "text": f"no …, {name}ed",
    }  # fmt: skip


def test_runs_of_different_depth_have_no_ratios(whole):
    report = reports.read(whole[2])
    other = json.loads(json.dumps({**report, "quick": False}))
    said = differences(report, other)
    assert any(line.split()[:1] == ["quick"] for line in said)
    assert any("--quick measures other sizes" in line for line in said)
    assert not any(" x 1.00" in line for line in said)


def test_a_report_of_a_stranger_cannot_write_to_the_terminal(tmp_path, whole):
    report = reports.read(whole[2])
    report["device"]["name"] = "\x1b]0;mine\x07\x1b[2J\nsecond line \ud800"
    report["checks"][0]["figures"] = {"a_us": 1}
    file = zipped(tmp_path, json.dumps(report).replace('"a_us": 1', f'"a_us": {10**400}'))
    for line in differences(reports.read(file), reports.read(file)) + differences(
        reports.read(whole[2]), reports.read(file)
    ):
        assert line.isprintable()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_report_is_written_though_nothing_can_be_printed(tmp_path, monkeypatch):
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device, not a path of the project
        monkeypatch.setattr("sys.stdout", full)
        assert main(["selftest", "--arch", "cpu", "--only", "features.torch", "--out", str(tmp_path / "x.zip")]) == 1
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()
    assert reports.read(tmp_path / "x.zip")["checks"]


def test_a_page_escapes_what_checks_say():
    check = chosen(quick=True, only=["memory.copies"])[0]
    results = {check.name: Result(check.name, "failed", "<script>alert(1)</script>")}
    report = reports.report_of(Session(Run("cpu"), [check], whole=False, results=results))
    assert report["status"] == 1
    assert "<script>" not in page(report)
    assert "&lt;script&gt;" in page(report)


def test_what_no_capability_explains_is_not_called_harmless():
    """The advice of a check is for the case that quadpy does without."""
    check = chosen(quick=True, only=["graphs.branches"])[0]

    def advice(**changes):
        result = Result(check.name, "failed", "AssertionError: wrong")._replace(**changes)
        session = Session(Run("cuda"), [check], whole=False, results={check.name: result})
        return reports.report_of(session)["checks"][0]["remedy"]

    assert advice(without="passed") == check.remedy
    assert "send the report" in advice(without="failed")
    assert "rocm-smi" in advice(text="OutOfDeviceMemory: no 64.0 MiB left")


def test_a_page_shows_tables_of_figures():
    check = chosen(quick=False, only=["costs.crossing"])[0]
    figures = {
        "steps": [{"tasks": 2, "eager_us": 9.08531}, {"tasks": 4, "eager_us": 17.0}],
        "measured": {"launch_us": 4.2},
    }
    session = Session(
        Run("cuda"), [check], whole=False, results={check.name: Result(check.name, "passed", figures=figures)}
    )
    text = page(reports.report_of(session))
    assert "<th>tasks</th><th>eager_us</th>" in text
    assert "<td>2</td><td>9.085</td>" in text


def test_a_report_of_nothing_can_be_shown():
    """Ctrl-C came before the first check."""
    session = Session(Run("cpu"), chosen(quick=True, only=[]), whole=True, interrupted=True)
    report = reports.report_of(session)
    assert {row["status"] for row in report["checks"]} == {"not run"}
    assert "The self-test was interrupted." in page(report)
    assert differences(report, report)


def test_two_reports_are_compared(whole, tmp_path, capsys):
    report = reports.read(whole[2])
    other = json.loads(json.dumps(report))
    (row,) = (row for row in other["checks"] if row["name"] == "costs.launches")
    row["figures"]["launch_us"] = 2 * row["figures"]["launch_us"]
    other["checks"][0]["status"] = "failed"
    other["device"]["name"] = "another chip"
    reports.write(other, tmp_path / "other.zip")
    assert main(["selftest", "--compare", str(whole[2]), str(tmp_path / "other.zip")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^name +\S.* another chip$", said, re.MULTILINE)
    assert re.search(r"^language.integers +passed +failed$", said, re.MULTILINE)
    assert re.search(r"^costs.launches launch_us +\S+ +\S+ +x 2.00$", said, re.MULTILINE)
    assert "language.floats" not in said


def test_what_is_no_report_is_refused(tmp_path, capsys):
    file = tmp_path / "x.zip"
    file.write_text("no zip")
    with pytest.raises(ArgumentError, match="no report of quadpy selftest"):
        reports.read(file)
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("report.json", '{"format": 99}')
    with pytest.raises(ArgumentError, match="format 99"):
        reports.read(file)
    assert main(["selftest", "--compare", str(file), str(tmp_path / "missing.zip")]) == 1
    assert "quadpy: " in capsys.readouterr().err


def zipped(folder, data, name="report.json"):
    file = folder / "damaged.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, data)
    return file


@pytest.mark.parametrize(
    "data",
    ["[1]", "5", "null", "[" * 100_000, b"\xff\xfe\0", '{"format": 1}', '{"format": 1, "checks": 5}', '{"forma',
     '{"format": 1, "quadpy": "1", "host": {}, "device": {}, "off": {}, "checks": [{"name": null}]}',
     '{"format": 1, "quadpy": "1", "host": null, "device": {}, "off": {}, "checks": []}', b" " * (17 << 20)],
)  # fmt: skip
def test_data_that_is_no_report_is_refused(tmp_path, data, whole, capsys):
    assert main(["selftest", "--compare", str(whole[2]), str(zipped(tmp_path, data))]) == 1
    assert "is no report of quadpy selftest" in capsys.readouterr().err


def test_a_damaged_report_is_refused(tmp_path, whole):
    """Cut off anywhere, or with other bytes anywhere: an error that names it, or the report."""
    data, file, report = whole[2].read_bytes(), tmp_path / "damaged.zip", reports.read(whole[2])
    for at in range(0, len(data), 37):
        for damaged in (data[:at], data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]):
            file.write_bytes(damaged)
            with contextlib.suppress(ArgumentError):
                assert differences(reports.read(file), report)
    with pytest.raises(ArgumentError, match="cannot be read: Is a directory"):
        reports.read(tmp_path)


def test_reports_of_other_versions_are_compared(tmp_path, whole):
    """One has checks and figures that the other lacks."""
    report = reports.read(whole[2])
    older = json.loads(json.dumps(report))
    older["quadpy"], older["checks"] = "0.0.9", older["checks"][3:]
    for row in older["checks"]:
        row["figures"] = {"another_us": 1.0}
    said = "\n".join(differences(older, report))
    assert re.search(r"^quadpy +0.0.9 ", said, re.MULTILINE)
    assert re.search(r"^language.integers +not run +passed$", said, re.MULTILINE)


@pytest.mark.parametrize("place", ["missing/report.zip", "."])
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(tmp_path, capsys, place):
    begin = time.monotonic()
    assert main(["selftest", "--arch", "cpu", "--out", str(tmp_path / place)]) == 1
    out, err = capsys.readouterr()
    assert "cannot be written to" in err
    assert "language" not in out
    assert time.monotonic() - begin < 5


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_named_after_the_results(capsys):
    assert main(["selftest", "--arch", "cpu", "--only", "memory.copies", "--quick", "--out", "/dev/full"]) == 1
    out, err = capsys.readouterr()
    assert "passed   memory.copies" in out
    assert "cannot be written to /dev/full: No space left" in err


def test_the_checks_are_listed(capsys):
    assert main(["selftest", "--list", "--only", "graphs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(chosen(quick=False, only=["graphs"]))
    assert lines[0].startswith("graphs.captured ")


def test_a_check_that_does_not_exist_is_refused(capsys):
    for asked in (["--only", "graphs", "grahps.large"], ["--only", "grahps.large", "--only", "graphs"]):
        assert main(["selftest", *asked]) == 1
        assert "there is no check 'grahps.large'" in capsys.readouterr().err


@pytest.mark.parametrize("factor", ["0", "-3", "nan", "inf", "1e9"])
def test_a_factor_that_leaves_no_time_or_no_limit_is_refused(capsys, factor):
    assert main(["selftest", "--arch", "cpu", f"--slow={factor}"]) == 1
    assert "--slow is" in capsys.readouterr().err


def test_a_device_that_is_not_there_is_named_and_the_report_says_so(capsys, tmp_path):
    file = tmp_path / "x.zip"
    assert main(["selftest", "--quick", "--arch", "cpu", "--device", "3", "--only", "memory", "--out", str(file)]) == 1
    assert "there is no cpu device 3" in capsys.readouterr().err
    assert "there is no cpu device 3" in reports.read(file)["lost"]


def test_a_cache_that_cannot_be_written_is_no_failed_check(monkeypatch, capsys):
    monkeypatch.setenv("QUADPY_CACHE_DIR", "/proc/x")
    settings.cache_clear()
    assert main(["selftest", "--arch", "cpu", "--only", "features.programs"]) == 1
    out, err = capsys.readouterr()
    assert "features.programs" not in out
    assert "the kernel cache in /proc/x" in err
