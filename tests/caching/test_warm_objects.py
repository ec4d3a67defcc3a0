"""Warm starts without parsing: objects passed on to functions, enumerations that say how they are shown, NumPy's functions, methods of numbers."""

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
