"""What the registry promises: lazy, complete, documented."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import quadpy.mathlib
from quadpy.core.dtypes import f32, f64, i32, u32
from quadpy.mathlib.library import LibraryFunction, PerWidth
from quadpy.mathlib.registry import HOMES, lookup, overloads


def test_a_lookup_imports_only_the_families_that_it_needs():
    script = (
        "import sys; from quadpy.mathlib.registry import lookup; from quadpy.core.dtypes import f32\n"
        "assert lookup('sinh', (f32,))\n"
        "print(*(n for n in sys.modules if n.startswith('quadpy.mathlib.') or n == 'llvmlite'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    families = {"exponential", "floats", "hyperbolic", "library", "ops", "registry"}
    assert set(done.stdout.split()) == {f"quadpy.mathlib.{name}" for name in families}


@pytest.mark.parametrize("name", HOMES)
def test_every_function_is_documented(name):
    found = overloads(name)
    assert found
    for function in found:
        assert function.doc
        assert (function.error_ulp is None) == (HOMES[name] == "random"), function.name


@pytest.mark.parametrize("name", [n for n, home in HOMES.items() if home != "random"])
def test_functions_of_floats_come_in_both_widths(name):
    arity = len(overloads(name)[0].params)
    for scalar in (f32, f64):
        function = lookup(name, (scalar,) * arity)
        assert function.result in (scalar, (scalar, scalar))


def test_what_the_library_lacks():
    assert lookup("no_such_function", (f32,)) is None
    assert lookup("sin", (i32,)) is None
    assert lookup("sin", (f32, f32)) is None


def test_functions_of_words():
    assert lookup("philox", (u32,) * 6).result == (u32,) * 4
    assert lookup("normal_f64", (u32,) * 4).result is f64


def test_no_two_functions_have_one_name():
    """Kernels carry functions by their names: of two, one would be called for the other."""
    found = {}
    for module in pkgutil.iter_modules(quadpy.mathlib.__path__, "quadpy.mathlib."):
        for member in vars(importlib.import_module(module.name)).values():
            for function in (member.f32, member.f64) if isinstance(member, PerWidth) else (member,):
                if isinstance(function, LibraryFunction):
                    key = function.name, function.params
                    assert found.setdefault(key, function.fn) is function.fn, f"{key} in {module.name}"
    assert len(found) > 100
