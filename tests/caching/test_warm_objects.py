"""Warm starts without parsing: objects passed on to functions, enumerations that say how they are shown, NumPy's functions, methods of numbers, tiles."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

PROGRAM = """
    import enum, sys
    import numpy as np
    import quadpy as qp
    from quadpy.jit import compiler

    class Shown(enum.IntEnum):
        def __repr__(self):
            return f"<{self.name}: {self.value}>"

        def __format__(self, spec):
            return "{text}"

    class Level(Shown):
        ONE = 1
        TWO = {two}

    class Config:
        def __init__(self, level, scale):
            self.level, self.scale = level, scale

    @qp.func
    def scaled(x, config: qp.template(), by):
        if qp.static(config.level == Level.TWO):
            x *= config.scale
        return x * by

    @qp.kernel
    def run(x: qp.f32, config: qp.template()) -> qp.f32:
        step = qp.static(float(np.nextafter(np.float32(0), np.float32(1)) > 0 and config.scale.bit_length() > 0))
        return scaled(x, config, step) + scaled(x, config=config, by=1.0)

    qp.init(arch=qp.cpu)
    traces, trace = [], compiler.trace_kernel
    compiler.trace_kernel = lambda *args, **kwargs: traces.append(1) or trace(*args, **kwargs)
    print(run(2.0, Config(Level.TWO, {scale})), len(traces))
"""


def start(tmp_path, *, text="a", two=2, scale=3):
    file = tmp_path / "program.py"
    filled = textwrap.dedent(PROGRAM).replace("{text}", text).replace("{two}", str(two)).replace("{scale}", str(scale))
    file.write_text(filled)
    environment = os.environ | {"QUADPY_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False, env=environment)
    assert not done.stderr
    number, traces = done.stdout.split()
    return float(number), int(traces) > 0


def test_a_second_process_does_not_trace(tmp_path):
    assert start(tmp_path) == (12.0, True)
    assert start(tmp_path) == (12.0, False)


def test_what_has_changed_is_traced_again(tmp_path):
    start(tmp_path)
    assert start(tmp_path, scale=4) == (16.0, True)
    assert start(tmp_path, two=5, scale=4) == (16.0, True)
    assert start(tmp_path, text="b", two=5, scale=4)[0] == 16.0


TILES = """
    import numpy as np
    import quadpy as qp
    from quadpy.jit import compiler
    F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)

    @qp.func
    def zero(tile: qp.template()):
        return tile.zeros(qp.f32)

    @qp.kernel
    def run(x: F32, wide: qp.template()):
        qp.loop_config(block_dim=qp.static(32 if wide else 16))
        for i in x:
            t = zero(qp.simt.Tile32x32 if qp.static(wide) else qp.simt.Tile16x16)
            t.eye_()
            x[i] = t.row[3] + t.row.n

    qp.init(arch=qp.cpu)
    traces, trace = [], compiler.trace_kernel
    compiler.trace_kernel = lambda *args, **kwargs: traces.append(1) or trace(*args, **kwargs)
    found = []
    for wide in (False, True):
        x = np.zeros(32, np.float32)
        run(x, wide)
        found.append(x.sum())
    print(*found, len(traces))
"""


def test_tiles_are_known_to_a_second_process(tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent(TILES))
    environment = os.environ | {"QUADPY_CACHE_DIR": str(tmp_path / "cache")}
    for traces in (2, 0):
        done = subprocess.run(
            [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment
        )
        assert done.stdout.split() == ["514.0", "1025.0", str(traces)], done.stderr
