"""Parameters of every kind in any order: what a launch packs is where the code looks for it."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pytest
from simulated import gpu

import quadpy as qp


@dataclass(frozen=True)
class Kind:
    """A kind of parameter: its annotation, an argument with the value ``n``, and an expression that gives ``n``."""

    annotation: str
    argument: object
    read: str


def field(n):
    made = qp.field(qp.f32, 4)
    made.fill(n)
    return made


def array(n):
    made = qp.ndarray(qp.f32, 4)
    made.fill(n)
    return made


KINDS = {
    "i8": Kind("qp.i8", int, "qp.i32({})"),
    "f64": Kind("qp.f64", float, "{}"),
    "f16": Kind("qp.f16", float, "qp.f64({})"),
    "vector": Kind("VEC", lambda n: [n, 0.5, -0.5], "({0}.x + {0}.y + {0}.z)"),
    "array": Kind("F32", array, "{}[i % 4]"),
    "number": Kind("qp.template()", int, "{}"),
    "field": Kind("qp.template()", field, "{}[i % 4]"),
}
FEW = [*permutations(["field", "f64", "array"]), *permutations(["field", "field", "i8"])]


def kernel_of(load, kinds):
    """A kernel that adds up its parameters, of these kinds, and a field of its module, in base 8."""
    head = ", ".join(f"p{k}: {KINDS[kind].annotation}" for k, kind in enumerate(kinds))
    terms = "".join(f" + {8**k} * {KINDS[kind].read.format(f'p{k}')}" for k, kind in enumerate(kinds))
    return load(f"""
        F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
        VEC = qp.types.vector(3, qp.f64)
        inner = qp.field(qp.f32, 4)
        inner.fill(5)
        @qp.kernel
        def k({head}, out: qp.types.ndarray(dtype=qp.f64, ndim=1)):
            for i in out:
                out[i] = -inner[0]{terms}
    """).k


def values_of(kinds):
    """A digit from 1 to 7 for each parameter, and the sum in base 8."""
    digits = [1 + k % 7 for k in range(len(kinds))]
    return digits, sum(8**k * digit for k, digit in enumerate(digits)) - 5


def some(seed, count=7):
    return tuple(random.Random(seed).choices(list(KINDS), k=count))


@pytest.mark.parametrize("kinds", [*FEW, *map(some, range(6))], ids=" ".join)
def test_each_parameter_has_its_own_argument(load, kinds):
    digits, total = values_of(kinds)
    out = np.zeros(8)
    kernel_of(load, kinds)(*[KINDS[kind].argument(n) for kind, n in zip(kinds, digits, strict=True)], out)
    np.testing.assert_array_equal(out, total)


def expected_block(code, arguments, fields, out):
    """The argument block of ``code``, value by value, from what its layout says that each place holds."""
    block, numbers = bytearray(code.layout.size), {"out": out, **arguments}
    for slot in code.layout.values:
        name, _, component = slot.param.partition(".")
        given = fields[int(name[6:])] if name.startswith("$field") else numbers[name]
        if slot.part == "pointer":
            value = given.pointer
        elif slot.part == "extent":
            value = given.shape[slot.axis]
        else:
            value = given[int(component)] if component else given
            value = int(np.float16(value).view(np.uint16)) if slot.code == "H" else value
        struct.pack_into(f"={slot.code}", block, slot.offset, value)
    return bytes(block)


@pytest.mark.parametrize("kinds", [*FEW, *map(some, range(6, 12))], ids=" ".join)
def test_each_parameter_has_its_own_place_in_a_gpu_launch(load, kinds):
    """Both the first call, which loops over the arguments, and the second, by a function written for them."""
    with gpu() as device:
        kernel = kernel_of(load, kinds)
        arguments = {
            f"p{k}": KINDS[kind].argument(n) for k, (kind, n) in enumerate(zip(kinds, values_of(kinds)[0], strict=True))
        }
        out = qp.ndarray(qp.f64, 8)
        templates = {f"p{k}": arguments[f"p{k}"] for k, kind in enumerate(kinds) if kind in ("number", "field")}
        given = [arguments[f"p{k}"] for k, kind in enumerate(kinds) if kind == "field"]
        inner = kernel.source.fn.__globals__["inner"]
        expected = expected_block(kernel.compile("gfx942", **templates), arguments, [*given, inner], out)
        del device.driver.kernels.log[:]
        kernel(*arguments.values(), out)
        kernel(*arguments.values(), out)
        blocks = [bytes(block)[: len(expected)] for _, block in device.driver.kernels.log]
        assert blocks == [expected, expected]


def test_a_parameter_may_have_the_name_that_fields_once_had(load):
    kernel = load("""
        inner = qp.field(qp.f32, 2)
        inner.fill(3)
        @qp.kernel
        def k(field0: qp.f32, field1: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            for i in field1:
                field1[i] = field0 + inner[i]
    """).k
    found = np.zeros(2, np.float32)
    kernel(4.0, found)
    np.testing.assert_array_equal(found, 7)


@pytest.mark.parametrize(
    "name", ["x", "λ", "ünïcode_Ω", "entry", "args", "scratch", "begin", "end", "v1", "p0", "cell", "first"]
)
def test_parameters_and_variables_of_any_name(load, name):
    kernel = load(f"""
        @qp.kernel
        def k({name}: qp.f32, out: qp.types.ndarray(dtype=qp.f32, ndim=1)):
            for i in out:
                {name}_ = {name} + 1
                while {name}_ < 10:
                    {name}_ += i + 1
                out[i] = {name}_
    """).k
    found = np.zeros(2, np.float32)
    kernel(2.5, found)
    np.testing.assert_array_equal(found, [10.5, 11.5])
    assert kernel.compile("gfx942").image
    assert kernel.compile("sm_90").image
