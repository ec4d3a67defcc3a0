"""Programs at random over the operations of waves, against the oracle, to the bit, on every backend and for both sizes."""

from __future__ import annotations

import random

import numpy as np
import pytest
import wave_oracle as oracle
from emulator import needs_waves_of

import quadpy as qp

LANES = 256
FULL = {32: np.uint64(0xFFFFFFFF), 64: np.uint64(0xFFFFFFFFFFFFFFFF)}


class Program:
    """Lines of a kernel over the variables a, b (i32) and u (f32), and what each of them makes of arrays."""

    def __init__(self, rng, size):
        self.rng, self.size, self.lines = rng, size, []
        self.shape = (LANES // size, size)
        data = np.random.default_rng(rng.randrange(1 << 30))
        self.given = {
            "a": data.integers(-50, 50, self.shape, np.int32), "b": data.integers(0, 4, self.shape, np.int32),
            "u": (data.standard_normal(self.shape) * 8).astype(np.float32),
        }  # fmt: skip
        self.values = {name: value.copy() for name, value in self.given.items()}

    def assign(self, name, text, value, indent):
        self.lines.append(f"{indent}{name} = {text}")
        with np.errstate(all="ignore"):
            return value.astype(self.values[name].dtype)

    def step(self, active, indent="        "):
        """One statement; ``active`` says for each wave whether it runs."""
        rng, v = self.rng, self.values
        kind = rng.choice(["reduce", "scan", "move", "vote", "match", "mix", "branch", "loop"])
        if len(indent) > 16 and kind in ("branch", "loop"):
            kind = "mix"
        name = rng.choice("abu")
        made = None
        if kind in ("reduce", "scan"):
            op = rng.choice(["add", "min", "max"] + ["xor", "and", "or"] * (name != "u"))
            how = "reduce" if kind == "reduce" else rng.choice(["inclusive", "exclusive"])
            if how == "exclusive" and op in ("min", "max"):
                how = "inclusive"
            made = self.assign(name, f"S.{how}_{op}({name})", getattr(oracle, how)(op, v[name]), indent)
        elif kind == "move":
            n, lanes = rng.randrange(self.size), v["b"]
            way = rng.choice(["shuffle_up", "shuffle_down", "shuffle_xor", "broadcast", "shuffle"])
            by = lanes if way == "shuffle" else np.full(self.shape, n)
            rule = oracle.shuffle if way == "broadcast" else getattr(oracle, way)
            made = self.assign(name, f"S.{way}({name}, {'b' if way == 'shuffle' else n})", rule(v[name], by), indent)
        elif kind == "vote":
            name, limit = "b", rng.randrange(-20, 20)
            how = rng.choice(["any", "all"])
            found = getattr((v["a"] > limit), how)(axis=1, keepdims=True)
            made = self.assign(name, f"qp.i32(S.{how}_true(a > {limit})) + b", found + v["b"], indent)
        elif kind == "match":
            bits = oracle.match_any(v["b"])
            found = (bits & np.uint64(0xFFFF)).astype(np.int32) + v["a"]
            name, made = "a", self.assign("a", "qp.i32(S.match_any(b) & qp.u64(0xFFFF)) + a", found, indent)
        elif kind == "mix":
            made = self.assign("a", "a - b + S.invocation_id()", v["a"] - v["b"] + np.arange(self.size), indent)
            name = "a"
        elif kind == "branch":
            limit = rng.randrange(-40, 40)
            self.lines.append(f"{indent}if S.any_true(a > {limit}):")
            self.step(active & (v["a"] > limit).any(axis=1), indent + "    ")
            return
        else:
            turns = rng.randrange(1, 4)
            self.lines.append(f"{indent}for _ in range({turns}):")
            before, text = len(self.lines), rng.getstate()
            for turn in range(turns):
                rng.setstate(text)
                del self.lines[before:]
                self.step(active, indent + "    ")
                assert turn >= 0
            return
        v[name] = np.where(active[:, None], made, v[name])

    def text(self):
        body = "\n".join(self.lines)
        return f"""S = qp.simt.subgroup
I1, F1 = (qp.types.ndarray(dtype=t, ndim=1) for t in (qp.i32, qp.f32))
@qp.kernel
def k(x: I1, y: I1, z: F1):
    for i in range(x.shape[0]):
        a, b, u = x[i], y[i], z[i]
{body}
        x[i], y[i], z[i] = a, b, u
"""


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("size", [32, 64])
def test_random_programs(load, init, arch, request, seed, size):
    if size == 64 and arch == "cuda":
        pytest.skip("no waves of 64")
    needs_waves_of(size, arch)
    init(wave_size=size)
    count = max(1, request.config.getoption("--random-kernels") // 20)
    for number in range(count):
        rng = random.Random(f"waves {seed} {number}")
        program = Program(rng, size)
        for _ in range(8):
            program.step(np.ones(LANES // size, bool))
        x, y, z = (program.given[name].ravel().copy() for name in "abu")
        try:
            load(program.text()).k(x, y, z)
        except qp.UnknownTargetError:
            pytest.skip(f"{arch} has no waves of {size}")
        for found, name in zip((x, y, z), "abu", strict=True):
            expected = program.values[name].ravel()
            same = found.view(np.uint32) == expected.view(np.uint32)
            same |= (found != found) & (expected != expected)
            assert same.all(), f"{name} differs at {np.flatnonzero(~same)[:5]} in\n{program.text()}"
