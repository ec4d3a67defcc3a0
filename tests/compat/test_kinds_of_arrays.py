"""Taichi's classes and attributes of fields and arrays, and attributes of the user's own."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.taichi as ti
from quadpy.errors import ArgumentError

Pair = ti.types.struct(n=ti.f32, m=ti.types.vector(2, ti.i32))


@pytest.fixture(autouse=True)
def cpu():
    ti.init(arch=ti.cpu)


MAKERS = {
    "ScalarField": lambda: ti.field(ti.f32, 3),
    "MatrixField of vectors": lambda: ti.Vector.field(3, ti.f32, 4),
    "MatrixField of matrices": lambda: ti.Matrix.field(2, 3, ti.f32, 4),
    "MatrixField without a shape": lambda: ti.Vector.field(2, ti.f32),
    "StructField": lambda: Pair.field(shape=3),
    "ScalarNdarray": lambda: ti.ndarray(ti.i32, 3),
    "VectorNdarray": lambda: ti.Vector.ndarray(3, ti.f32, 4),
    "MatrixNdarray": lambda: ti.Matrix.ndarray(2, 3, ti.f32, 4),
    "MatrixNdarray in another order": lambda: qp.tensor(ti.types.matrix(2, 2, ti.f32), (3, 4), layout=(1, 0)),
    "Ndarray of structs": lambda: ti.ndarray(Pair, 3),
    "ScalarNdarray that is a part": lambda: qp.BufferView(ti.ndarray(ti.i32, 8), 2, 3),
}
FIELDS = {"Field", "ScalarField", "MatrixField", "StructField"}
ARRAYS = {"Ndarray", "ScalarNdarray", "VectorNdarray", "MatrixNdarray"}


@pytest.mark.parametrize("what", MAKERS)
def test_classes_are_told_apart_by_elements(what):
    made, kind = MAKERS[what](), what.split()[0]
    found = {name for name in FIELDS | ARRAYS if isinstance(made, getattr(ti, name))}
    assert found == {kind, "Field" if kind in FIELDS else "Ndarray"}
    assert not any(isinstance(thing, (ti.Field, ti.Ndarray)) for thing in (1, np.zeros(3), ti.root))


def test_classes_annotate_and_make_nothing():
    @ti.kernel
    def double(x: ti.Ndarray, y: ti.VectorNdarray):
        for i in x:
            x[i] = y[i].x * 2

    x, y = ti.ndarray(ti.i32, 3), ti.Vector.ndarray(2, ti.i32, 3)
    y.fill(4)
    double(x, y)
    assert x.to_numpy().tolist() == [8, 8, 8]
    with pytest.raises(ArgumentError, match=r"MatrixField is a class to ask for.*\n.*field\(\)"):
        ti.MatrixField([], 2, 2)
    assert issubclass(ti.MatrixField, ti.Field)


@pytest.mark.parametrize(
    ("what", "n", "m"),
    [("MatrixField of vectors", 3, 1), ("MatrixField of matrices", 2, 3), ("MatrixField without a shape", 2, 1),
     ("VectorNdarray", 3, 1), ("MatrixNdarray", 2, 3), ("MatrixNdarray in another order", 2, 2)],
)  # fmt: skip
def test_extents_of_elements(what, n, m):
    made = MAKERS[what]()
    assert (made.n, made.m) == (n, m)
    assert made.element_shape in {(n,), (n, m)}
    assert made.element_type == (ti.types.vector(n, made.dtype) if m == 1 else ti.types.matrix(n, m, made.dtype))
    assert made.layout is ti.Layout.AOS


def test_numbers_have_no_extents():
    for what in ("ScalarField", "ScalarNdarray"):
        made = MAKERS[what]()
        assert made.element_type == made.dtype
        with pytest.raises(AttributeError, match="has no attribute 'n'"):
            made.n  # noqa: B018
        assert not hasattr(made, "m")


def test_members_of_structs_come_before_these_names():
    for what in ("StructField", "Ndarray of structs"):
        made = MAKERS[what]()
        assert list(made.field_dict) == ["n", "m"]
        assert (made.n.dtype, made.m.n, made.m.m) == (ti.f32, 2, 1)
        made.field_dict["m"][1] = [3, 4]
        assert made[1].m[1] == 4
        assert not hasattr(made.m, "field_dict")


def test_nodes_around_fields():
    x = ti.field(ti.f32)
    node = ti.root.dense(ti.i, 2).dense(ti.ij, (2, 3))
    node.place(x)
    assert x.parent() is node
    assert (ti.root.shape, node.shape, x.parent(2).shape, x.parent(3) is ti.root) == ((), (4, 3), (2,), True)
    assert ti.root.parent() is None


@pytest.mark.parametrize("what", [what for what in MAKERS if what != "MatrixField without a shape"])
def test_attributes_of_the_users_own(what):
    made = MAKERS[what]()
    made.density = 1.5
    made.note = ["kept"]
    assert (made.density, made.note) == (1.5, ["kept"])
    for other in (copy.copy(made), pickle.loads(pickle.dumps(made))):
        assert (other.density, other.note) == (1.5, ["kept"])
    del made.note
    assert not hasattr(made, "note")
    for name in ("shape", "dtype") if what != "StructField" else ("shape",):
        with pytest.raises(AttributeError):
            setattr(made, name, 1)


@pytest.mark.parametrize("what", ["StructField", "Ndarray of structs"])
def test_members_of_structs_are_not_replaced_by_attributes(what):
    made = MAKERS[what]()
    with pytest.raises(AttributeError, match=r"the member 'n' .*cannot be replaced: write to its elements"):
        made.n = 3
    assert made.n[0] == 0


def test_kernels_read_attributes_of_the_users_own():
    x = ti.Vector.field(3, ti.f32, 4)
    x.scale = 2.5

    @ti.kernel
    def run() -> ti.f32:
        for i in x:
            x[i] = x.scale * x.n
        return x.scale

    assert run() == 2.5
    assert x[1][0] == 7.5
