"""Graphs in files: what is loaded does what was saved; what does not fit is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import saved_cases
from backends import backends
from saved_cases import F32, floats, half_step, saxpy

import quadpy as qp
from quadpy.core.target import machine_of
from quadpy.errors import ArgumentError, BoundsError, CaptureError, GraphError, SavedGraphError, UnknownTargetError
from quadpy.graph.saved.hosts import here
from quadpy.runtime.device.current import Config, current_config, set_config

SUPPORT = Path(saved_cases.__file__)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "step.qpg"


def run(program, **environment):
    paths = [*sys.path, str(SUPPORT.parent)]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {paths}\n{program}"], capture_output=True, text=True,
        timeout=300, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def saved(path, x=None, y=None, **options):
    """A graph y = 2 x + y, then y += x / 2."""
    x, y = floats(1, 2, 3, 4) if x is None else x, floats(5, 6, 7, 8) if y is None else y
    g = qp.graph.Graph()
    g.add_kernel(saxpy, 2.0, x, y)
    g.add_kernel(half_step, x, y)
    g.save(path, bind={"x": x, "y": y}, **options)
    return path


@pytest.mark.parametrize("arch", backends())
@pytest.mark.parametrize("case", saved_cases.CASES, ids=lambda case: case.__name__)
def test_a_loaded_graph_does_what_the_live_one_does(case, arch, tmp_path):
    set_config(Config(arch=arch))
    saved_cases.check(case, tmp_path)


def test_the_same_on_a_simulated_gpu():
    done = run(f"import runpy; runpy.run_path({str(SUPPORT)!r}, run_name='__main__')", QUADPY_CACHE="0")
    assert done.split() == [*(case.__name__ for case in saved_cases.CASES), "uses"]


@pytest.mark.parametrize("arch", backends())
def test_uses_of_what_was_loaded(arch, tmp_path):
    set_config(Config(arch=arch))
    saved_cases.check_uses(tmp_path)


LOADING = """
import sys
import quadpy as qp, quadpy.graph
import numpy as np
before = {name for name in sys.modules if name.startswith("quadpy.lang")}
with qp.graph.load(FILE) as loaded:
    x, y = np.ones(4, np.float32), np.ones(4, np.float32)
    loaded.run(x=x, y=y)
    loaded.run(x=x, y=y)
assert y.tolist() == [6.0] * 4, y
compiler = ("llvmlite", "quadpy.ir", "quadpy.codegen", "quadpy.lang", "quadpy.mathlib", "quadpy.jit.comp", "quadpy.jit.plan_maker")
print([name for name in sys.modules if name.startswith(compiler) and name not in before])
"""


def test_nothing_of_the_compiler_is_imported(path):
    saved(path)
    assert run(f"FILE = {str(path)!r}{LOADING}") == "[]\n"


WITHOUT_LLVM = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name == "llvmlite" else self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Without, sys.meta_path)
import quadpy
quadpy.init(arch=quadpy.cpu, cpu_max_num_threads=2)
"""


def test_where_llvm_is_not_installed(path):
    saved(path)
    assert run(f"FILE = {str(path)!r}{WITHOUT_LLVM}{LOADING}") == "[]\n"


SAVING = """
import saved_cases, quadpy as qp
for case in saved_cases.CASES:
    graph, bind, memory = case()
    graph.save(f"{FOLDER}/{case.__name__}.qpg", bind=bind, targets=["x86-64", "gfx1100", "sm_90"], **memory)
"""


def test_the_same_graph_gives_the_same_bytes(tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder, seed in zip(folders, ("1", "77"), strict=True):
        folder.mkdir()
        run(f"FOLDER = {str(folder)!r}{SAVING}", PYTHONHASHSEED=seed)
    for case in saved_cases.CASES:
        one, two = (folder.joinpath(f"{case.__name__}.qpg").read_bytes() for folder in folders)
        assert one == two, case.__name__


@qp.kernel
def raise_all(f: qp.template(), x: F32):
    for i in x:
        f[i] += x[i]


def test_fields_are_in_the_order_of_their_use(path):
    """Their addresses differ from process to process."""
    x, fields = floats(1, 2), [qp.field(qp.f32, n) for n in (5, 7)]
    for field in fields:
        field.fill(1.0)
    for used in (fields, fields[::-1]):
        g = qp.graph.Graph()
        for field in used:
            g.add_kernel(raise_all, field, x)
        g.save(path, bind={"x": x})
        with qp.graph.load(path) as loaded:
            assert [array.shape[0] for array in loaded.arrays[1:]] == [field.nbytes for field in used]


def test_a_field_that_a_file_has_no_room_for(path):
    """A sparse tree needs the room of all of its cells, and is refused before they are copied."""
    resource = pytest.importorskip("resource")
    sparse, x = qp.field(qp.f32), floats(1, 2)
    qp.root.pointer(qp.i, 1 << 20).dense(qp.i, 1 << 10).place(sparse)
    g = qp.graph.Graph()
    g.add_kernel(raise_all, sparse, x)
    raise_all(sparse, x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SavedGraphError, match="4 GiB or more"):
        g.save(path, bind={"x": x})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20


def test_several_threads_save_to_one_file(path):
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(saved, [path] * 40)) == {path}
    assert list(path.parent.iterdir()) == [path]


