"""Atomics, blocks with shared memory, and waves, compared with the reference to the bit."""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np

from quadpy.core.target import amd_arch, parse_target
from quadpy.selftest.checks.language import array_of, edges
from quadpy.selftest.kernels import blocks as kernels
from quadpy.selftest.place import Place, require, require_same
from quadpy.selftest.table import Skip, slow_check

_SUBNORMAL: Final = np.float32(1e-42)
_WAYS: Final = "none is needed: quadpy uses loops that compare and exchange, which are slower; send the report"


@slow_check("integer atomics of 32 and 64 bits: every operation, and their old values", "atomics")
def atomics_of_integers(place: Place) -> None:
    size = 64 if not place.is_gpu or place.quick else 100_000
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        x = np.random.default_rng(3).integers(1, 1 << 30, size).astype(dtype)

        def made(x: Any = x) -> list[Any]:
            out = np.array([0, 0, 9, 9, -1 & 0x7FFFFFFF, 0, 0, 1], x.dtype)
            kernels.integer_atomics(x, out, np.zeros((8, x.size), x.dtype))
            return [out]

        place.compare(made)
    taken, last = np.zeros(size, np.int32), np.zeros(1, np.int32)
    kernels.tickets(taken, last)
    require((taken == 1).all() and last[0] == size, "the old values of atomic_add are not those before each addition")


@slow_check("floating-point atomics of 32 and 64 bits, with subnormal numbers", "float-atomics", remedy=_WAYS)
def atomics_of_floats(place: Place) -> None:
    for dtype in (np.float32, np.float64):
        out = np.zeros(4, dtype)
        out[2:] = 3, -3
        kernels.float_atomics(np.array([0.5, -0.25, 8.0, -7.0] * 16, dtype), out, np.zeros((4, 64), dtype))
        require_same(np.array([20, -20, -7, 8], dtype), out, f"atomics of {out.dtype}")
    out = np.zeros(4, np.float32)
    kernels.float_atomics(np.full(64, _SUBNORMAL), out, np.zeros((4, 64), np.float32))
    expected = np.array([64 * _SUBNORMAL, -64 * _SUBNORMAL, 0, _SUBNORMAL], np.float32)
    require_same(expected, out, "atomics of subnormal numbers")


@slow_check("atomics of 8 and 16 bits, of f16 and bf16 too", "atomics")
def atomics_of_small_numbers(place: Place) -> None:
    for name in ("i8", "u8", "i16", "u16", "f16", "bf16"):
        x = np.arange(1, 14).astype(edges(name).dtype)

        def made(name: str = name, x: Any = x) -> list[Any]:
            out = array_of(name, np.zeros(3, x.dtype))
            kernels.small_atomics(array_of(name, x), out, array_of(name, np.zeros((3, x.size), x.dtype)))
            return [out]

        place.compare(made)


@slow_check("atomic_exchange and atomic_cas of 32 and 64 bits: no value is lost, and one iteration wins", "atomics")
def exchanges(place: Place) -> None:
    size = 64 if place.quick else 100_000
    for dtype in (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64):
        x = np.arange(1, 1 + size).astype(dtype)
        last, old, owners = np.zeros(2, dtype), np.zeros(size, dtype), np.zeros(4, dtype)
        kernels.exchanges(x, last, old, owners)
        require_same(np.arange(1 + size).astype(dtype), np.sort([*old, last[0]]), f"exchanged numbers of {old.dtype}")
        winners = ((owners - 1) % 4 == np.arange(4)).all()
        require(winners and last[1] == 4, f"{last[1]:.0f} iterations won 4 elements by atomic_cas of {old.dtype}")


@slow_check("shared memory, barriers, reductions and scans of a block", "blocks")
def shared_memory(place: Place) -> None:
    x = np.random.default_rng(4).standard_normal(256 if place.quick else 64_000).astype(np.float32)
    x = x if place.is_gpu else x[:128]

    def made() -> list[Any]:
        out = np.zeros_like(x)
        kernels.reversed_blocks(x, out)
        return [out]

    place.compare(made)


@slow_check("atomics in shared memory", "blocks")
def atomics_of_blocks(place: Place) -> None:
    x = np.random.default_rng(5).integers(0, 1000, 512, np.int32)
    out = np.zeros(8, np.int32)
    kernels.shared_atomics(x, out)
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
        kernels.waves_of[size](x, out)
        return [out]

    place.compare(made)


@slow_check("waves of 32 lanes: shuffles, votes, reductions, scans", "waves")
def waves_of_32(place: Place) -> None:
    _compare_waves(place, 32)


@slow_check("waves of 64 lanes: shuffles, votes, reductions, scans", "waves")
def waves_of_64(place: Place) -> None:
    _compare_waves(place, 64)


@slow_check("writes before grid.mem_fence are visible to a block that is told later", "blocks")
def fences(place: Place) -> None:
    x = np.random.default_rng(7).integers(0, 1000, 64 * (10 if place.quick else 5000), np.int32)
    for _ in range(1 if place.quick else 20):
        parts, out = np.zeros(x.size // 64, np.int32), np.zeros(1, np.int32)
        kernels.last_block(x, parts, np.zeros(1, np.int32), out)
        require_same(x.sum(keepdims=True, dtype=np.int32), out, "the sum that the last block makes")


@slow_check("Tile16x16 and Tile32x32: outer products, Cholesky factors, triangular systems", "tiles")
def tiles(place: Place) -> None:
    sizes = (16, 32) if place.is_gpu or not place.quick else (16,)  # Python takes seconds for 32
    for size, dtype in itertools.product(sizes, (np.float32,) if place.quick else (np.float32, np.float64)):
        _compare_tiles(place, size, dtype, 100 if place.is_gpu and not place.quick else 1)


def _compare_tiles(place: Place, size: int, dtype: Any, many: int) -> None:
    rng = np.random.default_rng(8)
    some, v = rng.standard_normal((many, size, size)), rng.standard_normal((many, size)).astype(dtype)
    x = np.zeros((many, size, 2 * size), dtype)
    x[:, :, :size] = some @ some.transpose(0, 2, 1) + 2 * size * np.eye(size)

    def made() -> list[Any]:
        factors = x.copy()
        kernels.factors_of[size](factors, v)
        return [factors]

    place.compare(made)
