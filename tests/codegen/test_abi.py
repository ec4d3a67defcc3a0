"""The argument block: C's struct rules, in the order of the parameters."""

from __future__ import annotations

import ctypes
import struct

from hypothesis import given, strategies as st

from quadpy.codegen.abi import layout_of
from quadpy.core.dtypes import SCALARS, i32, i64
from quadpy.core.source import NOWHERE
from quadpy.ir import nodes as ir
from quadpy.ir.types import Array, array_of

C_TYPES = {
    "?": ctypes.c_bool, "b": ctypes.c_int8, "B": ctypes.c_uint8, "h": ctypes.c_int16, "H": ctypes.c_uint16, "i": ctypes.c_int32,
    "I": ctypes.c_uint32, "q": ctypes.c_int64, "Q": ctypes.c_uint64, "f": ctypes.c_float, "d": ctypes.c_double,
}  # fmt: skip
scalars = st.sampled_from(SCALARS)
arrays = st.builds(
    lambda t, ndim, strided: array_of(t, ndim, strided=strided), scalars, st.integers(0, 3), st.booleans()
) | st.builds(lambda t, shape: array_of(t, len(shape), shape=shape), scalars, st.tuples(st.integers(0, 9)))


def kernel(types, index):
    params = tuple(
        ir.ArrayParam(f"p{n}", t, span=NOWHERE) if isinstance(t, Array) else ir.ScalarParam(f"p{n}", t, span=NOWHERE)
        for n, t in enumerate(types)
    )
    return ir.Kernel("k", params, (), (), ir.Block((), span=NOWHERE), index=index, span=NOWHERE)


@given(st.lists(scalars | arrays, max_size=12), st.sampled_from([i32, i64]))
def test_offsets_are_those_of_a_c_struct(types, index):
    layout = layout_of(kernel(types, index))
    fields = [(f"f{n}", C_TYPES[slot.code]) for n, slot in enumerate(layout.values)]
    block = type("Block", (ctypes.Structure,), {"_fields_": fields})
    assert [slot.offset for slot in layout.values] == [getattr(block, name).offset for name, _ in fields]
    assert layout.size == -(-struct.calcsize(layout.format) // 8) * 8


def test_the_parts_of_an_array_in_order():
    layout = layout_of(kernel([array_of(i32, 2, strided=True), i32, array_of(i32, 1, shape=(4,))], i32))
    parts = [(slot.param, slot.part, slot.axis, slot.code) for slot in layout.values]
    assert parts == [
        ("p0", "pointer", 0, "Q"), ("p0", "extent", 0, "i"), ("p0", "extent", 1, "i"), ("p0", "stride", 0, "q"),
        ("p0", "stride", 1, "q"), ("p1", "scalar", 0, "i"), ("p2", "pointer", 0, "Q"),
    ]  # fmt: skip
