"""What programs use besides kernels: prints, checks, hazards, profiles, derivatives, torch."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.selftest.kernels import work as kernels
from quadpy.selftest.place import Place, counted, require, require_same
from quadpy.selftest.table import Skip, check


@check("what kernels print appears on the host", "prints")
def printing(place: Place) -> None:
    said = io.StringIO()
    x = counted(5, np.int32)
    with contextlib.redirect_stdout(said):
        kernels.show(x)
        place.device.synchronize()
    require("element 2 is 2" in said.getvalue(), f"a kernel printed {said.getvalue()!r}")


@check("debug=True finds indices out of bounds and failing asserts, and the device works on", "debug")
def debugging(place: Place) -> None:
    x, at = counted(10), counted(4, np.int32)
    at[3] = 99
    runs: tuple[tuple[type[Exception], Callable[[], object]], ...] = (
        (IndexError, lambda: kernels.gather(x, at, counted(4))), (AssertionError, lambda: kernels.asserting(x)),
    )  # fmt: skip
    for error, run in runs:
        with place.under(debug=True):
            try:
                run()
                place.device.synchronize()
            except error:
                continue
        raise RuntimeError(f"a kernel that must fail with {error.__name__} did not")
    require_same(np.arange(10, dtype=np.float32), x.to_numpy(), "an array after a failed check")


@check("the hazard checker finds a missing event, and none where there is one", "hazards")
def hazards(place: Place) -> None:
    place.needs_gpu("on the CPU, streams share one order; hazards are tested there by quadpy's own tests")
    x, stream = counted(100), qp.create_stream()
    with qp.hazards.check(collect=True) as found:
        kernels.add_one(x)
        kernels.add_one(x, stream=stream)
    place.device.synchronize()
    require(found.certain, "the hazard checker does not see two writes that nothing orders")
    ready = qp.create_event()
    with qp.hazards.check(collect=True) as found:
        kernels.add_one(x)
        ready.record()
        ready.wait(stream)
        kernels.add_one(x, stream=stream)
    place.device.synchronize()
    require(not found.certain, "the hazard checker sees no event between two writes")
    stream.destroy()


@check("profiles have the time of each kernel", "profiles")
def profile(place: Place) -> None:
    x, y = counted(1000), counted(1000)
    kernels.add(x, y)
    with qp.profile() as profiled:
        for _ in range(3):
            kernels.add(x, y)
        place.device.synchronize()
    found = [record for record in profiled.records if record.kind == "kernel" and record.on_device]
    require(len(found) == 3, f"3 calls of a kernel left {len(found)} records")
    require(all((record.duration or 0.0) >= 0.0 for record in found), "a kernel took a negative time")


@check("gradients by a tape", "derivatives")
def derivatives(place: Place) -> None:
    x, loss = qp.ndarray(qp.f32, 100, needs_grad=True), qp.ndarray(qp.f32, 1, needs_grad=True)
    x.from_numpy(np.arange(100, dtype=np.float32))
    with qp.ad.Tape(loss):
        kernels.squares(x, loss)
    assert x.grad is not None
    require_same(2 * np.arange(100, dtype=np.float32), x.grad.to_numpy(), "a gradient")


@check("arrays go to torch and back without a copy (DLPack)", "torch", quick=False)
def torch(place: Place) -> None:
    try:
        import torch as library
    except ImportError as error:
        raise Skip("torch is not installed") from error
    if place.is_gpu:
        wanted = library.version.hip if place.tested.arch == "amdgpu" else library.version.cuda
        if not wanted or not library.cuda.is_available():
            raise Skip("this torch was built without support for the GPU")
    x: Any = counted(1000)
    tensor = library.from_dlpack(x)
    tensor += 1
    if place.is_gpu:
        library.cuda.synchronize()
    kernels.add_one(x)
    require_same(np.arange(1000, dtype=np.float32) + 2, tensor.cpu().numpy(), "an array that torch has, too")
    y = library.arange(1000, dtype=library.float32, device=tensor.device)
    kernels.add_one(y)
    place.device.synchronize()
    require_same(np.arange(1000, dtype=np.float32) + 1, y.cpu().numpy(), "a tensor that a kernel changed")


@check("programs of quadpy run as on the CPU: a simulation, its replay", "programs")
def programs(place: Place) -> None:
    def made() -> list[Any]:
        x, y = counted(300), counted(300)

        @qp.graph.replay
        def step() -> None:
            kernels.add(x, y)
            kernels.add_one(x)

        for _ in range(4):
            step()
        return [x.to_numpy(), y.to_numpy()]

    place.compare(made)
