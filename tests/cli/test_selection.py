"""The kernels and targets that a command line selects."""

from __future__ import annotations

import argparse
import sys

import pytest

import quadpy as qp
from quadpy.cli import main
from quadpy.cli.loading import load_kernels
from quadpy.cli.selection import Selected, add_kernel_arguments, add_target_arguments, select, targets_of
from quadpy.core.target import AMD_ARCHS
from quadpy.runtime.device.current import current_config


def selection(*arguments: str) -> list[Selected]:
    parser = argparse.ArgumentParser()
    add_kernel_arguments(parser)
    return select(parser.parse_args(arguments))


def targets(*arguments: str) -> list[str]:
    parser = argparse.ArgumentParser()
    add_target_arguments(parser)
    return [str(target) for target in targets_of(parser.parse_args(arguments))]


def test_a_file_has_the_kernels_that_it_defines(sample):
    assert list(load_kernels(sample)) == ["saxpy", "shift", "histogram"]


def test_a_name_may_lead_through_attributes(sample):
    (found,) = load_kernels(f"{sample}:Group.inner").values()
    assert found.source.name == "saxpy"


def test_a_module_is_found_in_the_current_folder(sample, tmp_path, monkeypatch):
    (tmp_path / "package_of_kernels").mkdir()
    (tmp_path / "package_of_kernels" / "inner.py").write_text(
        "import quadpy as qp\nfrom .other import n\n@qp.kernel\ndef k(x: qp.f32) -> qp.f32:\n    return x * n\n"
    )
    (tmp_path / "package_of_kernels" / "other.py").write_text("n = 3.0\n")
    monkeypatch.chdir(tmp_path)
    for name in ("package_of_kernels", "package_of_kernels.inner", "package_of_kernels.other"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert list(load_kernels("package_of_kernels.inner")) == ["k"]


def test_a_file_can_import_its_neighbours_whose_kernels_are_not_its_own(tmp_path):
    kernel = "import quadpy as qp\n@qp.kernel\ndef {}(x: qp.f32) -> qp.f32:\n    return x * 2.0\n"
    (tmp_path / "neighbour_of_kernels.py").write_text(kernel.format("other"))
    (tmp_path / "main.py").write_text(
        "from neighbour_of_kernels import other\nassert __name__ == 'main'\n" + kernel.format("k")
    )
    assert list(load_kernels(str(tmp_path / "main.py"))) == ["k"]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("no_such_module:k", qp.KernelSourceError, "there is no module 'no_such_module'"),
        ("no_such_package.module:k", qp.KernelSourceError, "there is no module"),
        (":k", qp.KernelSourceError, "there is no module ''"),
        ("no/such/file.py:k", qp.KernelSourceError, "there is no file"),
        ("quadpy.errors", qp.KernelNameError, "has no kernels"),
        ("quadpy.errors:QuadpyError", qp.KernelNameError, "has no kernel 'QuadpyError'"),
    ],
)
def test_what_is_not_there_is_named(text, error, message):
    with pytest.raises(error, match=message):
        load_kernels(text)


def test_a_wrong_name_is_answered_with_the_right_ones(sample):
    with pytest.raises(qp.KernelNameError, match=r"no kernel 'sax'\n.*saxpy, shift, histogram"):
        load_kernels(f"{sample}:sax")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-1.5", -1.5),
        ("'word'", "word"),
        ("(1, 2)", (1, 2)),
        ("f64", qp.f64),
        ("TWO", 2),
        ("Group.inner", None),
    ],
)
def test_compile_time_values(sample, text, value):
    (selected,) = selection(f"{sample}:shift", "--arg", f"n={text}")
    found = selected.given["n"]
    assert found == value if value is not None else found.source.name == "saxpy"


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("f32[2]", qp.types.ndarray(dtype=qp.f32, ndim=2)),
        ("u8[0]", qp.types.ndarray(dtype=qp.u8, ndim=0)),
        ("f32x3[1]", qp.types.ndarray(dtype=qp.types.vector(3, qp.f32), ndim=1)),
        ("f64x2x4[3]", qp.types.ndarray(dtype=qp.types.matrix(2, 4, qp.f64), ndim=3)),
    ],
)
def test_array_types(sample, text, type):
    (selected,) = selection(f"{sample}:shift", "--arg", f"source={text}")
    assert selected.given == {"source": type}


