from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from quadpy.cache.cache import pack_parts, unpack_parts

parts = st.dictionaries(st.text(), st.binary(), max_size=5)


@given(parts)
def test_parts_come_back_in_order(parts):
    assert list(unpack_parts(pack_parts(parts)).items()) == list(parts.items())


@given(parts, st.data())
def test_a_container_cut_short_or_extended_is_refused(parts, data):
    packed = pack_parts(parts)
    cut = data.draw(st.integers(0, len(packed) - 1))
    for wrong in (packed[:cut], packed + b"x"):
        with pytest.raises(ValueError):  # noqa: PT011 - the words are json's in half of the cases
            unpack_parts(wrong)


@given(st.binary(max_size=100))
def test_anything_else_is_refused_or_read_whole(data):
    try:
        found = unpack_parts(data)
    except ValueError:
        return
    assert sum(map(len, found.values())) < len(data)
