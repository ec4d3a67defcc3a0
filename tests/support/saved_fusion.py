"""Saved graphs that run as one launch on the current GPU: with the bits of separate launches, and by the rule of live graphs.

``python saved_fusion.py`` checks all of it on a simulated GPU.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import saved_cases
from saved_cases import F32, again, collatz, floats, half_step, mutated, saxpy

import quadpy as qp
from quadpy.errors import GraphError, QuadpyError
from quadpy.graph.saved.container import MANIFEST, packed, unpacked
from quadpy.runtime.device.devices import current_device

U8 = qp.types.ndarray(dtype=qp.u8, ndim=1)


def is_one(found, fused=True):
    """Whether a graph is one launch, or several if it should not be; the CPU has no such launches."""
    if "host" in current_device().driver.features:
        return found == (False, "the CPU runs nodes one after another")
    return found.fused is fused


def check_case(case, folder):
    """One launch of the loaded graph does what the launches of the live one do."""
    graph, bind, memory = case()
    path = Path(folder) / f"{case.__name__}.qpg"
    graph.save(path, bind=bind, fuse=True, **memory)
    copies = {name: again(array) for name, array in bind.items()}
    with graph.instantiate(fuse=False) as live, qp.graph.load(path) as loaded:
        for _ in range(3):
            live.launch()
            loaded.run(**copies)
            assert is_one(loaded.fusion), loaded.fusion.reason
            live.synchronize()
            qp.sync()
            for name, array in bind.items():
                assert array.to_numpy().tobytes() == copies[name].to_numpy().tobytes(), (case.__name__, name)


@qp.kernel
def count(flags: U8, x: F32, y: F32):
    for i in x:
        if y[i] > 2.0:
            flags[i] += qp.cast(1, qp.u8)
    for i in x:
        x[i] = x[i] * y[i]


@qp.kernel
def total(x: F32, s: F32):
    for i in x:
        s[0] += x[i]


def moving(n):
    """Kernels, copies and fills of elements with 1, 2 and 4 bytes; a parameter is None."""
    x, y, z, s = (floats(*np.arange(n) % 7 * scale) for scale in (1, 0.5, 0, 0))
    flags, s = qp.ndarray(qp.u8, n), floats(0)
    g = qp.graph.Graph()
    g.add_memset(z, 1.5)
    g.add_memset(flags, 3)
    g.add_kernel(saxpy, 2.0, x, z)
    g.add_memcpy(y, z)
    g.add_kernel(count, flags, x, y)
    g.add_memset(s, 0)
    g.add_kernel(total, x, s)
    return g, {"x": x, "y": y, "z": z, "flags": flags, "s": s}


def check_sizes(folder):
    """Sizes may change within the guards, with one launch as without; an array of the host is copied."""
    path = Path(folder) / "sizes.qpg"
    g, bind = moving(6)
    g.save(path, bind=bind, fuse=True)
    with qp.graph.load(path) as loaded:
        for n in (6, 1, 1001, 40_000, 6, 0, 5):
            live, bind = moving(n)
            theirs = {name: array.to_numpy() for name, array in bind.items()}
            with live.instantiate(fuse=False) as run:
                run.launch()
                run.synchronize()
            loaded.run(**theirs)
            qp.sync()
            assert is_one(loaded.fusion, n > 0), loaded.fusion.reason
            for name, array in bind.items():
                assert array.to_numpy().tobytes() == theirs[name].tobytes(), (n, name)


def check_nests(folder):
    """Alone in a capture or a graph it is one launch; with other work, each node is a launch."""
    path, (x, y) = Path(folder) / "nests.qpg", (floats(1, 2), floats(5, 6))
    g = qp.graph.Graph()
    g.add_kernel(saxpy, 2.0, x, y)
    g.add_memcpy(x, y)
    g.save(path, bind={"x": x, "y": y}, fuse=True)
    with qp.graph.load(path) as loaded, qp.create_stream() as stream:
        with qp.graph.capture(stream) as alone:
            loaded.run(stream, x=x, y=y)
        with qp.graph.capture(stream) as among:
            loaded.run(stream, x=x, y=y)
            y.fill(1.0, stream=stream)
        outer = qp.graph.Graph()
        outer.add_child(loaded.graph(x=x, y=y))
        qp.sync()
        for graph, fused in ((alone, True), (among, False), (outer, True), (loaded.graph(x=x, y=y), True)):
            with graph.instantiate(fuse="auto" if not fused else True) as run:
                x.from_numpy(np.array([1, 2], np.float32))
                y.from_numpy(np.array([5, 6], np.float32))
                qp.sync()  # what was written on the default stream
                run.launch(stream)
                run.synchronize()
                assert is_one(run.fusion, fused), run.fusion.reason
                assert x.to_numpy().tolist() == [7.0, 10.0]
                assert y.to_numpy().tolist() == ([7.0, 10.0] if fused else [1.0, 1.0])
        outer.add_kernel(half_step, x, y)
        if "host" in loaded.device.driver.features:
            return
        with pytest.raises(GraphError, match="a saved graph is one launch only alone"):
            outer.instantiate(fuse=True)


def check_changes(folder):
    """Nodes of an instantiated graph change; a copy that begins between the numbers of the one launch ends it."""
    path, n = Path(folder) / "changes.qpg", 8
    x, y = floats(*range(n)), floats(*range(n))
    g = qp.graph.Graph()
    g.add_memset(x, 1.5)
    g.add_kernel(saxpy, 2.0, x, y)
    g.add_memcpy(x, y)
    g.save(path, bind={"x": x, "y": y}, fuse=True)
    with qp.graph.load(path) as loaded, loaded.graph(x=x, y=y).instantiate(fuse=True) as run:
        run.update("memset", x, 0.5)
        run.launch()
        run.synchronize()
        assert is_one(run.fusion)
        assert x.to_numpy().tolist() == [1.0 + k for k in range(n)]
        run.update("memcpy", x.pointer + 1, y.pointer + 1, nbytes=3)
        y.fill(0.25)
        run.launch()
        run.synchronize()
        assert is_one(run.fusion, fused=False)
        expected = np.full(n, 0.5, np.float32).view(np.uint8)
        expected[1:4] = np.array([1.25], np.float32).view(np.uint8)[1:4]
        assert x.to_numpy().view(np.uint8).tolist() == expected.tolist()


def check_loops(folder):
    """A loop is in the launch: in a graph, in another graph, and as a kernel alone."""
    path = Path(folder) / "loops.qpg"
    graph, bind, memory = saved_cases.loops()
    for fuse in ("auto", True, False):
        graph.save(path, bind=bind, fuse=fuse, **memory)
        with qp.graph.load(path) as loaded:
            outer = qp.graph.Graph()
            outer.add_child(loaded.graph(**bind))
            outer.add_kernel(half_step, floats(1), floats(1))
            with outer.instantiate() as live:
                for run in (lambda: loaded.run(**bind), live.launch):
                    bind["n"].from_numpy(np.array([6, 7, 27], np.int32))
                    bind["turns"].fill(0)
                    run()
                    qp.sync()
                    assert bind["turns"].to_numpy().tolist() == [8, 16, 111]
    collatz.save(path)
    kernel, (n, left, turns) = qp.load_kernel(path), (qp.ndarray(qp.i32, size) for size in (3, 1, 3))
    for _ in range(2):
        n.from_numpy(np.array([6, 7, 27], np.int32))
        turns.fill(0)
        kernel(n, left, turns)
        assert turns.to_numpy().tolist() == [8, 16, 111]


def check_rule(folder, driver):
    """By the counts and costs of live graphs on such a device of AMD's; and why not."""
    path, told = Path(folder) / "rule.qpg", driver.name
    most = 16 * 2 * driver.info.units * 256
    try:
        driver.name = "amdgpu"
        for fuse in ("auto", False):
            g, bind = moving(6)
            g.save(path, bind=bind, fuse=fuse)
            with qp.graph.load(path) as loaded:
                assert loaded.fusion.reason == "nothing has run yet"
                loaded.run(**bind)
                with g.instantiate() as live:
                    assert live.fusion.fused
                    assert loaded.fusion == (live.fusion if fuse else (False, "the file has no code for it"))
                large = {name: np.zeros(most + 8, array.to_numpy().dtype) for name, array in bind.items()}
                loaded.run(**large)
                assert not loaded.fusion.fused
                assert f"above {most}" in loaded.fusion.reason or not fuse
                loaded.run(**bind)
                assert loaded.fusion.fused is bool(fuse)
    finally:
        driver.name = told