def test_a_part_of_an_array_can_be_bound(path):
    whole = floats(*range(8))
    saved(path, whole[0:4], whole[4:8])
    with qp.graph.load(path) as loaded:
        loaded.run(x=whole[4:8], y=whole[0:4])
    assert whole.to_numpy().tolist() == [10.0, 13.5, 17.0, 20.5, 4.0, 5.0, 6.0, 7.0]


THREADS = """
import os
import numpy as np
import quadpy as qp

qp.graph.load(FILE)
qp.init(arch=qp.cpu, cpu_max_num_threads=1)
numbers, before = np.ones(1 << 20, np.float32), len(os.listdir("/proc/self/task"))
with qp.graph.load(FILE) as loaded:
    loaded.run(x=numbers, y=numbers.copy())
print(len(os.listdir("/proc/self/task")) - before)
"""


def test_a_load_takes_the_number_of_threads_of_qp_init(path):
    saved(path)
    assert run(f"FILE = {str(path)!r}{THREADS}") == "0\n"


@pytest.mark.skipif(machine_of("native") != "x86_64", reason="levels of x86-64")
def test_code_for_each_level_runs_where_the_processor_has_it(path):
    qp.init(arch=qp.cpu)
    values = np.linspace(0.1, 7, 1000, dtype=np.float32)
    levels = [f"x86-64{level}" for level in ("", "-v2", "-v3", "-v4")]
    saved(path, floats(*values), floats(*values), targets=levels)
    run, found = [level for level in levels if f"cpu:{level}" in here()], set()
    for target in (None, *run):
        with qp.graph.load(path, target=target) as loaded:
            assert loaded.target == f"cpu:{target or run[-1]}"
            x, y = floats(*values), floats(*values)
            loaded.run(x=x, y=y)
            found.add(y.to_numpy().tobytes())
    assert len(found) == 1
    for level in levels[len(run) :]:
        with pytest.raises(SavedGraphError, match="leave target out"):
            qp.graph.load(path, target=level)


def test_other_sizes(path):
    saved(path)
    with qp.graph.load(path) as loaded:
        assert [info.shape for info in loaded.arrays] == [(None,), (None,)]
        for n in (0, 1, 1000, 4):
            x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
            loaded.run(x=x, y=y)
            np.testing.assert_array_equal(y, 1 + 2.5 * np.arange(n, dtype=np.float32))
        with pytest.raises(BoundsError, match=r"reach index 4 of y"):
            loaded.run(x=np.ones(5, np.float32), y=np.ones(4, np.float32))
        loaded.run(x=np.ones(3, np.float32), y=y)
        assert y.tolist() == [3.5, 6.0, 8.5, 8.5]


def test_arrays_of_other_libraries(path):
    torch = pytest.importorskip("torch")
    saved(path)
    x, y = torch.ones(4), torch.zeros(4)
    with qp.graph.load(path) as loaded:
        loaded.run(x=x, y=y)
        assert y.tolist() == [2.5] * 4
        loaded.run(x=np.ones(4, np.float32), y=y)
        assert y.tolist() == [5.0] * 4


WRONG = {
    "missing": (lambda: {"x": floats(1)}, "the array 'y' is not bound"),
    "unknown": (lambda: {"x": floats(1), "y": floats(1), "z": floats(1)}, "no array 'z'"),
    "dtype": (lambda: {"x": np.ones(4), "y": floats(1)}, "x takes elements of f32, not f64"),
    "axes": (lambda: {"x": np.ones((2, 2), np.float32), "y": floats(1)}, "x takes 1 axis, not the shape (2, 2)"),
    "strided": (lambda: {"x": np.ones(8, np.float32)[::2], "y": floats(1)}, "x must be contiguous"),
    "number": (lambda: {"x": 1.0, "y": floats(1)}, "x: float is not an array"),
}


