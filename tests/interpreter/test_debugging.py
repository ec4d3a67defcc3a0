"""What users do with ``arch=qp.python``: stop in a kernel, look around, step, see where it failed, measure coverage."""

from __future__ import annotations

import inspect
import io
import os
import pdb  # noqa: T100 - what is tested
import subprocess
import sys
import traceback

import numpy as np
import pytest

import quadpy as qp

SCALE = 3.0
Particle = qp.types.struct(pos=qp.types.vector(2, qp.f32), mass=qp.f32)


@pytest.fixture(autouse=True)
def _python():
    qp.init(arch=qp.python)
    yield
    qp.init(arch=qp.cpu)


@qp.func
def area(v, otherwise):
    if v.x > 2.0:
        return otherwise
    w = v * 2  # in area
    return w.x * w.y


@qp.kernel
def measure(x: qp.types.ndarray(dtype=qp.f32, ndim=1)) -> qp.f32:
    total = 0.0
    n = 3
    for i in range(x.shape[0]):
        v = qp.math.vec2(i, 2)
        p = Particle(pos=v, mass=1.0)
        p.mass += SCALE
        for j in qp.static(range(2)):
            p.pos[j] += 1.0
        y = area(v, 7.0)  # calls area
        if i % 2 == 1:
            y = -y  # only odd ones
        x[i] = y + p.mass + n  # the end
        total += x[i]
    return total


def line(text):
    """The number of the one line of this file that ends with ``# text``."""
    lines, _ = inspect.findsource(sys.modules[__name__])
    (found,) = [number for number, one in enumerate(lines, 1) if one.rstrip().endswith(f"# {text}")]
    return found


def session(call, *commands, stops=()):
    """What the debugger says to ``commands``, with stops at these lines."""
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("\n".join(commands) + "\n"), stdout=out, nosigint=True, readrc=False)
    for number in stops:
        assert debugger.set_break(__file__, number) is None
    before = sys.gettrace()
    try:
        debugger.runcall(call)
    finally:
        sys.settrace(before)
        debugger.clear_all_breaks()
    return out.getvalue()


def test_a_breakpoint_on_a_line_of_a_kernel_stops_there_with_its_names():
    x = np.zeros(4, np.float32)
    said = session(lambda: measure(x), "c", "p i, n, y", "p v.x, p.mass, p.pos.tolist(), j", "p x.shape, SCALE", "c", "c", "c", "c",
                   stops=[line("the end")])  # fmt: skip
    assert f"({line('the end')})measure()" in said
    assert "-> x[i] = y + p.mass + n  # the end" in said
    assert "(np.int32(0), np.int32(3), np.float32(0.0))" in said
    assert "(np.float32(0.0), np.float32(4.0), [1.0, 3.0], 1)" in said
    assert "((4,), 3.0)" in said
    assert said.count("# the end") == 4  # each iteration


def test_names_follow_their_variables():
    x = np.zeros(4, np.float32)
    stop = line("the end")
    said = session(lambda: measure(x), f"tbreak {stop}, i == 1", "c", "p 'y', y", "p x[0]", "c")
    assert "('y', np.float32(-8.0))" in said
    assert "np.float32(7.0)" in said  # what the iteration before has stored


def test_step_enters_a_function_and_its_caller_is_above():
    x = np.zeros(2, np.float32)
    said = session(
        lambda: measure(x), "c", "p w, v, otherwise", "w", "up", "p i", "c", "c", stops=[line("in area") + 1]
    )
    assert "Vector([0., 4.]" in said
    assert f"({line('calls area')})measure()" in said
    assert f"({line('in area') + 1})area()" in said
    stepped = session(lambda: measure(x), f"tbreak {line('calls area')}", "c", "s", "s", "c")
    assert "--Call--" in stepped
    assert f"({area.source.span.line})area()" in stepped


def test_stepping_over_lines_follows_the_source():
    x = np.zeros(2, np.float32)
    said = session(lambda: measure(x), f"tbreak {line('calls area')}, i == 1", "c", "n", "n", "n", "n", "c")
    at = [text.split("> ")[-1] for text in said.splitlines() if "(Pdb) -> " in text or text.startswith("-> ")]
    assert [one.strip("-> ").split("#")[0].strip() for one in at[1:]] == [
        "y = area(v, 7.0)", "if i % 2 == 1:", "y = -y", "x[i] = y + p.mass + n", "total += x[i]",
    ]  # fmt: skip


@qp.kernel
def stops(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in x:
        y = i * 2
        if i == 1:
            breakpoint()  # noqa: T100 - what is tested
        x[i] = y


def test_breakpoint_stops_in_the_kernel(monkeypatch):
    seen = []

    def hook():
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_name, frame.f_code.co_filename, frame.f_locals["i"], frame.f_locals["y"]))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    x = np.zeros(3, np.int32)
    stops(x)
    assert seen == [("stops", __file__, 1, 2)]
    assert x.tolist() == [0, 2, 4]


def test_breakpoint_in_a_compiled_kernel_says_what_to_do():
    qp.init(arch=qp.cpu)
    with pytest.raises(qp.KernelSyntaxError, match=r"qp\.init\(arch=qp\.python\)") as error:
        stops(np.zeros(3, np.int32))
    assert error.value.span.line == stops.source.span.line + 5


