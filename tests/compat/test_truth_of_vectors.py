"""``if v == w:`` outside kernels: in Taichi and Quadrants every vector is true; quadpy refuses."""

import warnings

import numpy as np
import pytest

import quadpy as qp
import quadpy.compat.quadrants as qd
import quadpy.compat.taichi as ti

COMPARED = {
    "equal": lambda v, w, f: v == w,
    "unequal": lambda v, w, f: v != w,
    "less": lambda v, w, f: v < w,
    "an element": lambda v, w, f: f[0] == f[1],
    "an array": lambda v, w, f: v == np.array([1, 2, 3]),
    "a number": lambda v, w, f: v == 5,
    "a vector": lambda v, w, f: v,
    "a matrix": lambda v, w, f: ti.Matrix([[1, 2], [3, 4]]) == 1,
}


@pytest.fixture(params=[ti, qd], ids=["taichi", "quadrants"])
def lang(request):
    request.param.init(arch=request.param.cpu)
    return request.param


@pytest.mark.parametrize("case", COMPARED)
def test_truth_there_and_here(lang, case):
    v, w, f = lang.Vector([1, 2, 3]), lang.Vector([1, 2, 4]), lang.Vector.field(3, lang.i32, 2)
    with pytest.warns(RuntimeWarning, match=r"is true, as in Taichi: call .all\(\) or .any\(\)") as caught:
        assert COMPARED[case](v, w, f)
    assert caught[0].filename == __file__
    qp.init(arch=qp.cpu)
    with pytest.raises(qp.ArgumentError, match="neither true nor false"):
        bool(COMPARED[case](v, w, f))


def test_all_and_any_say_what_they_say(lang):
    v, w = lang.Vector([1, 2, 3]), lang.Vector([1, 2, 4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (v == v).all()
        assert not (v == w).all()
        assert (v == w).any()


def test_under_debug_and_python():
    for options in ({"debug": True}, {"arch": qp.python}):
        qp.init(**options)
        with pytest.raises(qp.ArgumentError, match="neither true nor false"):
            bool(qp.Vector([1]) == qp.Vector([1]))
    qp.init(arch=qp.cpu)
