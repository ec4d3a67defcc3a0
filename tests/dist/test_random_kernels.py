"""Kernels at random over distributed arrays: each number of ranks gives the bits that a plain array gets."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist import Grid

FUNCTIONS = """\
@qp.func
def mirrored(i, n):
    k = abs(i)
    if k >= n:
        k = 2 * n - 2 - k
    return k


@qp.func
def wrapped(i, n):
    if i < 0:
        return i + n
    if i >= n:
        return i - n
    return i


@qp.func
def moved(i, n):
    k = i
    if k < 0:
        k += n
    elif k >= n:
        k -= n
    return k


"""


def index_text(rng: random.Random, name: str, axis: int, *, wraps: bool) -> tuple[str, str]:
    """An index near the loop's own along one axis, and the condition under which it is inside the array."""
    step, n = rng.randint(-2, 2), f"u.shape[{axis}]"
    if step == 0:
        return name, ""
    plain = f"{name} + {step}" if step > 0 else f"{name} - {-step}"
    ways = ["guard", "clamp", "either", "mirror"]
    match rng.choice([*ways, "wrap", "or back", "function", "twice"] if wraps else ways):
        case "guard":
            return plain, f"0 <= {plain} < {n}"
        case "clamp":
            return f"qp.min(qp.max({plain}, 0), {n} - 1)", ""
        case "either":
            return f"({plain} if 0 <= {plain} < {n} else {name})", ""
        case "mirror":
            return f"mirrored({plain}, {n})", ""
        case "function":
            return f"{rng.choice(['wrapped', 'moved'])}({plain}, {n})", ""
        case "twice":
            return f"(({plain}) % {n} {rng.choice('+-')} 1) % {n}", ""
        case "or back":
            return f"({plain} if 0 <= {plain} < {n} else {plain} {'-' if step > 0 else '+'} {n})", ""
        case _:
            return (f"({plain}) % {n}" if rng.random() < 0.5 else f"({plain} + {n}) % {n}"), ""


def loop_text(rng: random.Random, axes: int, source: str, target: str, *, wraps: bool) -> list[str]:
    names = ["i", "j", "k"][:axes]
    shape = [
        f"(0, u.shape[{a}])" if rng.random() < 0.6 else f"({rng.randint(0, 2)}, u.shape[{a}] - {rng.randint(0, 2)})"
        for a in range(axes)
    ]
    over = source if rng.random() < 0.4 else f"qp.ndrange({', '.join(shape)})"
    lines = [f"    for {', '.join(names)} in {over}:", f"        total = {source}[{', '.join(names)}]"]
    for _ in range(rng.randint(1, 4)):
        indices, conditions = zip(
            *(index_text(rng, name, axis, wraps=wraps) for axis, name in enumerate(names)), strict=True
        )
        term = (
            f"total += {rng.choice(['0.5', '-1.25', 'w'])} * {rng.choice([source, source, 'x'])}[{', '.join(indices)}]"
        )
        guard = " and ".join(condition for condition in conditions if condition)
        lines += [f"        if {guard}:", f"            {term}"] if guard else [f"        {term}"]
    if rng.random() < 0.3:
        lines += ["        if total > 2.0:", "            continue"]
    if rng.random() < 0.4:
        lines += ["        out[0] += total", "        qp.atomic_max(out[1], total)"]
    return [*lines, f"        {target}[{', '.join(names)}] = total"]


def kernel_of(seed: int) -> tuple[Any, int, bool, str]:
    rng = random.Random(seed)
    axes, wraps = rng.randint(1, 3), rng.random() < 0.5
    array = f"qp.types.ndarray(qp.f32, ndim={axes})"
    lines = [
        "@qp.kernel",
        f"def made(u: {array}, v: {array}, x: {array}, out: qp.types.ndarray(qp.f32, ndim=1), w: qp.f32):",
    ]
    for number in range(rng.randint(1, 2)):
        source, target = ("u", "v") if number % 2 == 0 else ("v", "u")
        lines += loop_text(rng, axes, source, target, wraps=wraps)
    text, file = FUNCTIONS + "\n".join(lines) + "\n", f"<kernel {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"qp": qp}
    exec(compile(text, file, "exec"), names)
    return names["made"], axes, wraps, text


def check(seed: int, ranks: int) -> None:
    kernel, axes, wraps, text = kernel_of(seed)
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(*[(8, 40), (5, 14), (4, 9)][axes - 1], size=axes).tolist())
    starts = [rng.standard_normal(shape).astype(np.float32) for _ in range(3)]

    def run(make: Callable[[], Any], *, captured: bool = False) -> list[Any]:
        arrays, out = [make() for _ in range(3)], qp.ndarray(qp.f32, 2)
        for array, start in zip(arrays, starts, strict=True):
            array.from_numpy(start)
        if captured:  # which runs it once
            qp.dist.capture(lambda: kernel(*arrays, out, 0.75)).launch()
        else:
            kernel(*arrays, out, 0.75)
            kernel(*arrays, out, 0.75)
        return [*(array.to_numpy() for array in arrays), out.to_numpy()]

    plain = run(lambda: qp.ndarray(qp.f32, shape))

    def program() -> list[Any]:
        grid = Grid(shape, periodic=wraps)
        return run(lambda: grid.ndarray(qp.f32), captured=seed % 2 == 0)

    (alone,) = run_ranks(1, program)
    for got, want in zip(alone[:3], plain[:3], strict=True):
        np.testing.assert_array_equal(got, want, err_msg=text)
    np.testing.assert_allclose(alone[3], plain[3], rtol=1e-3, atol=1e-3, err_msg=text)
    for found in run_ranks(ranks, program):
        for got, want in zip(found, alone, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"{ranks} ranks\n{text}")


def test_random_kernels(request: pytest.FixtureRequest):
    qp.init(arch=qp.cpu)
    count = max(1, request.config.getoption("--random-kernels") // 7)

    @settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        phases=[Phase.generate],
    )
    @given(st.integers(0, 10**6), st.sampled_from([2, 3, 4, 8]))
    def each(seed: int, ranks: int) -> None:
        check(seed, ranks)

    each()