def lines_run(call):
    """The lines of this file that run in kernels and their functions."""
    names, seen = {"measure", "area"}, set()

    def trace(frame, event, _):
        if frame.f_code.co_filename != __file__ or frame.f_code.co_name not in names:
            return None
        if event == "line":
            seen.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen


def test_tracing_sees_exactly_the_lines_that_run():
    x = np.zeros(1, np.float32)
    first, last = measure.source.span.line + 2, line("the end") + 2
    body = set(range(first, last + 1))
    assert lines_run(lambda: measure(x)) & body == body - {line("only odd ones")}
    inside = set(range(area.source.span.line + 2, line("in area") + 2))
    assert lines_run(lambda: measure(x)) & inside == inside - {area.source.span.line + 3}
    assert lines_run(lambda: measure(np.zeros(4, np.float32))) & (body | inside) == body | inside


@qp.func
def pick(x, k):
    return x[k]  # outside


@qp.kernel
def reads(x: qp.types.ndarray(dtype=qp.f32, ndim=1), k: qp.i32):
    for i in x:
        x[i] = pick(x, i + k)  # calls pick


@pytest.mark.parametrize(("k", "index"), [(3, 4), (-1, -1)])
def test_an_index_out_of_range_raises_at_its_line_without_debug(k, index):
    x = np.arange(4, dtype=np.float32)
    with pytest.raises(qp.KernelIndexError, match=f"index {index} is out of range: axis 0 has extent 4") as error:
        reads(x, k)
    assert error.value.span.line == line("outside")
    assert error.value.values == (index, 4)
    frames = traceback.extract_tb(error.value.__traceback__)
    assert [(frame.name, frame.lineno) for frame in frames[-2:]] == [
        ("reads", line("calls pick")),
        ("pick", line("outside")),
    ]
    innermost = [frame for frame, _ in traceback.walk_tb(error.value.__traceback__)][-2]
    assert innermost.f_locals["i"] == (1 if k == 3 else 0)  # as a debugger after the fact sees it


@qp.kernel(debug=True)
def halves(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in x:
        assert x[i] % 2 == 0, f"{x[i]} is odd"  # halves
        x[i] //= 2


def test_a_failed_assertion_raises_at_its_line():
    x = np.array([2, 4, 5, 6], np.int32)
    with pytest.raises(qp.KernelAssertionError, match="5 is odd") as error:
        halves(x)
    assert error.value.iteration == {"i": 2}
    assert traceback.extract_tb(error.value.__traceback__)[-1].lineno == line("halves")
    assert x.tolist() == [1, 2, 5, 6]  # it raises at once: later iterations have not run


@qp.kernel
def says(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
    print("start")
    for i in x:
        print(f"{i}: {x[i]:.2f}", qp.math.vec2(i, 1))
    print("end")


def test_print_prints_at_once(capsys):
    says(np.array([0.5, 1.25], np.float32))
    assert capsys.readouterr().out == "start\n0: 0.50 [0.0, 1.0]\n1: 1.25 [1.0, 1.0]\nend\n"


PROGRAM = """
import sys
import numpy as np
import quadpy as qp

qp.init(arch=qp.cpu)

@qp.kernel
def where(x: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in x:
        breakpoint()

sys.breakpointhook = lambda: print(sys._getframe(1).f_code.co_name)
where(np.zeros(1, np.int32))
"""


def test_the_environment_chooses_it(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    made = subprocess.run(
        [sys.executable, file], env=os.environ | {"QUADPY_ARCH": "python"}, capture_output=True, text=True, check=True
    )
    assert made.stdout == "where\n"


def test_a_keyboard_interrupt_ends_the_kernel_where_it_is(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "breakpointhook", interrupt)
    x = np.full(3, -1, np.int32)
    with pytest.raises(KeyboardInterrupt):
        stops(x)
    assert x.tolist() == [0, -1, -1]
    monkeypatch.setattr(sys, "breakpointhook", lambda: None)
    stops(x)
    assert x.tolist() == [0, 2, 4]


@qp.kernel(debug=True)
def overflows(x: qp.types.ndarray(dtype=qp.i32, ndim=1), runs: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    runs[0] += 1
    for i in x:
        x[i] = x[i] + x[i]


@pytest.mark.parametrize("arch", [qp.python, qp.cpu])
def test_a_kernel_whose_check_fails_has_run_once(arch):
    """An overflow is an OverflowError, as an argument raises that does not fit."""
    qp.init(arch=arch)
    runs = np.zeros(1, np.int32)
    with pytest.raises(qp.KernelOverflowError):
        overflows(np.array([1 << 30], np.int32), runs)
    assert runs[0] == 1


@qp.kernel(debug=True)
def marks(x: qp.types.ndarray(dtype=qp.f32, ndim=1), k: qp.types.ndarray(dtype=qp.i32, ndim=1)):
    for i in k:
        x[k[i]] = i


def test_races_are_not_looked_for():
    """Iterations run in order; compiled code under ``debug=True`` has shadow memory for this."""
    x = np.zeros(4, np.float32)
    marks(x, np.array([2, 2, 1], np.int32))
    assert x.tolist() == [0, 2, 1, 0]
