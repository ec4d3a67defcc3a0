"""``quadpy inspect``: the stages of a kernel."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from quadpy.cli import main
from quadpy.runtime.device.current import current_config, set_config


def test_the_ir_comes_first(sample, capsys):
    assert main(["inspect", f"{sample}:saxpy"]) == 0
    assert capsys.readouterr().out.startswith("kernel saxpy(a: f32, x: f32[?], y: f32[?]) -> ()")


def test_what_each_task_touches(sample, capsys):
    assert main(["inspect", f"{sample}:histogram", "--stage", "effects"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["kernel", "histogram"] in lines
    assert ["reads", "keys[:]", "line", "27"] in lines
    assert ["reads", "some", "of", "counts[:]", "line", "27"] in lines
    assert ["writes", "some", "of", "counts[:]", "line", "27"] in lines
    assert ["reads", "weights[0", ":", "keys.shape[0]]", "line", "28"] in lines


def test_fields_have_the_names_that_their_owners_know(tmp_path, capsys):
    file = tmp_path / "fields.py"
    file.write_text(
        "import quadpy as qp\nqp.init(arch=qp.cpu)\nu = qp.field(qp.f32, shape=(4, 5), name='u')\n"
        "@qp.kernel\ndef put():\n    for i, j in u:\n        u[i, j] = 1.0\n",
        encoding="utf-8",
    )
    assert main(["inspect", f"{file}:put", "--stage", "effects"]) == 0
    assert "writes u[:, :]" in capsys.readouterr().out


@pytest.fixture
def configuration():
    before = current_config()
    yield
    set_config(before)


@pytest.mark.usefixtures("configuration")
def test_checks_are_shown_with_their_lines(sample, capsys):
    assert main(["inspect", f"{sample}:saxpy", "--debug"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"check 0: KernelIndexError .*sample\.py:11:\d+ 'y'", shown)
    assert "fault" in shown


@pytest.mark.parametrize(
    ("target", "stage", "texts"),
    [
        ("cpu", "llvm", ["target triple", "fmul float", "fadd float"]),
        ("gfx942", "llvm", ['target triple = "amdgcn-amd-amdhsa"', "amdgpu_kernel void @saxpy_t0("]),
        ("cpu", "asm", ["saxpy_t0"]),
        ("gfx1100", "asm", ["v_mul_f32", "v_add_f32", "s_endpgm", ".amdhsa_kernel saxpy_t0"]),
        ("gfx1100:w64", "asm", [".amdhsa_wavefront_size32 0"]),
    ],
)
def test_what_a_target_gets(target, stage, texts, sample, capsys):
    assert main(["inspect", f"{sample}:saxpy", "--target", target, "--stage", stage]) == 0
    shown = capsys.readouterr().out
    assert [text for text in texts if text not in shown] == []


def test_the_passes_are_printed_without_a_kernel(capsys):
    with pytest.raises(SystemExit) as end:
        main(["inspect", "--passes"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    lines = [line.split()[0] for line in shown.splitlines()]
    assert lines[:3] == ["every", "split_tasks", "drop_unused_results"]
    assert {"cpu:", "amdgpu:", "nvptx:"} <= set(lines)


@pytest.mark.parametrize(
    ("name", "target", "text"),
    [
        ("trace", "cpu", "parallel %i"),
        ("split_tasks", "cpu", "task saxpy_t0"),
        ("stores_last", "gfx942", "task saxpy_t0"),
    ],
)
def test_the_ir_after_a_pass(name, target, text, sample, capsys):
    assert main(["inspect", f"{sample}:saxpy", "--target", target, "--after", name]) == 0
    assert text in capsys.readouterr().out


def test_an_unknown_pass_lists_the_passes_of_the_target(sample, capsys):
    assert main(["inspect", f"{sample}:saxpy", "--after", "stores_last"]) == 1
    message = capsys.readouterr().err
    assert "cpu has no pass 'stores_last'" in message
    assert "trace, split_tasks" in message
    assert "flatten_branches" in message


def test_a_pass_shows_ir_only(sample, capsys):
    assert main(["inspect", f"{sample}:saxpy", "--after", "trace", "--stage", "asm"]) == 1
    assert "shows IR, not asm" in capsys.readouterr().err


def test_fast_math_contracts_and_the_default_does_not(sample, capsys):
    command = ["inspect", f"{sample}:saxpy", "--target", "gfx1100", "--stage", "asm"]
    assert main(command) == 0
    assert "fma" not in capsys.readouterr().out
    assert main([*command, "--fast-math"]) == 0
    assert "fma" in capsys.readouterr().out


def test_a_reader_that_stops_early_is_no_traceback(sample):
    child = subprocess.Popen(
        [sys.executable, "-m", "quadpy", "inspect", f"{sample}:saxpy", "--stage", "asm"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    child.stdout.close()
    assert child.stderr.read() == ""
    child.stderr.close()
    assert child.wait(60) == 1
