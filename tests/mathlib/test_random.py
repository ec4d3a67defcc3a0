"""Philox against its authors' known answers; the distributions made from it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_ops import load

ONES = 0xFFFFFFFF
KNOWN = [  # the Random123 distribution's kat_vectors, philox4x32 10
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES, ONES, ONES, ONES), (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_philox_gives_the_known_answers(counter, key, expected):
    words = load("random", np.float32).philox(*(np.array([w], np.uint32) for w in (*counter, *key)))
    assert tuple(int(w[0]) for w in words) == expected


def words(count, columns):
    return np.random.default_rng(7).integers(0, 2**32, (columns, count), dtype=np.uint32)


def test_uniform_numbers_are_exact_multiples_below_one():
    high, low = words(10_000, 2)
    high[:2], low[:2] = (0, ONES), (0, ONES)
    narrow, wide = load("random", np.float32).uniform_f32(high), load("random", np.float64).uniform_f64(high, low)
    np.testing.assert_array_equal(narrow, (high >> np.uint32(8)) * np.float32(2**-24))
    combined = (high.astype(np.uint64) << np.uint64(21)) | (low >> np.uint32(11))
    np.testing.assert_array_equal(wide, combined.astype(np.float64) * 2.0**-53)
    assert narrow.max() < 1
    assert wide.max() < 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_numbers_have_the_moments_of_a_normal_distribution(dtype):
    columns, name = (2, "normal_f32") if dtype == np.float32 else (4, "normal_f64")
    count = 200_000
    z = getattr(load("random", dtype), name)(*words(count, columns))
    assert z.dtype == dtype
    for power, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(z.astype(np.float64) ** power) - expected) < 5 * np.sqrt(variance / count)
    assert np.mean(z > 1.0) == pytest.approx(0.158655, abs=0.005)


def test_the_extreme_words_give_finite_normal_numbers():
    extreme = np.array([0, ONES, 0x3FFFFFFF, 0x80000000], np.uint32)
    radius, angle = (g.ravel() for g in np.meshgrid(extreme, extreme))
    assert np.isfinite(load("random", np.float32).normal_f32(radius, angle)).all()
    assert np.isfinite(load("random", np.float64).normal_f64(radius, radius, angle, angle)).all()
