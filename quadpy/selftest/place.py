"""Where checks run: the device under test, and the backend whose results are right."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.runtime.device.current import Config, current_config, set_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.devices import device_of
from quadpy.selftest.table import Skip


class Place:
    """The device of the configuration ``tested``, which is the current one.

    ``quick`` asks for small sizes.  The reference for a GPU is the CPU; for the CPU, it is Python.
    """

    def __init__(self, tested: Config, *, quick: bool) -> None:
        self.tested, self.quick = tested, quick
        host = tested.arch == "cpu"
        self.reference = Config(arch="cpu", interpreted=host)
        self.is_gpu = not host
        set_config(tested)
        self.device: Device = device_of(tested)

    @contextlib.contextmanager
    def under(self, **options: Any) -> Iterator[None]:
        """The device with other options of ``qp.init``."""
        with _config(self.tested._replace(**options)):
            yield

    def compare(self, made: Callable[[], Sequence[Any]]) -> None:
        """Run ``made`` on the reference and on the device; its results must be the same to the bit, but for signs of NaN."""
        with _config(self.reference):
            expected = [np.array(each) for each in made()]
        for number, (one, found) in enumerate(zip(expected, made(), strict=True)):
            require_same(one, np.array(found), f"result {number}")

    def best_us(self, run: Callable[[], object], *, repeats: int = 0, each: int = 1) -> float:
        """The shortest time of ``run``, in microseconds, divided by ``each``.

        It is timed ``repeats`` times, by default 5 or, quickly, 2, and runs once before, for what is made once.
        """
        run()
        times = []
        for _ in range(repeats or (2 if self.quick else 5)):
            begin = time.perf_counter()
            run()
            times.append(time.perf_counter() - begin)
        return 1e6 * min(times) / each

    def needs_gpu(self, why: str) -> None:
        """Skip the check on the CPU."""
        if not self.is_gpu:
            raise Skip(why)


@contextlib.contextmanager
def _config(config: Config) -> Iterator[None]:
    before = current_config()
    set_config(config)
    try:
        yield
    finally:
        set_config(before)


def require_same(expected: Any, found: Any, what: str) -> None:
    """AssertionError with the first difference; NaNs are equal."""
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape or one.dtype != other.dtype:
        raise AssertionError(f"{what}: expected {one.dtype}{one.shape}, got {other.dtype}{other.shape}")
    bits = np.dtype(f"u{one.dtype.itemsize}")
    wrong = one.view(bits) != other.view(bits) if one.dtype != bool else one != other
    if one.dtype.kind == "f":
        wrong &= ~(np.isnan(one) & np.isnan(other))
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{what}: {wrong.sum()} of {wrong.size} differ; at {at} expected {one[at]!r}, got {other[at]!r}"
        )


def require(condition: object, what: str) -> None:
    """AssertionError ``what`` unless ``condition`` holds."""
    if not condition:
        raise AssertionError(what)


def counted(count: int, dtype: Any = np.float32) -> Any:
    """The numbers 0, 1, … in an array on the device."""
    made = qp.ndarray(getattr(qp, _NAMES[np.dtype(dtype)]), count)
    made.from_numpy(np.arange(count, dtype=dtype))
    return made


_NAMES = {np.dtype(np.float32): "f32", np.dtype(np.int32): "i32", np.dtype(np.int64): "i64"}
