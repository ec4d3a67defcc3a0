"""``qp.algorithms`` compared with NumPy on the CPU, and with torch, which calls CUB, on a GPU.

Results are checked before anything is timed.  Rounds take turns; the table has medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import quadpy as qp

Call = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """What is done, and to how many numbers; a call for each system, and how to get its result as a NumPy array."""

    name: str
    size: int
    calls: dict[str, Call]
    found: dict[str, Callable[[], Any]]
    tolerance: float = 0.0


def main(arguments: Sequence[str]) -> int:
    options = parsed(arguments)
    qp.init(arch=options.arch, cpu_max_num_threads=options.threads, enable_fallback=False)
    for shift in options.shift or [24 if options.arch == "cpu" else 28]:
        for row in cpu_rows(shift) if options.arch == "cpu" else gpu_rows(shift, options.sort_shift):
            if not options.only or row.name in options.only:
                report(row, options)
    return 0


def report(row: Row, options: argparse.Namespace) -> None:
    """Check and time a row, and print it."""
    check(row)
    times: dict[str, list[float]] = {name: [] for name in row.calls}
    for _ in range(options.rounds):
        for name, call in row.calls.items():
            times[name].append(seconds(call, options))
    medians = {name: statistics.median(each) * 1e3 for name, each in times.items()}
    text = "  ".join(f"{name} {ms:9.4f} ms" for name, ms in medians.items())
    others = [ms for name, ms in medians.items() if name != "quadpy"]
    ratio = f"  quadpy / best {medians['quadpy'] / min(others):5.2f}" if others else ""
    print(f"{row.name:<24} 2^{row.size:<3} {text}{ratio}", flush=True)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="algorithms", description=__doc__)
    parser.add_argument("--arch", default="cpu", choices=("cpu", "cuda", "amdgpu"))
    parser.add_argument("--threads", type=int, default=2, help="threads of the CPU backend (%(default)s)")
    parser.add_argument(
        "--shift", type=powers, help="use 2 to this power numbers, or to each of several, such as 16,20,24"
    )
    parser.add_argument("--sort-shift", type=int, default=26, help="on a GPU, sort at most 2 to this power numbers")
    parser.add_argument(
        "--cpu-time", action="store_true", help="on the CPU, measure the processor's time instead of the clock's"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", type=lambda text: text.split(","), help="these rows")
    return parser.parse_args(arguments)


def powers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def check(row: Row) -> None:
    results = {}
    for name, call in row.calls.items():
        call()
        results[name] = np.asarray(row.found[name]())
    expected = results.get("NumPy", next(iter(list(results.values())[1:]), None))
    for name, found in results.items():
        if expected is not None and not np.allclose(found, expected, rtol=row.tolerance, atol=row.tolerance):
            raise SystemExit(f"{row.name}: {name} gives {found}, not {expected}")


def seconds(call: Call, options: argparse.Namespace) -> float:
    """The time of one call: by the clock on the CPU, between two events on a GPU."""
    if options.arch == "cpu":
        clock = time.process_time if options.cpu_time else time.perf_counter
        begin = clock()
        call()
        return clock() - begin
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(5):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) * 1e-3 / 5


def cpu_rows(shift: int) -> list[Row]:
    """Rows compared with NumPy."""
    al, rng, n = qp.algorithms, np.random.default_rng(0), 1 << shift
    f, u = rng.random(n, np.float32), rng.integers(0, 1 << 32, n, np.uint32)
    v, flags = np.arange(n, dtype=np.uint32), rng.random(n) < 0.5
    out, sorted_keys, sorted_values = np.zeros_like(f), np.zeros_like(u), np.zeros_like(v)
    held: dict[str, Any] = {}

    def keep(name: str, make: Call) -> Call:
        def call() -> None:
            held[name] = make()

        return call

    def row(name: str, mine: Call, theirs: Call, get: Call, tolerance: float = 0.0) -> Row:
        calls = {"quadpy": keep("quadpy", mine), "NumPy": keep("NumPy", theirs)}
        return Row(name, shift, calls, {"quadpy": get, "NumPy": lambda: held["NumPy"]}, tolerance)

    def pairs() -> Any:
        order = np.argsort(u, kind="stable")
        return v[order]

    def mine(name: str) -> Any:
        return np.asarray(held["quadpy"].to_numpy()) if name == "array" else held["quadpy"][0].to_numpy()

    return [
        row("sum f32", lambda: al.reduce(f), f.sum, lambda: mine("array"), 1e-5),
        row("max f32", lambda: al.reduce(f, "max"), f.max, lambda: mine("array")),
        row("argmin f32", lambda: al.argmin(f), f.argmin, lambda: mine("array")),
        row("scan f32", lambda: al.inclusive_scan(f, out=out), lambda: np.cumsum(f), lambda: out, 1e-3),
        row("sort u32", lambda: al.sort(u, out=sorted_keys), lambda: np.sort(u), lambda: sorted_keys),
        row(
            "sort pairs u32", lambda: al.sort_pairs(u, v, out=(sorted_keys, sorted_values)), pairs, lambda: sorted_values
        ),
        row("select f32", lambda: al.select(f, flags), lambda: f[flags], lambda: mine("")[: flags.sum()]),
        row(
            "histogram f32", lambda: al.histogram(f, 256, (0, 1)), lambda: np.histogram(f, 256, (0, 1))[0],
            lambda: mine(""), 1e-2,
        ),
    ]  # fmt: skip


def gpu_rows(shift: int, most: int) -> list[Row]:
    """Rows compared with torch, whose reductions are its own and whose scans and sorts are CUB's."""
    import torch

    sorted_shift = min(shift, most)
    al, n, m = qp.algorithms, 1 << shift, 1 << sorted_shift
    torch.manual_seed(0)
    f = torch.rand(n, device="cuda")
    keys = torch.randint(-(2**31), 2**31 - 1, (m,), device="cuda", dtype=torch.int32)
    x, k = qp.from_dlpack(f), qp.from_dlpack(keys)
    v = qp.ndarray(qp.u32, m)
    v.from_numpy(np.arange(m, dtype=np.uint32))
    total, out = qp.ndarray(qp.f32, ()), qp.ndarray(qp.f32, n)
    sorted_keys, sorted_values = qp.ndarray(qp.i32, m), qp.ndarray(qp.u32, m)
    scan_scratch = qp.ndarray(qp.u8, al.scratch_size(al.inclusive_scan, x, out=out))
    sort_scratch = qp.ndarray(qp.u8, al.scratch_size(al.sort_pairs, k, v, out=(sorted_keys, sorted_values)))
    theirs = torch.empty(n, device="cuda")
    held: dict[str, Any] = {}

    def torch_sort() -> None:
        held["sort"] = torch.sort(keys, stable=True)

    def torch_sum() -> None:
        held["sum"] = f.sum()

    def ends(a: Any) -> Any:
        a = a if isinstance(a, torch.Tensor) else torch.from_dlpack(a)
        return a[:: max(1, len(a) // 1000)].cpu().numpy()

    qp.sync()
    return [
        Row("sum f32", shift, {"quadpy": lambda: al.reduce(x, out=total), "torch": torch_sum},
            {"quadpy": total.to_numpy, "torch": lambda: held["sum"].cpu().numpy()}, 1e-4),
        Row("scan f32", shift,
            {"quadpy": lambda: al.inclusive_scan(x, out=out, scratch=scan_scratch),
             "torch": lambda: torch.cumsum(f, 0, out=theirs)},
            {"quadpy": lambda: ends(out), "torch": lambda: ends(theirs)}, 1e-3),
        Row("sort keys i32", sorted_shift,
            {"quadpy": lambda: al.sort(k, out=sorted_keys), "torch": torch_sort},
            {"quadpy": lambda: ends(sorted_keys), "torch": lambda: ends(held["sort"][0])}),
        Row("sort pairs (32, 32)", sorted_shift,
            {"quadpy": lambda: al.sort_pairs(k, v, out=(sorted_keys, sorted_values), scratch=sort_scratch),
             "torch (32, 64)": torch_sort},
            {"quadpy": lambda: ends(sorted_keys), "torch (32, 64)": lambda: ends(held["sort"][0])}),
    ]  # fmt: skip
