"""Atomics, blocks with shared memory, and waves, compared with the reference to the bit."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import quadpy as qp
from quadpy.core.target import amd_arch, parse_target
from quadpy.selftest.place import Place, require, require_same
from quadpy.selftest.table import Skip, check

_A: Final = qp.types.ndarray(ndim=1)
_I32: Final = qp.types.ndarray(dtype=qp.i32, ndim=1)
_SUBNORMAL: Final = np.float32(1e-42)
_WAYS: Final = "update the GPU's driver; until then, avoid floating-point atomics on this chip"

block, subgroup = qp.simt.block, qp.simt.subgroup


@qp.kernel
def integer_atomics(x: _A, out: _A):
    for i in x:
        qp.atomic_add(out[0], x[i])
        qp.atomic_sub(out[1], x[i])
        qp.atomic_min(out[2], x[i])
        qp.atomic_max(out[3], x[i])
        qp.atomic_and(out[4], x[i])
        qp.atomic_or(out[5], x[i])
        qp.atomic_xor(out[6], x[i])
        qp.atomic_mul(out[7], x[i])


@qp.kernel
def float_atomics(x: _A, out: _A):
    for i in x:
        qp.atomic_add(out[0], x[i])
        qp.atomic_sub(out[1], x[i])
        qp.atomic_min(out[2], x[i])
        qp.atomic_max(out[3], x[i])


@qp.kernel
def tickets(taken: _I32, last: _I32):
    for i in taken:
        taken[qp.atomic_add(last[0], 1)] += 1


@qp.kernel
def reversed_blocks(x: _A, out: _A):
    qp.loop_config(block_dim=64)
    for i in range(x.shape[0]):
        tile = block.SharedArray(64, qp.f32)
        t = block.thread_idx()
        tile[t] = x[i]
        block.sync()
        out[i] = tile[63 - t] + block.reduce_add(tile[t]) - block.exclusive_add(x[i])


@qp.kernel
def shared_atomics(x: _I32, out: _I32):
    qp.loop_config(block_dim=128)
    for i in range(x.shape[0]):
        bins = block.SharedArray(8, qp.i32)
        t = block.thread_idx()
        if t < 8:
            bins[t] = 0
        block.sync()
        qp.atomic_add(bins[x[i] & 7], x[i])
        block.sync()
        if t < 8:
            qp.atomic_add(out[t], bins[t])


def _waves(x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        v = x[i]
        out[0, i] = subgroup.reduce_add(v)
        out[1, i] = subgroup.inclusive_add(v)
        out[2, i] = subgroup.exclusive_max(v)
        out[3, i] = subgroup.shuffle(v, (i * 7) & 31)
        out[4, i] = subgroup.shuffle_down(v, 3)
        out[5, i] = subgroup.shuffle_xor(v, 5)
        out[6, i] = subgroup.broadcast(v, 9)
        out[7, i] = qp.i32(subgroup.ballot(v > 40) >> 3)
        out[8, i] = subgroup.group_size()
        out[9, i] = qp.i32(subgroup.match_any(v & 3))


_waves.__annotations__ |= {"x": _I32, "out": qp.types.ndarray(dtype=qp.i32, ndim=2)}
waves_of = {size: qp.kernel(wave_size=size)(_waves) for size in (32, 64)}


@check("integer atomics of 32 and 64 bits: every operation, and their old values", "atomics")
def atomics_of_integers(place: Place) -> None:
    size = 64 if not place.is_gpu or place.quick else 100_000
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        x = np.random.default_rng(3).integers(1, 1 << 30, size).astype(dtype)

        def made(x: Any = x) -> list[Any]:
            out = np.array([0, 0, 9, 9, -1 & 0x7FFFFFFF, 0, 0, 1], x.dtype)
            integer_atomics(x, out)
            return [out]

        place.compare(made)
    taken, last = np.zeros(size, np.int32), np.zeros(1, np.int32)
    tickets(taken, last)
    require((taken == 1).all() and last[0] == size, "the old values of atomic_add are not those before each addition")


@check("floating-point atomics of 32 and 64 bits, with subnormal numbers", "atomics", remedy=_WAYS)
def atomics_of_floats(place: Place) -> None:
    for dtype in (np.float32, np.float64):
        out = np.zeros(4, dtype)
        out[2:] = 3, -3
        float_atomics(np.array([0.5, -0.25, 8.0, -7.0] * 16, dtype), out)
        require_same(np.array([20, -20, -7, 8], dtype), out, f"atomics of {out.dtype}")
    out = np.zeros(4, np.float32)
    float_atomics(np.full(64, _SUBNORMAL), out)
    expected = np.array([64 * _SUBNORMAL, -64 * _SUBNORMAL, 0, _SUBNORMAL], np.float32)
    require_same(expected, out, "atomics of subnormal numbers")


@check("shared memory, barriers, reductions and scans of a block", "blocks")
def shared_memory(place: Place) -> None:
    x = np.random.default_rng(4).standard_normal(256 if place.quick else 64_000).astype(np.float32)
    x = x if place.is_gpu else x[:128]

    def made() -> list[Any]:
        out = np.zeros_like(x)
        reversed_blocks(x, out)
        return [out]

    place.compare(made)


@check("atomics in shared memory", "blocks")
def atomics_of_blocks(place: Place) -> None:
    x = np.random.default_rng(5).integers(0, 1000, 512, np.int32)
    out = np.zeros(8, np.int32)
    shared_atomics(x, out)
    require_same(np.bincount(x & 7, x, 8).astype(np.int32), out, "sums by atomics of a block")


def _compare_waves(place: Place, size: int) -> None:
    if place.is_gpu:
        target = parse_target(place.device.driver.info.arch)
        sizes = amd_arch(target.arch).wave_sizes if target.family == "amdgpu" else (target.wave_size,)
        if size not in sizes:
            raise Skip(f"this processor has waves of {' and '.join(map(str, sizes))} lanes")
    x = np.random.default_rng(6).integers(0, 100, 256, np.int32)

    def made() -> list[Any]:
        out = np.zeros((10, 256), np.int32)
        waves_of[size](x, out)
        return [out]

    place.compare(made)


@check("waves of 32 lanes: shuffles, votes, reductions, scans", "waves")
def waves_of_32(place: Place) -> None:
    _compare_waves(place, 32)


@check("waves of 64 lanes: shuffles, votes, reductions, scans", "waves")
def waves_of_64(place: Place) -> None:
    _compare_waves(place, 64)