def check_refusals(folder, driver):
    """What the device refuses runs separately, with the same bits."""
    path, launch = Path(folder) / "refused.qpg", driver.launch_cooperative
    g, bind = moving(6)
    g.save(path, bind=bind, fuse=True)
    expected = {name: again(array) for name, array in bind.items()}

    def refuse(*_):
        from quadpy.errors import DriverError

        raise DriverError("refused", name="hipErrorCooperativeLaunchTooLarge")

    with g.instantiate(fuse=False) as live, qp.graph.load(path) as loaded:
        live.launch()
        live.synchronize()
        driver.launch_cooperative = refuse
        try:
            loaded.run(**expected)
        finally:
            driver.launch_cooperative = launch
        qp.sync()
        assert "refused" in loaded.fusion.reason
        for name, array in bind.items():
            assert array.to_numpy().tobytes() == expected[name].to_numpy().tobytes(), name


def check_mutations(folder, driver):
    """A damaged member is named; or it is other code, which is not run here."""
    path, chance = Path(folder) / "mutated.qpg", random.Random(5)
    g, bind = moving(6)
    g.save(path, bind=bind, fuse=True)
    entries = unpacked(path.read_bytes())
    manifest, refused = json.loads(entries.pop(MANIFEST)), 0
    for _ in range(300):
        changed = manifest | {"fused": mutated(manifest["fused"], chance)}
        path.write_bytes(packed(json.dumps(changed).encode(), entries))
        try:
            with qp.graph.load(path) as loaded:
                loaded.graph(**bind).instantiate(fuse=True).destroy()
        except QuadpyError:
            refused += 1
    assert 100 < refused < 300


FUSED_CASES = [case for case in saved_cases.CASES if case is not saved_cases.fields_and_methods]
"""That one has a single launch."""
CHECKS = [check_sizes, check_nests, check_changes, check_loops]
OF_DRIVERS = [check_rule, check_refusals, check_mutations]


def main():
    sys.path.append(str(Path(__file__).parent))
    from running_gpu import running

    with running() as device, tempfile.TemporaryDirectory() as folder:
        for case in FUSED_CASES:
            check_case(case, folder)
            print(case.__name__)
        for check in CHECKS:
            check(folder)
            print(check.__name__)
        for check in OF_DRIVERS:
            check(folder, device.driver)
            print(check.__name__)


if __name__ == "__main__":
    main()
