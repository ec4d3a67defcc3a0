"""The table of checks: complete, named, and about what it says."""

from __future__ import annotations

import re

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk
from quadpy.jit.offline import trace_for
from quadpy.runtime.device.current import Config, current_config
from quadpy.selftest.kernels import blocks as kernels
from quadpy.selftest.place import Place, require_same
from quadpy.selftest.session import INSTEAD
from quadpy.selftest.table import chosen, table
from quadpy.settings import CAPABILITIES

CHECKS = list(table().values())


def test_each_capability_has_a_check_and_a_way_around():
    assert set(CAPABILITIES) == set(INSTEAD) <= {check.speaks_for for check in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_check_says_what_it_proves_and_what_to_do(check):
    assert re.fullmatch(r"[a-z]+\.[a-z0-9-]+", check.name)
    assert len(check.proves) > 15
    assert len(check.remedy) > 15
    assert check.speaks_for
    assert 0 < check.seconds <= 180


def test_what_is_chosen():
    quick, full = chosen(quick=True, only=[]), chosen(quick=False, only=[])
    assert set(quick) < set(full) == set(CHECKS)
    assert [check.name for check in chosen(quick=True, only=["graphs.large", "torch"])] == ["graphs.large"]
    assert {check.name.partition(".")[0] for check in chosen(quick=True, only=["graphs"])} == {"graphs"}


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (np.float32([1, 2]), np.float32([1, 3])),
        (np.float32([0.0]), np.float32([-0.0])),
        (np.float32([1.0]), np.float32([np.nan])),
        (np.float64([1.0]), np.float64([np.nextafter(1, 2)])),
        (np.int8([1]), np.int8([-1])),
        (np.float32([1]), np.float64([1])),
        (np.zeros(2, np.int32), np.zeros(3, np.int32)),
        (np.bool_([True]), np.bool_([False])),
    ],
)
def test_any_difference_is_found(expected, found):
    require_same(expected, expected.copy(), "x")
    with pytest.raises(AssertionError, match="x: "):
        require_same(expected, found, "x")


def test_nans_are_equal():
    require_same(np.float32([np.nan]), np.uint32([0xFFC00001]).view(np.float32), "x")


def test_the_reference_is_not_what_is_tested():
    """On the CPU the reference is Python; on GPUs it is the CPU."""
    place = Place(Config(arch="cpu"), quick=True)
    seen = []

    def made():
        seen.append(current_config().interpreted)
        return [np.zeros(1, np.float32)]

    place.compare(made)
    assert seen == [True, False]


@pytest.mark.parametrize("kernel", ["integer_atomics", "float_atomics"])
def test_the_checks_of_atomics_are_about_atomics(kernel):
    """Sums of loops become reductions, which have none."""
    dtype = qp.f32 if kernel == "float_atomics" else qp.i32
    types = {name: qp.types.ndarray(dtype=dtype, ndim=1 + (name == "old")) for name in ("x", "out", "old")}
    traced = trace_for(getattr(kernels, kernel), types, parse_target("gfx942"))
    found = [node.op.value for node in walk(traced.kernel) if isinstance(node, ir.Atomic)]
    assert found == ["add", "sub", "min", "max", *(("and", "or", "xor", "mul") if dtype == qp.i32 else ())]
