"""What the hazard checker costs a launch with one element of six arrays, of which two are written."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import quadpy as qp

LAUNCHES = 5_000
F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)


@qp.kernel
def mix(a: F32, b: F32, c: F32, d: F32, e: F32, f: F32):
    for i in a:
        e[i] = a[i] + b[i]
        f[i] = c[i] - d[i]


@qp.kernel
def mix_part(a: F32, b: F32, c: F32, d: F32, e: F32, f: F32, begin: qp.i32):
    for i in range(begin, begin + 1):
        e[i] = a[i] + b[i]
        f[i] = c[i] - d[i]


def microseconds(arrays: list[qp.NDArray], streams: list[qp.Stream], *, ordered: bool, parts: bool) -> float:
    """The best of several CPU times of one launch, in µs; with several streams, an event orders each after the one before.

    With ``parts``, each launch has another part of the arrays.
    """
    event = qp.create_event()
    best = float("inf")
    for _ in range(7):
        start = time.thread_time()
        for k in range(LAUNCHES // len(streams)):
            for number, stream in enumerate(streams):
                if ordered:
                    event.wait(stream)
                if parts:
                    mix_part(*arrays, len(streams) * k + number, stream=stream)
                else:
                    mix(*arrays, stream=stream)
                if ordered:
                    event.record(stream)
        best = min(best, time.thread_time() - start)
    return best / LAUNCHES * 1e6


def main(words: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="run.py hazards", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--arch", choices=("cpu", "amdgpu", "cuda"), default="cpu")
    options = parser.parse_args(words)
    qp.init(arch=options.arch, cpu_max_num_threads=1)
    with qp.create_stream() as s1, qp.create_stream() as s2:
        for name, streams in (("one stream", [s1]), ("two streams and an event", [s1, s2])):
            for parts in (False, True):
                arrays = [qp.ndarray(qp.f32, LAUNCHES if parts else 1) for _ in range(6)]
                off = microseconds(arrays, streams, ordered=len(streams) > 1, parts=parts)
                with qp.hazards.check():
                    on = microseconds(arrays, streams, ordered=len(streams) > 1, parts=parts)
                what = f"{name}{', other parts' if parts else ''}"
                print(f"{what:37} off {off:6.2f} µs   on {on:6.2f} µs   more {on - off:6.2f} µs")
    return 0
