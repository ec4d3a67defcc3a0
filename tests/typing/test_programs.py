"""The programs that type checkers read also run.  ``.ci/run`` runs mypy and basedpyright over them."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Annotated, TypeVar

import numpy as np
import pytest

import quadpy as qp

Bytes = Annotated[qp.Vector, qp.types.vector(2, qp.u8)]


@qp.dataclass
class Mark:
    colour: Bytes


@dataclasses.dataclass
class Page:
    marks: Annotated[object, qp.Array1D[Mark]]


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


def test_what_the_checkers_accept_runs():
    file = Path(__file__).with_name("program.py")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "annotation",
    [
        "qp.Array1D[qp.f32]",
        "qp.Array[qp.f32, 1]",
        "qp.Array[qp.f32]",
        "qp.Array1D",
        "qp.Array",
        "qp.types.Array1D[float]",
        "qp.Field",
        "qp.Field[qp.f32]",
        "qp.Field[qp.f32, 1]",
        "qp.NDArray[qp.f32]",
        "qp.NDArray[qp.f32, 1]",
    ],
)
def test_every_spelling_of_an_array_is_an_annotation(annotation):
    def double(x):
        for i in x:
            x[i] *= 2.0

    double.__annotations__["x"] = eval(annotation)
    x = np.arange(5, dtype=np.float32)
    qp.kernel(double)(x)
    np.testing.assert_array_equal(x, [0, 2, 4, 6, 8])


def test_an_annotated_type_is_the_one_that_quadpy_reads():
    @qp.kernel
    def paint(page: Page, colour: Bytes):
        for i in page.marks:
            page.marks[i].colour = colour

    marks = qp.ndarray(Mark, 2)
    assert Mark.members["colour"] == qp.types.vector(2, qp.u8)
    paint(Page(marks), [7, 9])
    assert marks.to_numpy()["colour"].tolist() == [[7, 9]] * 2
    with pytest.raises(qp.ArgumentError, match="colour"):
        paint(Page(marks), [7, 9, 3])


def test_an_array_of_a_type_variable_takes_any_elements():
    assert qp.Array2D[TypeVar("Value", float, qp.Vector)] == qp.Array2D


@pytest.mark.parametrize(
    ("module", "file"), [("math.functions", "math/functions.pyi"), ("math.linalg", "math/linalg/__init__.pyi")]
)
def test_stubs_of_functions_have_their_parameters(module, file):
    stub = ast.parse((Path(qp.__file__).parent / file).read_text("utf-8"))
    written = {
        node.name: [arg.arg for arg in node.args.args] for node in stub.body if isinstance(node, ast.FunctionDef)
    }
    made = importlib.import_module(f"quadpy.{module}")
    assert written == {name: list(inspect.signature(getattr(made, name)).parameters) for name in made.__all__}


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_the_number_of_axes_is_checked(axes):
    def fill(x):
        for index in qp.grouped(x):
            x[index] = 0.0

    fill.__annotations__["x"] = getattr(qp, f"Array{axes}D")[qp.f32]
    clear = qp.kernel(fill)
    x = np.ones((2,) * axes, np.float32)
    clear(x)
    assert not x.any()
    with pytest.raises(qp.ArgumentError, match=rf"{axes}"):
        clear(np.ones((2,) * (axes + 1), np.float32))


@pytest.mark.parametrize("annotation", ["qp.Field[qp.f32, 1]", "qp.NDArray[qp.f32, 1]"])
def test_a_field_or_an_ndarray_that_is_annotated_with_its_type_is_checked(annotation):
    def clear(x):
        for i in x:
            x[i] = 0.0

    clear.__annotations__["x"] = eval(annotation)
    kernel = qp.kernel(clear)
    for made in (qp.field(qp.f32, 3), qp.ndarray(qp.f32, 3)):
        made.fill(1.0)
        kernel(made)
        assert made.to_numpy().tolist() == [0] * 3
    with pytest.raises(qp.ArgumentError, match="x takes elements of f32, not f64"):
        kernel(np.ones(3))
    with pytest.raises(qp.ArgumentError, match="1"):
        kernel(np.ones((3, 3), np.float32))


def test_a_type_of_elements_is_given_once():
    with pytest.raises(qp.ArgumentError, match="already has an element type"):
        qp.Array1D[qp.f32][qp.f64]