def test_an_argument_reaches_the_kernels_that_leave_it_open(sample):
    given = {name: given for name, _, given in selection(sample, "--arg", "n=1", "--arg", "source=f32[2]")}
    assert given["saxpy"] == given["histogram"] == {}
    assert list(given["shift"]) == ["source", "n"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("n", "--arg n is not NAME=TYPE"),
        ("=3", "is not NAME=TYPE"),
        ("missing=3", "--arg missing: shift has no such parameter"),
        ("by=f32", "--arg by: shift has no such parameter, or its annotation is complete"),
        ("n=nowhere", "is neither an array type nor an expression"),
        ("source=f31[2]", "is neither an array type nor an expression"),
    ],
)
def test_a_wrong_argument_is_named(sample, option, message):
    with pytest.raises(qp.ArgumentError, match=message):
        selection(f"{sample}:shift", "--arg", option)


def test_fast_math_is_that_of_init(sample):
    selection(sample)
    assert not current_config().fast_math
    selection(sample, "--fast-math")
    assert current_config().fast_math


def test_targets_are_listed_or_all_of_amds():
    assert targets("--target", "gfx942,gfx1100:w64,cpu,gfx942") == ["gfx942", "gfx1100:w64", "cpu"]
    assert targets("--all-amd") == list(AMD_ARCHS)


@pytest.mark.parametrize("command", ["compile", "report", "inspect"])
def test_an_unknown_target_is_status_1_with_a_hint(command, sample, capsys):
    assert main([command, f"{sample}:saxpy", "--target", "gfx943"]) == 1
    error = capsys.readouterr().err
    assert "there is no target 'gfx943'" in error
    assert "did you mean 'gfx942'?" in error


@pytest.mark.parametrize("command", ["compile", "report"])
def test_a_target_must_be_said(command, sample, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([command, sample])
    assert "one of the arguments --target --all-amd is required" in capsys.readouterr().err


CLASSES = """
import quadpy as qp

class Solver:
    def __init__(self, n):
        self.n, self.x = n, qp.field(qp.f32, n)

    @qp.kernel
    def step(self, dt: qp.f32):
        for i in self.x:
            self.x[i] += dt * self.n

    @staticmethod
    @qp.kernel
    def scale(x: qp.types.NDArray[qp.f32, 1]):
        for i in x:
            x[i] *= 2.0

class Other(Solver):
    @qp.kernel
    def more(self):
        for i in self.x:
            self.x[i] += 1.0

solver = Solver(8)
"""


def test_methods_of_classes(tmp_path, capsys):
    file = tmp_path / "classes.py"
    file.write_text(CLASSES)
    assert set(load_kernels(str(file))) == {
        "solver.step", "Solver.scale", "Other.step", "Other.scale", "Other.more",
    }  # fmt: skip
    out = tmp_path / "out"
    assert main(["compile", str(file), "--target", "gfx942", "--arg", "self=Other(4)", "--out", str(out)]) == 0
    assert {each.name for each in out.glob("*.hsaco")} == {
        f"{name}-gfx942.hsaco" for name in ("solver.step", "Solver.scale", "Other.step", "Other.scale", "Other.more")
    }
    capsys.readouterr()
    assert main(["report", str(file), "--target", "gfx942"]) == 1
    message = capsys.readouterr().err
    assert "step: the compile-time parameter 'self' has no value" in message
    assert "--arg self=" in message
    assert main(["report", f"{file}:solver.step", "--target", "gfx942", "--max-vgprs", "1"]) == 3
    assert main(["inspect", f"{file}:Solver.step", "--arg", "self=Solver(3)"]) == 0
    assert "step" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "cannot be run: ZeroDivisionError: division by zero (line 1 of "),
        ("import nowhere_at_all", "cannot be run: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def f(:", "cannot be read: SyntaxError"),
        ("import sys\nsys.exit(3)", "cannot be run: SystemExit: 3"),
        ("def f():\n    raise ValueError('x')\nf()", "cannot be run: ValueError: x (line 2 of "),
    ],
)
def test_files_that_cannot_be_run(tmp_path, capsys, text, message):
    (tmp_path / "bad.py").write_text(text)
    for command in (["inspect"], ["compile", "--target", "cpu"], ["report", "--target", "gfx942"]):
        assert main([command[0], str(tmp_path / "bad.py"), *command[1:]]) == 1
        shown = capsys.readouterr().err
        assert message in shown
        assert "Traceback" not in shown