@pytest.mark.parametrize("name", WRONG)
def test_arrays_that_do_not_fit(name, path):
    saved(path)
    arrays, message = WRONG[name]
    with qp.graph.load(path) as loaded, pytest.raises(ArgumentError, match=re.escape(message)):
        loaded.run(**arrays())


def test_arrays_that_share_memory_or_are_read_only(path):
    saved(path)
    both = np.zeros(8, np.float32)
    fixed = np.ones(4, np.float32)
    fixed.flags.writeable = False
    with qp.graph.load(path) as loaded:
        with pytest.raises(ArgumentError, match="'x' and 'y' share memory"):
            loaded.run(x=both[:5], y=both[3:])
        with pytest.raises(ArgumentError, match="y is read-only"):
            loaded.run(x=both[:4], y=fixed)
        loaded.run(x=fixed, y=both)


def test_an_axis_that_must_stay(path):
    x = floats(*range(8))
    g = qp.graph.Graph()
    g.add_kernel(half_step, x[0:4], x[4:8])
    g.save(path, bind={"x": x})
    with qp.graph.load(path) as loaded, pytest.raises(ArgumentError, match=r"axis 0 of x must have extent 8.*not 9"):
        loaded.run(x=np.zeros(9, np.float32))


@qp.kernel
def lift(x: qp.types.ndarray(dtype=saved_cases.vec3, ndim=1)):
    for i in x:
        x[i].y += 1.0


@pytest.mark.parametrize("plain", [False, True])
def test_vectors_are_bound_as_kernels_take_them(plain, path):
    x = np.zeros((4, 3), np.float32) if plain else qp.ndarray(saved_cases.vec3, 4)
    g = qp.graph.Graph()
    g.add_kernel(lift, x)
    g.save(path, bind={"x": x})
    other = qp.ndarray(saved_cases.vec3, 2)
    with qp.graph.load(path) as loaded:
        for given in (np.zeros((5, 3), np.float32), other, x):
            loaded.run(x=given)
        message = "axis 1 of x must have extent 3.*not 4" if plain else "x takes elements of f32x3, not f32x4"
        with pytest.raises(ArgumentError, match=message):
            loaded.run(x=np.zeros((5, 4), np.float32))
    assert other.to_numpy()[:, 1].tolist() == [1.0, 1.0]


def test_a_copy_needs_equal_extents(path):
    x, y = floats(1, 2), floats(0, 0)
    g = qp.graph.Graph()
    g.add_memcpy(y, x)
    g.save(path, bind={"x": x, "y": y})
    with qp.graph.load(path) as loaded:
        to = np.zeros(3, np.float32)
        loaded.run(x=np.arange(3, dtype=np.float32), y=to)
        assert to.tolist() == [0, 1, 2]
        with pytest.raises(ArgumentError, match=r"axis 0 of 'x' has extent 3.*axis 0 of 'y'"):
            loaded.run(x=np.zeros(3, np.float32), y=np.zeros(2, np.float32))


def test_in_a_live_graph_and_in_a_capture(path):
    saved(path)
    x, y = floats(1, 1, 1), floats(0, 0, 0)
    with qp.graph.load(path) as loaded:
        outer = qp.graph.Graph()
        outer.add_memset(x, 2.0)
        outer.add_child(loaded.graph(x=x, y=y))
        with outer.instantiate() as live:
            live.launch()
        assert y.to_numpy().tolist() == [5.0] * 3
        with qp.create_stream() as stream:
            with qp.graph.capture(stream) as captured:
                loaded.run(stream, x=x, y=y)
                x.fill(1.0, stream=stream)
                loaded.run(stream, x=x, y=y)
            assert y.to_numpy().tolist() == [5.0] * 3
            with captured.instantiate() as live:
                live.launch(stream)
            assert y.to_numpy().tolist() == [12.5] * 3
            with qp.graph.capture(stream), pytest.raises(CaptureError, match="load it before"), qp.use_stream(stream):
                qp.graph.load(path)


def test_internal_memory_stays_between_runs_and_is_of_each_load(path):
    tank, x = saved_cases.Tank(), floats(1, 1, 1, 1)
    tank.level.fill(10.0)
    g = qp.graph.Graph()
    g.add_kernel(tank.fill, x)
    g.save(path, bind={"x": x}, constants=[tank.inflow])
    tank.level.fill(0.0)
    with qp.graph.load(path) as one, qp.graph.load(path) as two:
        for loaded, expected in ((one, 11), (one, 22), (two, 11)):
            loaded.run(x=x)
            assert x.to_numpy().tolist() == [expected] * 4
            if expected == 22:
                x.fill(1.0)
    np.testing.assert_array_equal(tank.level.to_numpy(), 0)


