"""What a print must not change: results, their bits, and the code of kernels that do not print."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)
I32x2 = qp.types.ndarray(dtype=qp.i32, ndim=2)
F32x2 = qp.types.ndarray(dtype=qp.f32, ndim=2)

RNG = np.random.default_rng(7)
X = (RNG.random(5000) - 0.5).astype(np.float32)
KEYS = RNG.integers(0, 16, 5000).astype(np.int32)

PROGRAMS = {
    "sum": ("F, x: F, k: I", """
        for i in x:
            a = x[i] * 1.1
            {print}
            out[0] += a
            qp.atomic_max(out[1], x[i])
    """),
    "histogram": ("F, x: F, k: I", """
        for i in x:
            {print}
            out[k[i]] += x[i] * x[i]
    """),
    "dot of rows": ("F, x: F, k: I", """
        for i in out:
            s = 0.0
            for j in range(i, x.shape[0], 16):
                {print}
                s += x[j] * 0.3
            out[i] = s
    """),
    "strips": ("F, x: F, k: I", """
        for i in x:
            {print}
            out[i % 16] = 1.0
            x[i] = x[i] * 0.5 + 1.0
        for i in out:
            {print}
            out[i] += x[i] + x[i + 16]
    """),
    "while": ("F, x: F, k: I", """
        for i in out:
            v = x[i]
            n = 0
            while v < 3.0 and n < 50:
                v += 0.1 + x[n]
                if n % 7 == 3:
                    {print}
                    n += 1
                n += 1
            out[i] = v + n
    """),
    "random": ("F, x: F, k: I", """
        for i in out:
            {print}
            out[i] = qp.random() + qp.random()
    """),
    "serial": ("F, x: F, k: I", """
        s = 0.0
        qp.loop_config(serialize=True)
        for i in range(16):
            s += x[i]
            {print}
            out[i] = s
    """),
    "shared": ("F, x: F, k: I", """
        qp.loop_config(block_dim=16)
        for i in range(32):
            tile = qp.simt.block.SharedArray((16,), qp.f32)
            t = qp.simt.block.thread_idx()
            tile[t] = x[i]
            {print}
            qp.simt.block.sync()
            if t == 0:
                {print}
                out[i // 16] = tile[15] + tile[3]
    """),
}  # fmt: skip


def run(module):
    out, x = qp.ndarray(qp.f32, 16), qp.ndarray(qp.f32, len(X))
    keys = qp.ndarray(qp.i32, len(KEYS))
    x.from_numpy(X), keys.from_numpy(KEYS)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        module.kernel(out, x, keys)
        qp.sync()
    return out.to_numpy(), x.to_numpy(), text.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_are_those_without_a_print(init, load, arch, name):
    signature, body = PROGRAMS[name]
    text = "F, I = qp.types.ndarray(dtype=qp.f32, ndim=1), qp.types.ndarray(dtype=qp.i32, ndim=1)\n"
    text += f"@qp.kernel\ndef kernel(out: {signature}):" + body.replace("\n    ", "\n")
    floats = name == "histogram" and arch != "cpu"  # floating-point atomics have no order there
    found = {}
    for statement in ("pass", "print(i, x[i], f'{k[i] * 2:04d}', qp.sqrt(x[i]))"):
        init(print_buffer=64 << 20, random_seed=3)
        found[statement] = run(load(text.replace("{print}", statement)))
    plain, printing = found.values()
    for a, b in zip(plain[:2], printing[:2], strict=True):
        if floats:
            np.testing.assert_allclose(a, b, rtol=1e-5)
        else:
            assert a.tobytes() == b.tobytes()
    assert plain[2] == ""
    assert printing[2] != ""


def test_no_print_is_lost_or_doubled(init, arch):
    init(print_buffer=64 << 20)

    @qp.kernel
    def kernel(x: F32, out: F32):
        for i in x:
            out[0] += x[i]
            print("a", i)
            for j in range(i % 4):
                x[i] += 1.0
                print("b", i, j)
            out[1] += x[i]

    n = 3000
    x, out = qp.ndarray(qp.f32, n), qp.ndarray(qp.f32, 2)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        kernel(x, out)
        qp.sync()
    expected = "".join(f"a {i}\n" + "".join(f"b {i} {j}\n" for j in range(i % 4)) for i in range(n))
    assert text.getvalue() == expected
    assert out[1] == sum(i % 4 for i in range(n))


def test_atomics_beside_prints_see_each_value_once(arch):
    @qp.kernel
    def kernel(x: I32):
        for _i in range(500):
            print(qp.atomic_add(x[0], 1))

    x = qp.ndarray(qp.i32, 1)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        kernel(x)
        qp.sync()
    assert sorted(map(int, text.getvalue().split())) == list(range(500))
    assert x[0] == 500


def test_tasks_print_in_their_order(init, arch):
    init(print_buffer=64 << 20)

    @qp.kernel
    def kernel(n: qp.i32):
        print("start")
        for i in range(n):
            print(i, end=",")
        print()
        for i in range(n):
            print(-i, end=",")
        print("\nend")

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        for _ in range(3):
            kernel(700)
        qp.sync()
    up, down = ("".join(f"{sign * i}," for i in range(700)) for sign in (1, -1))
    assert text.getvalue() == 3 * f"start\n{up}\n{down}\nend\n"


def test_sections_and_do_while_loops(arch):
    @qp.kernel(graph=True)
    def kernel(go: I32, n: qp.i32):
        while qp.graph.do_while(go):
            for i in range(n):
                print("turn", go[0], i)
            with qp.graph.parallel():
                for i in range(n):
                    print("left", i)
            with qp.graph.parallel():
                for i in range(n):
                    print("right", i)
            for i in range(1):
                go[i] -= 1

    go = qp.ndarray(qp.i32, 1)
    go.fill(3)
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        kernel(go, 5)
        qp.sync()
    lines = text.getvalue().splitlines()
    assert len(lines) == 3 * 15
    for turn in range(3):
        part = lines[15 * turn : 15 * turn + 15]
        assert part[:5] == [f"turn {3 - turn} {i}" for i in range(5)]
        for side in ("left", "right"):
            assert [line for line in part if side in line] == [f"{side} {i}" for i in range(5)]


def test_what_does_not_fit_is_said(init, arch):
    init(print_buffer=8 * 50)

    @qp.kernel
    def kernel(n: qp.i32):
        for i in range(n):
            print("line", i)

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        kernel(1000)
        qp.sync()
        kernel(2)
        qp.sync()
    *lines, loss, first, second = text.getvalue().splitlines()
    assert len(lines) == 16 == len(set(lines))
    assert loss == "… 984 lines lost; raise print_buffer, which is 400 bytes"
    assert (first, second) == ("line 0", "line 1")


def test_a_kernel_that_does_not_print_is_as_before(arch):
    @qp.kernel
    def plain(x: F32):
        for i in x:
            x[i] += 1.0

    @qp.kernel
    def printing(x: F32):
        for i in x:
            x[i] += 1.0
            print(x[i])

    x = qp.ndarray(qp.f32, 3)
    with contextlib.redirect_stdout(io.StringIO()):
        plain(x), printing(x), qp.sync()
    (one,), (two,) = (tuple(k._dispatcher.specialisations.values()) for k in (plain, printing))
    assert type(one._disjoint).__name__ in ("CpuPlan", "GpuPlan")
    assert type(two._disjoint).__name__ in ("_CpuMemoryPlan", "_GpuMemoryPlan")
    assert one._disjoint.code.hidden == ()
    assert one._disjoint.code.messages == ()
    assert [h.name for h in two._disjoint.code.hidden] == ["print"]
    assert not two.has_fast_calls


@pytest.mark.parametrize("size", [0, 7, -1, 1.5, "1 MiB", True, 1 << 60])
def test_a_number_of_bytes_that_makes_no_sense(size):
    with pytest.raises(
        qp.ArgumentError, match=f"print_buffer must be a number of bytes from 8 to 4294967296, not '?{size}'?"
    ):
        qp.init(print_buffer=size)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"debug": "no"}, "debug must be True or False, not 'no'"),
        ({"fast_math": 2}, "fast_math must be True or False, not 2"),
        ({"random_seed": "now"}, "random_seed must be an integer, not 'now'"),
        ({"random_seed": 0.5}, "random_seed must be an integer, not 0.5"),
        ({"cpu_max_num_threads": 1.5}, "cpu_max_num_threads must be at least 1, not 1.5"),
        ({"cpu_max_num_threads": 0}, "cpu_max_num_threads must be at least 1, not 0"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(qp.ArgumentError, match=message):
        qp.init(**options)


def test_a_kernel_that_is_asked_for_half_its_checks():
    with pytest.raises(qp.ArgumentError, match="debug must be True or False, not 'some'"):

        @qp.kernel(debug="some")
        def nothing():
            pass
