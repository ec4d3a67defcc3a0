"""What kernels print at exit, in forked children, after Ctrl-C, from another process's cache, and from many threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

import quadpy as qp

SUPPORT = os.path.join(os.path.dirname(__file__), "..", "support")  # noqa: PTH118, PTH120 - for a child's path
HEAD = """
import os, signal, sys, threading, time
import quadpy as qp
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)

@qp.kernel
def say(n: qp.i32):
    print("say", n, f"{n:03d}")
"""
ON_GPU = """
from simulated import run_printing
from quadpy.runtime.device import devices
from quadpy.runtime.device.current import Config, set_config
from simulated_gpu.driver import RecordingDriver
driver = RecordingDriver(history=False)
run_printing(driver, say)
devices._DRIVERS["recording"] = lambda ordinal: driver
set_config(Config(arch="recording"))
"""


def ran(tmp_path, text, **environment):
    """What a program prints; it ends well."""
    file = tmp_path / "program.py"
    file.write_text(HEAD + text, encoding="utf-8")
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([SUPPORT, *sys.path]),
        "PYTHONIOENCODING": "utf-8",
        **environment,
    }
    done = subprocess.run(
        [sys.executable, str(file)], check=False, capture_output=True, text=True, timeout=100, env=env, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_what_remains_is_printed_at_exit(tmp_path):
    assert ran(tmp_path, ON_GPU + "say(1); say(2); print('python')") == "python\nsay 1 001\nsay 2 002\n"


def test_at_exit_with_everything_alive_and_on_another_stream(tmp_path):
    text = ON_GPU + "s = qp.create_stream()\nsay(3, stream=s)\nkept = [s]; kept.append(kept)\nsys.exit(0)"
    assert ran(tmp_path, text) == "say 3 003\n"


def test_a_forked_child_does_not_print_its_parents_lines(tmp_path):
    text = (
        ON_GPU
        + """
import warnings
warnings.simplefilter("ignore")
say(1)
sys.stdout.flush()
child = os.fork()
if not child:
    set_config(Config())
    say(2)
    sys.exit(0)
os.waitpid(child, 0)
qp.sync()
"""
    )
    assert ran(tmp_path, text) == "say 2 002\nsay 1 001\n"


def test_another_process_knows_the_messages_of_cached_code(tmp_path):
    text = "say(7)\nprint('compiled' if 'quadpy.jit.compiler' in sys.modules else 'found')"
    for where in ("compiled", "found"):
        assert ran(tmp_path, text, QUADPY_CACHE_DIR=str(tmp_path / "cache")) == f"say 7 007\n{where}\n"


def test_the_size_of_the_buffer_by_environment(tmp_path):
    text = """
@qp.kernel
def count(n: qp.i32):
    qp.loop_config(serialize=True)
    for i in range(n):
        print(i)
qp.init(arch=qp.cpu)
count(10)
"""
    assert ran(tmp_path, text, QUADPY_PRINT_BUFFER="64") == (
        "0\n1\n2\n3\n… 6 lines lost; raise print_buffer, which is 64 bytes\n"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_ctrl_c_keeps_what_was_printed(tmp_path):
    text = """
@qp.kernel
def long(x: I32, n: qp.i32):
    for i in range(3):
        print("first", i)
    qp.loop_config(serialize=True)
    for i in range(n):
        x[0] = (x[0] * 5 + i) ^ (x[0] >> 3)
    for i in range(3):
        print("last", i)

x = qp.ndarray(qp.i32, 1)
long(x, 1)
threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
try:
    long(x, 1 << 28)
except KeyboardInterrupt:
    print("interrupted")
"""
    out = ran(tmp_path, text).splitlines()
    assert out[:6] == [f"{word} {i}" for word in ("first", "last") for i in range(3)]
    assert out[6:9] == [f"first {i}" for i in range(3)]
    assert out[9:] in (["interrupted"], ["last 0", "last 1", "last 2", "interrupted"])


def test_many_threads_print_whole_launches(capsys):
    @qp.kernel
    def three(k: qp.i32):
        for i in range(3):
            print(k, i)

    def work(k):
        for n in range(30):
            three(100 * k + n)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = capsys.readouterr().out.splitlines()
    launches = sorted(tuple(lines[n : n + 3]) for n in range(0, len(lines), 3))
    assert launches == sorted(tuple(f"{100 * k + n} {i}" for i in range(3)) for k in range(4) for n in range(30))


def test_a_kernel_that_prints_in_a_cpu_graph(capsys):
    @qp.kernel
    def say(n: qp.i32):
        print("say", n)

    with qp.create_stream() as stream, qp.graph.capture(stream) as graph:
        say(1, stream=stream)
        say(2, stream=stream)
    assert capsys.readouterr().out == ""
    with graph.instantiate() as exe:
        exe.launch()
        exe.launch()
    assert capsys.readouterr().out == 2 * "say 1\nsay 2\n"

    @qp.graph.replay
    def step(n):
        say(n)

    for n in (1, 1, 2, 2, 1):
        step(n)
    assert capsys.readouterr().out == "say 1\nsay 1\nsay 2\nsay 2\nsay 1\n"
