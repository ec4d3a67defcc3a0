"""Kernels in texts that ``exec`` runs: their source is the text, and errors show its lines."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import quadpy as qp

PROGRAM = """
@qp.func
def half(x):
    return 0.5 * x

@qp.kernel
def fill(x: qp.Array1D[qp.f32]):
    for i in x:
        x[i] = half(qp.f32(FACTOR * i))

@qp.data_oriented
class Gas:
    @qp.kernel
    def heat(self, x: qp.Array1D[qp.f32]):
        for i in x:
            x[i] += 1.0
"""


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


def executed(text):
    names = {"qp": qp, "FACTOR": 4}
    exec(text, names)
    return names


def test_kernels_functions_and_methods_of_a_text():
    names, x = executed(PROGRAM), np.zeros(3, np.float32)
    names["fill"](x)
    assert x.tolist() == [0, 2, 4]
    names["Gas"]().heat(x)
    assert x.tolist() == [1, 3, 5]


def test_texts_that_define_the_same_name_are_kept_apart():
    kernels = [executed(PROGRAM.replace("0.5", str(factor)))["fill"] for factor in (1.0, 2.0)]
    x = np.zeros(3, np.float32)
    for kernel, wanted in [*zip(kernels, ([0, 4, 8], [0, 8, 16]), strict=True)] * 2:
        kernel(x)
        assert x.tolist() == wanted


@pytest.mark.parametrize("options", [{}, {"debug": True}, {"arch": qp.python}, {"unrolling_limit": 8}])
def test_variables_without_the_name_of_a_module(options, tmp_path):
    """``exec`` gives functions the module None then."""
    qp.init(**{"arch": qp.cpu, **options})
    x, names = np.zeros(3, np.float32), {"qp": qp, "FACTOR": 4}
    file = tmp_path / "text.py"
    file.write_text(PROGRAM, encoding="utf-8")
    exec(compile(PROGRAM, str(file), "exec"), names)
    assert names["fill"].__module__ is None
    names["fill"](x)
    assert x.tolist() == [0, 2, 4]


def test_an_error_shows_the_line_of_the_text():
    kernel = executed(PROGRAM.replace("FACTOR", "FACTR"))["fill"]
    with pytest.raises(qp.KernelNameError, match=r"^<exec \w{8}>:9:28: the name 'FACTR' is not defined") as caught:
        kernel(np.zeros(3, np.float32))
    assert "x[i] = half(qp.f32(FACTR * i))" in str(caught.value)
    assert "did you mean 'FACTOR'?" in caught.value.hint


def test_a_text_that_nobody_keeps_says_what_to_do():
    names = {"qp": qp}
    lines = ["@qp.kernel", "def gone(x: qp.Array1D[qp.f32]):", "    for i in x:", "        x[i] = 1.0"]
    exec("\n".join(lines), names)
    with pytest.raises(qp.KernelSourceError, match="the source of 'gone' cannot be found") as caught:
        names["gone"](np.zeros(3, np.float32))
    assert "in a variable" in caught.value.hint


def test_another_text_of_the_caller_is_not_taken_for_the_source():
    text = PROGRAM
    names = {"qp": qp, "FACTOR": 4}
    exec(text.replace("return 0.5 * x", "return 0.5 * x + 1"), names)  # its text is gone; that of ``text`` is another
    with pytest.raises(qp.KernelSourceError, match="the source of 'half' cannot be found"):
        names["fill"](np.zeros(3, np.float32))


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python keeps the text of -c from 3.13 on")
def test_a_program_on_the_command_line():
    program = (
        f"import numpy as np, quadpy as qp\nFACTOR = 4\n{PROGRAM}\nx = np.zeros(3, np.float32)\nfill(x)\nprint(x)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout == "[0. 2. 4.]\n"