def test_a_field_can_be_bound(path):
    tank, x = saved_cases.Tank(), floats(1, 2, 3, 4)
    g = qp.graph.Graph()
    g.add_kernel(tank.fill, x)
    g.save(path, bind={"x": x, "level": tank.level}, internal=[tank.inflow])
    level = np.zeros(4, np.float32)
    with qp.graph.load(path) as loaded:
        loaded.run(x=x, level=level)
    assert level.tolist() == [1, 2, 3, 4]


@qp.kernel
def talking(x: F32):
    for i in x:
        print(x[i])


@qp.kernel
def returning(x: F32) -> qp.f32:
    total = 0.0
    for i in x:
        total += x[i]
    return total


def prints(g, x, y):
    g.add_kernel(talking, x, name="the node")


def of_the_host(g, x, y):
    g.add_host(print, name="the node")


def of_an_event(g, x, y):
    event = qp.create_event()
    g.add_event_record(event, name="the node")


def unbound(g, x, y):
    g.add_kernel(half_step, x, floats(1, 2), name="the node")


def by_address(g, x, y):
    other = floats(1, 2)
    g.add_memset(other.pointer, 0, nbytes=8, name="the node")
    g.other = other


REFUSED = {
    prints: "talking cannot be saved: it prints",
    of_the_host: "the node.*kind host",
    of_an_event: "the node.*kind event_record",
    unbound: r"the node.*ndarray\(f32, shape=\(2,\)\), which is neither bound",
    by_address: "the node.*8 bytes at 0x.*neither bound",
}


@pytest.mark.parametrize("add", REFUSED, ids=lambda add: add.__name__)
def test_what_cannot_be_saved_is_named(add, path):
    x, y = floats(1, 2), floats(1, 2)
    g = qp.graph.Graph()
    g.add_kernel(half_step, x, y)
    add(g, x, y)
    with pytest.raises(GraphError, match=REFUSED[add]) as caught:
        g.save(path, bind={"x": x, "y": y})
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    assert not list(path.parent.iterdir())


BAD = {
    "twice": (lambda x, y: {"bind": {"x": x, "y": y, "z": x}}, "'x' and 'z' of the saved graph share memory"),
    "unused": (lambda x, y: {"bind": {"x": x, "y": y, "z": floats(1)}}, "no node of the graph uses 'z'"),
    "written": (lambda x, y: {"bind": {"x": x}, "constants": [y]}, "writes 'constant1'"),
    "name": (lambda x, y: {"bind": {"stream": x}}, "cannot be the name"),
    "list": (lambda x, y: {"bind": [x, y]}, "takes a dict"),
    "empty": (lambda x, y: {"bind": {"x": floats()}}, "no elements"),
    "strided": (lambda x, y: {"bind": {"x": np.ones(8, np.float32)[::2]}}, "not contiguous"),
    "transposed": (
        lambda x, y: {"bind": {"x": qp.tensor(qp.f32, (2, 3), layout=(1, 0))}},
        r"C order(?s:.*)another order in memory",
    ),
    "native": (lambda x, y: {"bind": {"x": x, "y": y}, "targets": ["cpu"]}, "'cpu' is this machine's"),
    "none": (lambda x, y: {"bind": {"x": x, "y": y}, "targets": []}, "at least one target"),
    "number": (lambda x, y: {"bind": {"x": x, "y": y}, "targets": 3}, "targets=3 is not a list of targets"),
}


@pytest.mark.parametrize("name", BAD)
def test_options_that_do_not_fit(name, path):
    x, y = floats(1, 2), floats(1, 2)
    g = qp.graph.Graph()
    g.add_kernel(half_step, x, y)
    options, message = BAD[name]
    with pytest.raises((ArgumentError, GraphError), match=message):
        g.save(path, **options(x, y))
    with pytest.raises(UnknownTargetError):
        g.save(path, targets=["gfx1"], bind={"x": x, "y": y})
    for nothing in (3, ""):
        with pytest.raises(ArgumentError, match="is not a path"):
            g.save(nothing, bind={"x": x, "y": y})


def test_a_folder_that_does_not_exist(path):
    x, y = floats(1, 2), floats(1, 2)
    g = qp.graph.Graph()
    g.add_kernel(half_step, x, y)
    inside = path.parent / "none" / "step.qpg"
    for save in (lambda: g.save(inside, bind={"x": x, "y": y}), lambda: half_step.save(inside)):
        with pytest.raises(FileNotFoundError, match="there is no folder for it") as caught:
            save()
        assert caught.value.filename == str(inside)
    path.mkdir()  # what is written beside it cannot take its place
    with pytest.raises(OSError, match=r"step\.qpg'$") as refused:
        g.save(path, bind={"x": x, "y": y})
    assert refused.value.filename == str(path)
    assert list(path.parent.iterdir()) == [path]


