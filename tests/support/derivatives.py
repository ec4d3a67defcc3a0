"""Runs kernels of the IR on NumPy arrays, and compares derivatives with finite differences."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from quadpy.codegen.abi import layout_of
from quadpy.codegen.compile import code_object, schedule_for
from quadpy.codegen.host import compile_host, host_header
from quadpy.codegen.lower.kernel import lower_kernel
from quadpy.core.artifact import CHECKED, OUT_OF_BOUNDS
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.grad.forward import tangent
from quadpy.ir.grad.reverse import adjoint
from quadpy.ir.pipeline import TASK_PASSES, TRACE, run_passes
from quadpy.ir.types import array_of
from quadpy.ir.verify import verify
from quadpy.jit.limits import Limits
from quadpy.jit.offline import trace_for
from quadpy.lang.library import with_callees
from quadpy.runtime.cpu.loader import load_object

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32)
_READ = {"f64": "d", "f32": "f", "i32": "i", "i64": "q"}
RUNS = 3


def traced(kernel: Any, **given: Any) -> ir.Kernel:
    """The IR of a kernel before its first pass."""
    seen: dict[str, ir.Kernel] = {}
    trace_for(kernel, given, observe=seen.__setitem__)
    return seen[TRACE]


class Runnable:
    """A kernel of the IR as a function of NumPy arrays and numbers, by name."""

    def __init__(self, kernel: ir.Kernel, *, opt: int = 3) -> None:
        self.kernel = verify(run_passes(TASK_PASSES, kernel))
        self.layout = layout_of(self.kernel)
        spec = parse_target("cpu")
        schedule = schedule_for(self.kernel, spec)
        image = compile_host(lower_kernel(schedule, host_header()), opt=opt)
        code = code_object(schedule, spec, image)
        self.limits = Limits(code, self.kernel.name, None)
        self.slots, self.loaded = code.slots, load_object(code.image)
        self.entry = _ENTRY(self.loaded.address(code.entry))

    def __call__(self, **given: Any) -> list[float]:
        given["$shadow"] = np.full(1 << 12, 3, np.uint64)  # the words of the launch, if the kernel has any
        values = [self.part(value, _given_for(value.param, given)) for value in self.layout.values]
        scratch = (ctypes.c_uint64 * max(1, self.slots))()
        task = 0
        while task != -1:  # where the machine is busy, it comes back between tasks
            if task == OUT_OF_BOUNDS:  # as it seems: the host finds out
                self.limits.require(values)
                task = CHECKED
            task = self.entry(struct.pack(self.layout.format, *values), scratch, task)
        raw = bytes(scratch)
        return [struct.unpack_from(_READ[t.name], raw, 8 * k)[0] for k, t in enumerate(self.kernel.results)]

    def part(self, value: Any, given: Any) -> Any:
        ndim = {p.name: p.type.ndim for p in self.kernel.params if isinstance(p, ir.ArrayParam)}
        match value.part:
            case "pointer":
                assert given.flags.c_contiguous
                return given.ctypes.data
            case "extent":
                return given.shape[value.axis]
            case "stride":
                return given.strides[value.axis] // given.itemsize
            case _:
                assert value.param not in ndim
                return given


def _given_for(param: str, given: Mapping[str, Any]) -> Any:
    """The argument of a parameter; that of ``c.1`` is a component of ``c``."""
    whole, _, component = param.rpartition(".")
    return given[whole][int(component)] if component.isdecimal() and whole in given else given[param]


def with_twins(kernel: ir.Kernel, names: list[str], suffix: str) -> tuple[ir.Kernel, dict[str, str]]:
    """``kernel`` with a second parameter for each of ``names``, and what is whose; for a vector, an array of one."""
    twins = {name: name + suffix for name in names}
    more: list[ir.Param] = [replace(p, name=twins[p.name]) for p in kernel.params if p.name in twins]
    scalars = [p for p in kernel.params if isinstance(p, ir.ScalarParam)]
    for name in names:
        if components := [p for p in scalars if p.name.rpartition(".")[0] == name]:
            array = array_of(components[0].type, 0, (len(components),))
            more.append(ir.ArrayParam(name + suffix, array, span=kernel.span))
            twins |= {p.name: name + suffix for p in components}
    return replace(kernel, params=(*kernel.params, *more)), twins


def tangent_of(kernel: ir.Kernel, names: list[str]) -> ir.Kernel:
    kernel, duals = with_twins(kernel, names, ".dual")
    return tangent(kernel, duals, with_callees)


def copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.array(v) if isinstance(v, np.ndarray) else v for name, v in values.items()}


def differences(run: Runnable, given: Mapping[str, Any], ways: Mapping[str, Any], step: float) -> dict[str, Any]:
    """How the arrays change in the directions ``ways``, by central differences of order 4."""
    found = dict.fromkeys(ways, 0.0)
    for at, weight in ((1, 8), (-1, -8), (2, -1), (-2, 1)):
        moved = copied(given)
        for name, way in ways.items():
            moved[name] = moved[name] + at * step * way
        run(**moved)
        for name in ways:
            found[name] = found[name] + weight * moved[name] / (12 * step)
    return found


def directions(given: Mapping[str, Any], names: list[str], seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {name: random.uniform(-1, 1, np.shape(given[name])) for name in names}


def check_tangent(
    kernel: ir.Kernel, names: list[str], given: Mapping[str, Any], *, step: float = 1e-3, rtol: float = 1e-7
) -> None:
    """The tangents of ``names`` in random directions against finite differences; the values stay the same."""
    run, forward = Runnable(kernel), Runnable(tangent_of(kernel, names))
    for seed in range(RUNS):
        ways = directions(given, names, seed)
        expected, plain, got = differences(run, given, ways, step), copied(given), copied(given)
        duals = {f"{name}.dual": np.array(way) for name, way in ways.items()}
        run(**plain)
        forward(**got, **duals)
        for name in names:
            np.testing.assert_array_equal(got[name], plain[name])
            np.testing.assert_allclose(duals[f"{name}.dual"], expected[name], rtol=rtol, atol=rtol, err_msg=name)


def adjoint_of(kernel: ir.Kernel, names: list[str], *, from_before: bool = False) -> ir.Kernel:
    kernel, grads = with_twins(kernel, names, ".grad")
    return adjoint(kernel, grads, with_callees, from_before=from_before)


def check_adjoint(kernel: ir.Kernel, names: list[str], given: Mapping[str, Any], *, rtol: float = 1e-10) -> None:
    """The dot-product test: a tangent times adjoints is the change times what the adjoints become."""
    run, forward, backward = (Runnable(each) for each in (kernel, tangent_of(kernel, names), adjoint_of(kernel, names)))
    for seed in range(RUNS):
        ways, weights = directions(given, names, seed), directions(given, names, seed + 100)
        duals = {f"{name}.dual": np.array(way) for name, way in ways.items()}
        grads = {f"{name}.grad": np.array(weight) for name, weight in weights.items()}
        forward(**copied(given), **duals)
        after = copied(given)
        run(**after)
        kept = copied(after)
        backward(**after, **grads)
        for name in names:
            np.testing.assert_array_equal(after[name], kept[name])
        expected = sum(np.vdot(weights[name], duals[f"{name}.dual"]) for name in names)
        size = sum(np.vdot(np.abs(weights[name]), np.abs(duals[f"{name}.dual"])) for name in names)
        found = sum(np.vdot(ways[name], grads[f"{name}.grad"]) for name in names)
        assert np.isfinite(found)
        assert abs(found - expected) <= rtol * (1 + size), (found, expected)


def second_of(kernel: ir.Kernel, names: list[str]) -> ir.Kernel:
    """The backward kernel with tangents of the adjoints."""
    kernel, grads = with_twins(kernel, names, ".grad")
    kernel, duals = with_twins(kernel, [*names, *grads.values()], ".dual")
    return adjoint(kernel, grads, with_callees, duals)


def check_second(kernel: ir.Kernel, names: list[str], given: Mapping[str, Any], *, rtol: float = 1e-9) -> bool:
    """The second derivatives of a sum of what the kernel leaves, weighted.

    They are symmetric, near rounding; the gradients have the bits of a backward pass alone.  Whether the products also
    are as differences of gradients say.
    """
    run, forward, backward = (Runnable(each) for each in (kernel, tangent_of(kernel, names), adjoint_of(kernel, names)))
    second, smooth = Runnable(second_of(kernel, names)), True
    weights = directions(given, names, 100)

    def gradient(moved: dict[str, Any]) -> dict[str, Any]:
        run(**moved)
        grads = {f"{name}.grad": np.array(weight) for name, weight in weights.items()}
        backward(**moved, **grads)
        return grads

    def product(ways: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        after, duals = copied(given), {f"{name}.dual": np.array(way) for name, way in ways.items()}
        forward(**after, **duals)
        grads = {f"{name}.grad": np.array(weight) for name, weight in weights.items()}
        products = {f"{name}.grad.dual": np.zeros_like(weight) for name, weight in weights.items()}
        second(**after, **duals, **grads, **products)
        return grads, products

    for seed in range(RUNS):
        one, other = directions(given, names, seed), directions(given, names, seed + 200)
        (grads, along), (_, across) = product(one), product(other)
        alone = gradient(copied(given))
        for name in names:
            np.testing.assert_array_equal(grads[f"{name}.grad"], alone[f"{name}.grad"])
        left = [np.vdot(other[name], along[f"{name}.grad.dual"]) for name in names]
        right = [np.vdot(one[name], across[f"{name}.grad.dual"]) for name in names]
        size = sum(np.vdot(np.abs(other[name]), np.abs(along[f"{name}.grad.dual"])) for name in names)
        assert np.isfinite(sum(left))
        assert abs(sum(left) - sum(right)) <= rtol * (1 + size), (left, right)
        up, down = (
            gradient(
                {
                    name: value + sign * 1e-6 * one[name] if name in one else value
                    for name, value in copied(given).items()
                }
            )
            for sign in (1, -1)
        )
        for name in names:
            found, expected = along[f"{name}.grad.dual"], (up[f"{name}.grad"] - down[f"{name}.grad"]) / 2e-6
            smooth &= bool(np.allclose(found, expected, rtol=1e-4, atol=1e-4 * (1 + size)))
    return smooth


def check_both(
    kernel: ir.Kernel, names: list[str], given: Mapping[str, Any], *, step: float = 1e-3, rtol: float = 1e-7
) -> None:
    check_tangent(kernel, names, given, step=step, rtol=rtol)
    check_adjoint(kernel, names, given)
