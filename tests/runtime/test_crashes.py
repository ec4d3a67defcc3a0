"""A crash inside a kernel on the CPU names the kernel, and leaves other handlers of such faults what they are."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"), reason="there is no handler here"
)

HEAD = """
import ctypes, faulthandler, os, signal, sys
import numpy as np, quadpy as qp

I32 = qp.types.ndarray(qp.i32, 1)

@qp.kernel
def scatter(x: I32, k: qp.i64):
    for i in x:
        x[i + (k & -2)] = 1  # not known to be outside before it runs

@qp.kernel
def clear(x: I32, n: qp.i64):
    for i in range(n & -2):
        x[i] = 0

FAR = 2**42
"""


def run(tmp_path, text, **environment):
    """What a program says on its standard error, and its exit status."""
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent(text), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        check=False,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stderr, done.stdout, done.returncode


SAID = "quadpy: the process crashed in kernel scatter ("


@pytest.mark.parametrize("threads", [1, 2])
def test_a_crash_names_the_kernel_and_says_how_to_find_the_access(tmp_path, threads):
    said, out, status = run(
        tmp_path,
        f"""
        qp.init(arch=qp.cpu, cpu_max_num_threads={threads})
        x = np.zeros(1_000_000, np.int32)
        scatter(x, 0)
        print("before", flush=True)
        scatter(x, FAR)
        print("after", flush=True)
    """,
    )
    assert status == -signal.SIGSEGV
    assert out == "before\n"
    assert said.count(SAID) == 1
    assert re.search(r"kernel scatter \(.*program\.py:\d+\), which", said)
    assert "qp.init(debug=True), @qp.kernel(debug=True), or QUADPY_DEBUG=1" in said


def test_the_kernel_that_crashed_is_named_among_several(tmp_path):
    said, _, _ = run(
        tmp_path,
        """
        kernels = []
        for number in range(20):
            source = f"import quadpy as qp\\n@qp.kernel\\ndef k{number}(x: qp.types.ndarray(qp.i32, 1), k: qp.i64):\\n    for i in x:\\n        x[i * {number} + (k & -2)] = {number}\\n"
            name = f"module{number}.py"
            open(os.path.join(os.path.dirname(__file__), name), "w").write(source)
            sys.path.insert(0, os.path.dirname(__file__))
            kernels.append(getattr(__import__(name[:-3]), f"k{number}"))
        x = np.zeros(4, np.int32)
        for kernel in kernels:
            kernel(x[:1], 0)
        kernels[13](x, FAR)
    """,
    )
    assert "crashed in kernel k13 (" in said


def test_a_function_of_the_c_library_counts_for_the_kernel_that_called_it(tmp_path):
    said, _, status = run(
        tmp_path,
        """
        x = np.zeros(100, np.int32)
        clear(x, 100)
        clear(x, FAR)
    """,
    )
    assert status == -signal.SIGSEGV
    assert "crashed in kernel clear (" in said


@pytest.mark.parametrize("enabled", ["", "faulthandler.enable()"])
def test_pythons_faulthandler_still_shows_the_frames(tmp_path, enabled):
    said, _, status = run(
        tmp_path,
        f"""
        {enabled}
        x = np.zeros(10, np.int32)
        scatter(x, 0)
        scatter(x, FAR)
    """,
    )
    assert status == -signal.SIGSEGV
    assert said.count(SAID) == 1
    assert said.count("Fatal Python error: Segmentation fault") == bool(enabled)


def test_faulthandler_that_is_enabled_later_is_in_front_until_the_next_kernel(tmp_path):
    said, _, status = run(
        tmp_path,
        """
        x = np.zeros(10, np.int32)
        scatter(x, 0)
        faulthandler.enable()
        clear(x, 1)
        scatter(x, FAR)
    """,
    )
    assert status == -signal.SIGSEGV
    assert said.count(SAID) == 1
    assert said.count("Fatal Python error: Segmentation fault") == 1


def test_crashes_elsewhere_are_nobodys_but_their_own(tmp_path):
    said, _, status = run(
        tmp_path,
        """
        faulthandler.enable()
        scatter(np.zeros(10, np.int32), 0)
        ctypes.string_at(8)
    """,
    )
    assert status == -signal.SIGSEGV
    assert "quadpy:" not in said
    assert said.count("Fatal Python error: Segmentation fault") == 1


@pytest.mark.parametrize("number", ["SIGSEGV", "SIGBUS"])
def test_a_signal_that_is_sent_ends_the_process_as_before(tmp_path, number):
    said, out, status = run(
        tmp_path,
        f"""
        scatter(np.zeros(10, np.int32), 0)
        print("before", flush=True)
        os.kill(os.getpid(), signal.{number})
        print("after", flush=True)
    """,
    )
    assert (said, out, status) == ("", "before\n", -getattr(signal, number))


def test_a_handler_in_python_is_called_for_a_signal_that_is_sent(tmp_path):
    _, out, status = run(
        tmp_path,
        """
        signal.signal(signal.SIGSEGV, lambda *_: print("handled", flush=True))
        scatter(np.zeros(10, np.int32), 0)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGSEGV)
        print("after")
    """,
    )
    assert (out, status) == ("handled\n" * 3 + "after\n", 0)


def test_an_ignored_signal_stays_ignored(tmp_path):
    _, out, status = run(
        tmp_path,
        """
        signal.signal(signal.SIGBUS, signal.SIG_IGN)
        scatter(np.zeros(10, np.int32), 0)
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGBUS)
        print("after")
    """,
    )
    assert (out, status) == ("after\n", 0)


def test_a_handler_that_repairs_faults_goes_on_doing_so(tmp_path):
    """It makes a page writable, as garbage collectors and virtual machines do."""
    _, out, status = run(
        tmp_path,
        """
        import mmap
        libc = ctypes.CDLL(None)
        page = mmap.mmap(-1, mmap.PAGESIZE)
        at = ctypes.addressof(ctypes.c_char.from_buffer(page))
        repaired = []

        @ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        def repair(number, info, context):
            repaired.append(number)
            libc.mprotect(ctypes.c_void_p(at), mmap.PAGESIZE, 3)

        class Action(ctypes.Structure):
            _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ubyte * 128), ("flags", ctypes.c_int), ("restorer", ctypes.c_void_p)]

        action = Action(ctypes.cast(repair, ctypes.c_void_p).value, flags=4)
        assert libc.sigaction(11, ctypes.byref(action), None) == 0
        scatter(np.zeros(10, np.int32), 0)
        for round in range(3):
            libc.mprotect(ctypes.c_void_p(at), mmap.PAGESIZE, 1)
            ctypes.memset(at, round, 1)
        print(repaired, ctypes.string_at(at, 1))
    """,
    )
    assert (out, status) == ("[11, 11, 11] b'\\x02'\n", 0)


def test_a_child_of_a_fork_says_it_too(tmp_path):
    said, _, _ = run(
        tmp_path,
        """
        x = np.zeros(10, np.int32)
        scatter(x, 0)
        if child := os.fork():
            os.waitpid(child, 0)
        else:
            scatter(x, FAR)
    """,
    )
    assert said.count(SAID) == 1


def test_a_setting_turns_it_off(tmp_path):
    said, _, status = run(tmp_path, "scatter(np.zeros(10, np.int32), FAR)", QUADPY_CRASH_MESSAGE="0")
    assert (said, status) == ("", -signal.SIGSEGV)


def test_with_checks_the_same_program_raises(tmp_path):
    said, _, status = run(tmp_path, "scatter(np.zeros(10, np.int32), FAR)", QUADPY_DEBUG="1")
    assert status == 1
    assert "KernelIndexError" in said
    assert f"x[{2**42}] is out of range" in said