def test_debug_is_left_out_and_results_are_dropped(path):
    set_config(current_config()._replace(debug=True))
    x, y = floats(1, 2), floats(1, 2)
    g = qp.graph.Graph()
    g.add_kernel(returning, x)
    g.add_kernel(half_step, x, y)
    g.save(path, bind={"x": x, "y": y})
    set_config(Config(arch="cpu"))
    with qp.graph.load(path) as loaded:
        loaded.run(x=x, y=y)
    assert y.to_numpy().tolist() == [1.5, 3.0]


def test_an_executable_graph_is_saved_as_it_is_now(path):
    x, y = floats(1, 2), floats(0, 0)
    g = qp.graph.Graph()
    g.add_kernel(saxpy, 2.0, x, y, name="first")
    g.add_kernel(half_step, x, y, name="second")
    with g.instantiate() as live:
        live.update("first", 5.0, x, y)
        live.enable("second", False)
        live.save(path, bind={"x": x, "y": y})
    with pytest.raises(GraphError, match="the executable graph was destroyed"):
        live.save(path, bind={"x": x, "y": y})
    with qp.graph.load(path) as loaded:
        loaded.run(x=x, y=y)
        assert [node.name for node in loaded.inspect().nodes] == ["first", "second"]
    assert y.to_numpy().tolist() == [5.0, 10.0]


def test_targets(path):
    saved(path, targets=["gfx942", "sm_90", "arm64"])
    with pytest.raises(SavedGraphError, match=r"no code for .*; it has code for cpu:arm64, gfx942, sm_90"):
        qp.graph.load(path)
    saved(path, targets="x86-64")
    with qp.graph.load(path, target="x86-64") as loaded:
        assert loaded.target == "cpu:x86-64"
    with pytest.raises(SavedGraphError, match=r"no code for x86-64-v3(?s:.*)leave target out: cpu:x86-64 runs here"):
        qp.graph.load(path, target="x86-64-v3")


def test_a_tape_refuses_it_and_the_checker_sees_it(path):
    saved(path)
    x, y = qp.ndarray(qp.f32, 3, needs_grad=True), qp.ndarray(qp.f32, 3, needs_grad=True)
    with qp.graph.load(path) as loaded:
        with pytest.raises(ArgumentError, match="a tape goes back through kernels"), qp.ad.Tape(y):
            loaded.run(x=x, y=y)
        with qp.create_stream() as one, qp.create_stream() as two, qp.hazards.check(collect=True) as found:
            loaded.run(one, x=x, y=y)
            half_step(x, y, stream=two)
        assert found.possible


def test_the_end(path):
    saved(path)
    loaded = qp.graph.load(path)
    loaded.destroy()
    loaded.destroy()
    with pytest.raises(GraphError, match="was destroyed"):
        loaded.run(x=floats(1), y=floats(1))
    with pytest.raises(FileNotFoundError):
        qp.graph.load(path.with_name("none.qpg"))


def calls_of(function, *args, **kwargs):
    """The Python functions that a call runs, by name."""
    found = []
    sys.setprofile(lambda frame, event, _: found.append(frame.f_code.co_name) if event == "call" else None)
    try:
        function(*args, **kwargs)
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.quadpy_hazards(off="it counts the calls of a run that nobody observes")
@pytest.mark.parametrize("works", [1, 3, 10])
def test_a_run_with_the_same_arrays_does_what_a_launch_does(works, path):
    """In as many Python functions; what it has more of is its keyword arguments."""
    x, y, graph = floats(1, 2, 3, 4), floats(5, 6, 7, 8), qp.graph.Graph()
    for _ in range(works):
        graph.add_kernel(saxpy, 2.0, x, y)
    graph.save(path, bind={"x": x, "y": y})
    with graph.instantiate() as live, qp.graph.load(path) as loaded:
        live.launch()
        loaded.run(x=x, y=y)
        launched = calls_of(live.launch)
        assert launched[0] == "launch"
        assert calls_of(loaded.run, x=x, y=y) == ["run", *launched[1:]]
        assert calls_of(loaded.run, y=y, x=x) == ["run", *launched[1:]]
        assert len(calls_of(loaded.run, x=y, y=x)) > len(launched) + 10
