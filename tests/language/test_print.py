"""``print`` in kernels: the text, its order, and what is refused."""

from __future__ import annotations

import contextlib
import io
import struct

import numpy as np
import pytest

import quadpy as qp

F32 = qp.types.ndarray(dtype=qp.f32, ndim=1)
F32x2 = qp.types.ndarray(dtype=qp.f32, ndim=2)
I32 = qp.types.ndarray(dtype=qp.i32, ndim=1)


def printed(kernel, *args):
    """What a call prints by the time that its work is done."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        completed(kernel, *args)
    return out.getvalue()


def completed(kernel, *args):
    kernel(*args)
    qp.sync()


@qp.kernel
def numbers(n: qp.i32, x: qp.f32):
    print(n, -n, x, qp.f64(0.1), True, n > 3)
    print(qp.u8(200), qp.i8(-3), qp.u64(n) << 60, qp.i64(n) << 60, qp.u32(0xFFFFFFFF), qp.i16(-32768))
    print(qp.f16(1.5), qp.f64(1.0) / 3.0, qp.f32(1e30), -0.0 * x)


def test_numbers_are_pythons(arch):
    assert printed(numbers, 8, 0.5) == (
        "8 -8 0.5 0.1 True True\n"
        f"200 -3 {(8 << 60) % (1 << 64)} {-(1 << 63)} 4294967295 -32768\n"
        f"1.5 {1 / 3} {float(np.float32(1e30))} -0.0\n"
    )


def test_a_single_prints_as_the_float_that_it_is(arch):
    @qp.kernel
    def one(x: qp.f32):
        print(x)

    for value in (0.1, 1 / 3, 1e-45, 3.4e38, float("inf"), -float("inf"), float("nan")):
        with np.errstate(over="ignore"):
            assert printed(one, value) == f"{float(np.float32(value))}\n"


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_extremes_of_every_integer(arch, load, dtype):
    module = load(f"""
        @qp.kernel
        def both(a: qp.{dtype}, b: qp.{dtype}):
            print(a, b, f"{{a:x}}", f"{{b:+d}}")
    """)
    bits = int(dtype[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)
    assert printed(module.both, low, high) == f"{low} {high} {low:x} {high:+d}\n"


def test_formats(arch):
    @qp.kernel
    def shown(i: qp.i32, x: qp.f32):
        print(f"{i:05d}|{x:.3f}|{x:>10.2e}|{i!r:>4}|{x!s}|{i:#x}|{x:%}|{i:,}|{{}}|{i=}")
        print("{0} {1:.2f} {0} {name!r:<6}|".format(i, x, name=i + 1), "{} {}".format(i, x))  # noqa: UP032 - what is tested
        print("%d %5.2f %s %r %x 100%%" % (i, x, x, i, i))  # noqa: UP031 - the form that is tested
        print("%d" % i)  # noqa: UP031 - as above

    i, x = 1234567, 2.5
    assert printed(shown, i, x) == (
        f"{i:05d}|{x:.3f}|{x:>10.2e}|{i!r:>4}|{x!s}|{i:#x}|{x:%}|{i:,}|{{}}|{i=}\n"
        f"{i} {x:.2f} {i} {i + 1!r:<6}| {i} {x}\n"
        f"{i} {x:5.2f} {x} {i} {i:x} 100%\n"
        f"{i}\n"
    )


@qp.dataclass
class Particle:
    x: qp.types.vector(2, qp.f32)
    n: qp.i32
    mass: qp.f64

    @qp.func
    def show(self):
        print("particle", self.n, self)


def test_vectors_matrices_structs_and_containers(arch):
    @qp.kernel
    def shown(n: qp.i32, a: F32x2):
        v = qp.Vector([1.0, 2.0, n])
        m = qp.Matrix([[1, n], [3, 4]])
        p = Particle(qp.Vector([0.5, n]), n, 2.0)
        print(v, m, p, v.xy, m[0, 1])
        print(f"{v:.1f} {m:03d}", (n, "x", v), [n, 1], a.shape, p.x)
        p.show()

    v, m = [1.0, 2.0, 7.0], [[1, 7], [3, 4]]
    p = "struct(x=[0.5, 7.0], n=7, mass=2.0)"
    assert printed(shown, 7, np.zeros((2, 3), np.float32)) == (
        f"{v} {m} {p} [1.0, 2.0] 7\n"
        "[1.0, 2.0, 7.0] [[001, 007], [003, 004]] (7, 'x', [1.0, 2.0, 7.0]) [7, 1] (2, 3) [0.5, 7.0]\n"
        f"particle 7 {p}\n"
    )


def test_values_that_a_format_does_not_know(arch):
    @qp.kernel
    def shown(n: qp.i32, x: qp.f32):
        print(f"{n:c}", "%c" % n, "%d" % x)  # noqa: UP031 - what is tested

    assert printed(shown, 65, 2.5) == "A A 2\n"
    assert printed(shown, -1, float("inf")) == "-1 -1 inf\n"
    assert printed(shown, 1 << 30, float("nan")) == f"{1 << 30} {1 << 30} nan\n"


def test_sep_end_and_empty(arch):
    @qp.kernel
    def shown(n: qp.i32):
        print(n, n + 1, sep="", end="|")
        print()
        print(end="no newline\n")
        print("a", n, "b", sep=" - ", flush=True)
        print("ä", "€", "'\"\\{}%s", sep="\t")

    assert printed(shown, 3) == "34|\nno newline\na - 3 - b\nä\t€\t'\"\\{}%s\n"


def test_static_values_print_as_in_python(arch):
    name, pair = "run", (1, 2.5, None)

    @qp.kernel
    def shown():
        for k in qp.static(range(3)):
            print(name, k, pair, 0.1, qp.f32)

    assert printed(shown) == "".join(f"run {k} (1, 2.5, None) 0.1 f32\n" for k in range(3))


@qp.func
def show(text):
    print("show", text)


def test_texts_have_names_and_are_joined(arch):
    @qp.kernel
    def shown(n: qp.i32):
        text = f"<{n}>"
        m = n
        late = f"{m}"
        m += 1
        print("a" + text + "b", str(n) + "!", f"[{text}]", late, m, repr(n), text, format(n, "03d"), str(text))
        show(text)
        line = ""
        for k in qp.static(range(3)):
            line += f"{k * n} "
        print("%s" % line, "{}".format(line))  # noqa: UP031, UP032 - what is tested

    assert printed(shown, 5) == "a<5>b 5! [<5>] 5 6 5 <5> 005 <5>\nshow <5>\n0 5 10  0 5 10 \n"


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_a_loop_prints_in_the_order_of_its_iterations(arch, n):
    @qp.kernel
    def shown(x: I32):
        print("begin")
        for i in x:
            if i % 3 != 1:
                for j in range(i % 3 + 1):
                    print(i, j, end=" ")
                x[i] += 1
                print("after", x[i])
        print("end")

    x = qp.ndarray(qp.i32, n)
    expected = "begin\n"
    for i in range(n):
        if i % 3 != 1:
            expected += "".join(f"{i} {j} " for j in range(i % 3 + 1)) + "after 1\n"
    assert printed(shown, x) == expected + "end\n"
    assert (x.to_numpy() == [i % 3 != 1 for i in range(n)]).all()


def test_several_axes_negative_indices_and_steps(arch):
    @qp.kernel
    def shown():
        for i, j in qp.ndrange((-2, 2), (5, 8)):
            print(i, j, end=";")
        print()
        for i in range(4, -4, -3):
            print(i, end=";")
        print()
        for i in range(-3, 6, 4):
            print(i, end=";")

    expected = "".join(f"{i} {j};" for i in range(-2, 2) for j in range(5, 8))
    down, up = ("".join(f"{i};" for i in r) for r in (range(4, -4, -3), range(-3, 6, 4)))
    assert printed(shown) == f"{expected}\n{down}\n{up}"


def test_functions_branches_loops_and_returns(arch):
    @qp.func
    def collatz(n):
        steps = 0
        while n != 1:
            if n % 2:
                n = 3 * n + 1
            else:
                n //= 2
            steps += 1
            if steps > 4:
                print("long", n)
                return steps
            print(n, end=" ")
        print("done", steps)
        return steps

    @qp.kernel
    def shown(x: I32) -> qp.i32:
        for i in x:
            x[i] = collatz(i + 1)
        return x[0]

    x = qp.ndarray(qp.i32, 6)
    assert printed(shown, x) == ("done 0\n1 done 1\n10 5 16 8 long 4\n2 1 done 2\n16 8 4 2 long 1\n3 10 5 16 long 8\n")
    assert x.to_numpy().tolist() == [0, 1, 5, 2, 5, 5]


def test_a_serialized_loop_prints_in_order(arch):
    @qp.kernel
    def shown():
        qp.loop_config(serialize=True)
        for i in range(20):
            print(i, end=" ")

    assert printed(shown) == "".join(f"{i} " for i in range(20))


@pytest.mark.parametrize(("line", "message", "hint"), [
    ("print(x)", "cannot be printed as a whole", "x\\[i\\]"),
    ("print(f'{x}')", "cannot be printed as a whole", "x\\[i\\]"),
    ("print(f'{n:.3q}')", "'.3q' does not format i32", ""),
    ("print(f'{a:d}')", "'d' does not format f32", ""),
    ("print('{:d}'.format(a))", "'d' does not format f32", ""),
    ("print('%d' % qp.Vector([a, a]))", "'%d' does not format f32x2", ""),
    ("print('%d %d' % n)", "asks for more values than the 1", ""),
    ("print('%d' % (n, n))", "takes 1 values, not 2", ""),
    ("print('{} {}'.format(n))", "asks for more values", ""),
    ("print('{y}'.format(z=n))", "asks for 'y'", ""),
    ("print('{'.format(z=n))", "Single '{'|expected '}'", ""),
    ("print(n, file=None)", "takes no file=", "sys.stdout"),
    ("print(n, sep=n)", "sep must be a string", ""),
    ("print(n, end=1)", "end must be a string", ""),
    ("print(f'{n:{n}}')", "must be known at compile time", ""),
    ("print(f'{n:99999999}')", "the width in '99999999' is above 10,000", ""),
    ("n = f'{n}'", "text", ""),
    ("x[0] = f'{n}'", "text", ""),
    ("y = f'{n}' * 2", "not defined for a text", ""),
    ("y = f'{n}'.upper()", "it can only be printed", ""),
    ("print({'a': n})", "has no text", "vectors"),
    ("print('{!x}'.format(n))", "no conversion !x", "!r"),
    ("print(10 ** 5000)", "int has no text: Exceeds the limit", ""),
    ("print(format(n, n))", "must be a string at compile time", ""),
    ("print(repr(n, n))", "repr takes one value", ""),
    ("qp.static_assert(False, f'{n}')", "known at compile time", ""),
    ("print(n, flush=n)", "flush must be True or False", ""),
    ("if f'{n}':\n                print(n)", "must be a single value", ""),
    ("print(f'{n}'[0])", "cannot be indexed", ""),
    ("print(f'{(n, n):>10}')", "'>10' does not format tuple", ""),
])  # fmt: skip
def test_what_is_refused(load, line, message, hint):
    module = load(f"""
        @qp.kernel
        def kernel(x: qp.types.ndarray(qp.f32, 1), n: qp.i32, a: qp.f32):
            {line}
    """)
    with pytest.raises(qp.CompilationError, match=message) as caught:
        module.kernel(np.zeros(3, np.float32), 1, 2.0)
    assert caught.value.span.line == 6
    if hint:
        assert caught.match(f"hint: .*{hint}")


@qp.real_func
def stepped(a: qp.i32, v: qp.types.vector(2, qp.f32)) -> qp.i32:
    for s in range(a):
        print("step", s, v)
        if s == 1:
            print("enough")
            return 7
    return a


def test_real_functions(arch):
    @qp.kernel
    def shown(x: I32):
        for i in x:
            x[i] = stepped(i, qp.Vector([i, 0.5])) + stepped(0, qp.Vector([i, 2.0]))
            print(i, x[i])

    assert printed(shown, qp.ndarray(qp.i32, 4)) == (
        "0 0\nstep 0 [1.0, 0.5]\n1 1\n"
        + "".join(f"step 0 [{i}.0, 0.5]\nstep 1 [{i}.0, 0.5]\nenough\n{i} 7\n" for i in (2, 3))
    )


def test_what_was_printed_before_a_failed_assertion_appears(init, arch):
    init(debug=True)

    @qp.kernel
    def shown(n: qp.i32):
        for i in range(n):
            print("at", i)
            assert i < 3, f"too far: {i} {qp.Vector([i, 2])}"

    assert printed(shown, 3) == "at 0\nat 1\nat 2\n"
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(AssertionError, match=r"too far: 3 \[3, 2\]"):
        completed(shown, 4)
    assert out.getvalue() == "at 0\nat 1\nat 2\nat 3\n"


@pytest.mark.parametrize("backend", ["cpu", "python"])
@pytest.mark.parametrize("error", [TypeError, OverflowError, struct.error, IndexError, ValueError, BrokenPipeError])
def test_the_kernel_runs_once_whatever_the_output_raises(backend, error):
    class Output(io.StringIO):
        def write(self, text):
            raise error("no more")

    @qp.kernel
    def count(x: I32):
        for i in x:
            x[i] += 1
        print(x[0])

    qp.init(arch=getattr(qp, backend))
    try:
        x = np.zeros(2, np.int32)
        with pytest.raises(error, match="no more"), contextlib.redirect_stdout(Output()):
            count(x)
        assert x.tolist() == [1, 1]
    finally:
        qp.init(arch=qp.cpu)
