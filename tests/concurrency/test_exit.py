"""The end of a process with work pending: quiet, whatever is still alive."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
import quadpy as qp

qp.init(arch={arch!r}, enable_fallback=False)
F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)

@qp.kernel
def bump(x: F32):
    for i in x:
        x[i] = x[i] + 1

streams = [qp.create_stream() for _ in range(3)]
events = [qp.create_event(timing=True) for _ in range(3)]
arrays = [qp.ndarray(qp.f32, 1 << 16, stream=s) for s in streams]
field = qp.field(qp.f32, 100)
field.fill(1)
for _ in range(20):
    for stream, event, array in zip(streams, events, arrays):
        bump(array, stream=stream)
        event.record(stream)

def in_thread():
    with qp.create_stream() as own:
        bump(qp.ndarray(qp.f32, 1000), stream=own)

thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
{end}
"""

ENDS = {
    "at the end of the program": "",
    "by sys.exit": "sys.exit(0)",
    "objects dropped in any order": "del arrays, streams, events",
    "streams destroyed": "for s in streams: s.destroy()",
    "inside use_stream": "manager = qp.use_stream(streams[0]); manager.__enter__()",
    "in a cycle of garbage": "loop = [arrays, streams, events]; loop.append(loop); del loop, arrays, streams, events",
    "kept by a module": "sys.modules['kept'] = (arrays, streams, events)",
    "while daemon threads launch": """
def forever():
    own = qp.create_stream()
    try:
        while True:
            bump(arrays[0], stream=own)
            qp.ndarray(qp.f32, 100)
    except qp.QuadpyError:
        pass  # the device was closed

for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
""",
    "with another init": "qp.init(arch=qp.cpu); qp.reset()",
}

OF_THE_LIBRARY = re.compile(r"Warning: Resource leak detected by SharedSignalPool, \d+ Signals leaked\.\n")
"""Some builds of the HSA runtime say so at the end of every process that used a GPU, with quadpy or without."""


@pytest.mark.parametrize("end", ENDS)
def test_a_process_ends_quietly_with_work_pending(arch, end, tmp_path):
    if arch == "recording":
        pytest.skip("a child has no simulated device")
    program = tmp_path / "program.py"  # a kernel needs its source
    program.write_text(PROGRAM.format(arch=arch, end=ENDS[end]), encoding="utf-8")
    child = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, check=False, timeout=240
    )
    assert (child.returncode, OF_THE_LIBRARY.sub("", child.stderr)) == (0, "")
