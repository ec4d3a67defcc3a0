"""Arguments by position, by keyword and by default, and the values that a launch packs of them."""

from __future__ import annotations

import inspect
import struct

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import quadpy as qp
from quadpy.core.dtypes import f32, f64
from quadpy.jit.annotations import arranging
from quadpy.jit.parameters import ScalarParameter, StructParameter, VectorParameter


def plain(a, b, c):
    pass


def with_defaults(a, b=2, c=3.0):
    pass


def only_by_name(a, b=2, *, c, d="d"):
    pass


def nothing():
    pass


@hypothesis.given(
    fn=st.sampled_from([plain, with_defaults, only_by_name, nothing]),
    args=st.lists(st.integers(), max_size=4),
    kwargs=st.dictionaries(st.sampled_from("abcde"), st.integers(), max_size=4),
    is_bound=st.booleans(),
)
@hypothesis.settings(max_examples=300)
def test_arguments_are_arranged_as_python_binds_them(fn, args, kwargs, is_bound):
    signature = inspect.signature(fn)
    if is_bound and signature.parameters:
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        with pytest.raises(TypeError):
            arranging(fn, is_bound)(*args, **kwargs)
        return
    bound.apply_defaults()
    assert arranging(fn, is_bound)(*args, **kwargs) == tuple(bound.arguments.values())


@hypothesis.given(value=st.floats() | st.integers(-(2**1024) + 1, 2**1024 - 1) | st.integers(-(2**70), 2**70))
@hypothesis.example(value=float(np.finfo(np.float32).max) * (1 + 2**-25))  # the last that does not round to infinity
@hypothesis.example(value=float(np.finfo(np.float32).max) * (1 + 2**-24))
@hypothesis.example(value=5e-324)
def test_what_f32_cannot_hold_is_rounded_once_or_infinite(value):
    try:
        (found,) = ScalarParameter("x", f32).values(value)
    except qp.ArgumentError:
        assert isinstance(value, int)
        assert abs(value) >= 2**1024 - 2**970
        return
    with np.errstate(over="ignore"):
        wanted = np.float32(value) if isinstance(value, float) else _nearest_single(value)
    assert struct.pack("<f", found) == wanted.tobytes()


def _nearest_single(value: int) -> np.float32:
    """By exact integers: ties go to the even neighbour."""
    if abs(value) < 2**24:
        return np.float32(value)
    shift = abs(value).bit_length() - 24
    kept, rest = abs(value) >> shift, abs(value) & ((1 << shift) - 1)
    kept += rest > 1 << (shift - 1) or (rest == 1 << (shift - 1) and kept & 1)
    if (kept << shift) >= 2**128:
        return np.float32(np.inf) * np.float32(np.sign(value))
    return np.float32(float(kept << shift)) * np.float32(1 if value > 0 else -1)


PAIR = qp.types.struct(a=qp.f32, v=qp.types.vector(2, qp.f64), n=qp.i8)


@hypothesis.given(a=st.floats(width=32), x=st.floats(), y=st.floats(), n=st.integers(-128, 127))
@hypothesis.settings(max_examples=50)
def test_values_of_the_parameters_own_type_are_those_of_any_other(a, x, y, n):
    """A struct or a vector of the declared type is packed without a conversion."""
    single = VectorParameter("v", f64, (2,))
    packed = struct.pack("2d", *single.values(qp.Vector([x, y], dt=qp.f64)))
    assert packed == struct.pack("2d", *single.values([x, y]))
    pair = StructParameter("p", PAIR, PAIR.record())
    members = {"a": a, "v": [x, y], "n": n}
    assert struct.pack("f2db", *pair.values(PAIR(members))) == struct.pack("f2db", *pair.values(members))


def test_members_of_the_default_type_follow_the_call():
    """A struct may be made before ``qp.init`` chooses what ``float`` means."""
    kind = qp.types.struct(a=float)
    made = kind(a=1.0)
    wide = kind({"a": 0.1})
    assert StructParameter("s", kind, kind.record()).values(made) == [1.0]
    assert StructParameter("s", kind, kind.record()).values(wide) == [float(np.float32(0.1))]
