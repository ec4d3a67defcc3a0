"""What users read after a mistake outside of kernels: what is wrong, what was meant, and their own line."""

from __future__ import annotations

import importlib
import inspect
import re
import traceback
from pathlib import Path

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.elsewhere import INSTEAD

PACKAGE = str(Path(qp.__file__).parent)
MODULES = """
    quadpy quadpy.algorithms quadpy.dist quadpy.graph quadpy.hazards quadpy.profiler quadpy.tools quadpy.torch quadpy.types
    quadpy.view
"""
RECORDS = "functions return them: their fields are all that they have"
WITHOUT_OPTIONS = {
    "init": "its own check knows the options of Taichi, too",
    "Struct": "each keyword is a member",
    "struct": "each keyword is a member",
    "dataclass": "takes a class",
    "Backend": "an enumeration",
    "Layout": "an enumeration",
    "quadpy.view.Event": RECORDS, "ArrayInfo": RECORDS, "GraphMemory": RECORDS, "GraphInfo": RECORDS, "GraphStats": RECORDS, "Hazard": RECORDS, "HazardAccess": RECORDS,
    "KernelTimes": RECORDS, "Node": RECORDS, "NodeInfo": RECORDS, "Record": RECORDS, "ReducedByKey": RECORDS,
    "ReplayStats": RECORDS, "Runs": RECORDS, "Selected": RECORDS,
    "CapturedStep": "dist.capture returns it", "Findings": "hazards.check returns it", "extension": "names of extensions",
}  # fmt: skip
"""Public names that do not say which options they have, by the reason."""


@qp.kernel
def fill(x: qp.types.ndarray(dtype=qp.f32, ndim=1), by: qp.f32):
    for i in x:
        x[i] = by


@qp.func
def plus_one(a):
    return a + 1


def half(x):
    return x / 2


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


def own_frames(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{Path(frame.filename).name}: {frame.name}" for frame in frames if frame.filename.startswith(PACKAGE)]


def public_callables():
    """Each function and class that users call, once, by name."""
    found = {}
    for module in map(importlib.import_module, MODULES.split()):
        for name in module.__all__:
            value = getattr(module, name)
            is_error = inspect.isclass(value) and issubclass(value, BaseException)
            if (inspect.isfunction(value) or inspect.isclass(value)) and not is_error:
                found.setdefault(id(value), (name, module, value))
    names = [name for name, _, _ in found.values()]
    return {
        name if names.index(name) == at else f"{module.__name__}.{name}": value
        for at, (name, module, value) in enumerate(found.values())
    }


CALLABLES = public_callables()


def test_reasons_are_those_of_public_names():
    assert set(WITHOUT_OPTIONS) <= set(CALLABLES)


@pytest.mark.parametrize("name", sorted(CALLABLES.keys() - WITHOUT_OPTIONS.keys()))
def test_an_option_that_does_not_exist_is_refused(name):
    with pytest.raises(qp.ArgumentError) as caught:
        CALLABLES[name](no_such_option=1)
    text = str(caught.value)
    assert "no_such_option" in text or "cannot be created directly" in text
    assert len(own_frames(caught.value)) <= 2


def methods():
    for name, cls in CALLABLES.items():
        for method in getattr(cls, "__shown__", ()):
            found = inspect.getattr_static(cls, method, None)
            if inspect.isfunction(found) or isinstance(found, staticmethod):
                yield pytest.param(cls, method, id=f"{name}.{method}")


@pytest.mark.parametrize(("cls", "name"), list(methods()))
def test_methods_end_tracebacks(cls, name):
    """Each is public, or has the same in its own body."""
    found = inspect.unwrap(getattr(cls, name))
    assert hasattr(getattr(cls, name), "__quadpy_public__")
    assert found is not getattr(cls, name) or "raise shortened(error)" in inspect.getsource(found)


OPTIONS = {
    "kernel": (lambda: qp.kernel(half, graphs=True), "'graphs'; did you mean 'graph'?", "fuse, wave_size, debug"),
    "kernel in brackets": (lambda: qp.kernel(debugg=True), "'debugg'; did you mean 'debug'?", ""),
    "func": (lambda: qp.func(half, fun=1), "no parameter 'fun'", "it takes fn"),
    "data_oriented": (lambda: qp.data_oriented(template_primitive=True), "did you mean 'template_primitives'?", ""),
    "field": (lambda: qp.field(qp.f32, shap=3), "'shap'; did you mean 'shape'?", "needs_grad"),
    "field of vectors": (lambda: qp.Vector.field(3, qp.f32, shap=3), "did you mean 'shape'?", ""),
    "ndarray": (lambda: qp.ndarray(qp.f32, 3, need_grad=True), "did you mean 'needs_grad'?", "dtype, shape"),
    "ndarray without a shape": (lambda: qp.ndarray(qp.f32), "missing a required argument: 'shape'", "dtype, shape"),
    "init": (lambda: qp.init(fastmath=True), "no option 'fastmath'", "did you mean 'fast_math'?"),
    "init by position": (lambda: qp.init("cpu", True), "it takes 2, not 3|too many positional", ""),
    "create_stream": (lambda: qp.create_stream(priorty=1), "did you mean 'priority'?", ""),
    "create_event": (lambda: qp.create_event(timming=True), "did you mean 'timing'?", ""),
    "graph": (lambda: qp.graph.Graph().add_memset(1, valu=2), "did you mean 'value'?", "element"),
    "grid": (lambda: qp.dist.Grid((8, 8), periodc=True), "did you mean 'periodic'?", ""),
    "window": (lambda: qp.view.Window(titel="x"), "no parameter 'titel'", ""),
    "profile": (lambda: qp.profile(node=True), "did you mean 'nodes'?", ""),
    "kernel's parameter": (lambda: fill(np.zeros(2, np.float32), bye=1), "'bye'; did you mean 'by'?", "it takes x, by"),
    "method": (lambda: qp.field(qp.f32, 3).to_numpy(dtyp="f8"), "did you mean 'dtype'?", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", OPTIONS)
def test_a_misspelled_option_says_what_was_meant(case):
    call, message, hint = OPTIONS[case]
    with pytest.raises(qp.ArgumentError, match=message.replace("?", r"\?")) as caught:
        call()
    assert hint in caught.value.hint
    assert len(own_frames(caught.value)) <= 2


VALUES = {
    "graph": (lambda: qp.kernel(graph=3), "graph must be True or False, not 3"),
    "graph, with the function": (lambda: qp.kernel(half, graph="no"), "graph must be True or False, not 'no'"),
    "an array": (lambda: qp.kernel(half, graph=np.ones(3)), "graph must be True or False, not array"),
    "debug": (lambda: qp.kernel(debug="yes"), "debug must be True or False, not 'yes'"),
    "fastcache": (lambda: qp.kernel(fastcache="yes"), "fastcache must be True or False"),
    "fuse": (lambda: qp.kernel(fuse="always"), "fuse is 'always'"),
    "wave_size": (lambda: qp.kernel(wave_size=-32), "wave_size must be 32 or 64, not -32"),
    "fast_math": (lambda: qp.init(fast_math="yes"), "fast_math must be True or False, not 'yes'"),
    "enable_fallback": (lambda: qp.init(enable_fallback="no"), "enable_fallback must be True or False"),
    "print_full_traceback": (lambda: qp.init(print_full_traceback="no"), "print_full_traceback must be True or False"),
    "kernel_profiler": (lambda: qp.init(kernel_profiler="no"), "kernel_profiler must be True or False"),
    "offline_cache": (lambda: qp.init(offline_cache="no"), "offline_cache must be True or False"),
    "threads": (lambda: qp.init(cpu_max_num_threads=-1), "cpu_max_num_threads must be at least 1, not -1"),
    "hazards": (lambda: qp.init(hazards="yess"), "hazards must be True, False or 'collect', not 'yess'"),
    "template_primitives": (lambda: qp.data_oriented(template_primitives=3), "template_primitives must be True or False"),
    "needs_grad": (lambda: qp.field(qp.f32, 3, needs_grad="yes"), "needs_grad must be True or False"),
    "needs_dual": (lambda: qp.field(qp.f32, 3, needs_dual="yes"), "needs_dual must be True, False or a number of directions, not .yes."),
    "gradient of an array": (lambda: qp.ndarray(qp.f32, 3, needs_grad=7), "needs_grad must be True or False, not 7"),
    "a shape": (lambda: qp.ndarray(qp.f32, -3), "the shape -3 has a negative extent"),
    "timing": (lambda: qp.create_event(timing="yes"), "timing must be True or False, not 'yes'"),
    "nodes": (lambda: qp.profile(nodes=3), "nodes must be True or False, not 3"),
    "warmup": (lambda: qp.graph.replay(warmup=-1), "warmup"),
    "layout": (lambda: qp.Layout("aoss"), "'aoss' is not a layout"),
    "axes": (lambda: qp.root.dense(3, 3), "3 does not name axes"),
}  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
def test_a_wrong_value_is_refused(case):
    call, message = VALUES[case]
    with pytest.raises(qp.ArgumentError, match=message) as caught:
        call()
    assert len(own_frames(caught.value)) <= 2


def test_numpys_booleans_are_switches():
    assert qp.kernel(half, graph=np.bool_(False)).graph == False  # noqa: E712 - NumPy's own False


MADE_ELSEWHERE = {
    "Stream": ("create_stream", qp.Stream), "Event": ("create_event", qp.Event), "Field": ("qp.field", qp.Field),
    "NDArray": ("qp.ndarray", qp.NDArray), "GraphExec": ("instantiate", qp.graph.GraphExec),
    "Replay": ("qp.graph.replay", qp.graph.Replay), "World": ("qp.dist.world", qp.dist.World),
    "DistributedArray": ("qp.dist.Grid", qp.dist.DistributedArray),
    "DistributedField": ("qp.dist.Grid", qp.dist.DistributedField),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE_ELSEWHERE)
@pytest.mark.parametrize("arguments", [(), (0,)])
def test_objects_that_are_not_made_by_hand_say_what_makes_them(name, arguments):
    maker, cls = MADE_ELSEWHERE[name]
    with pytest.raises(qp.ArgumentError, match=f"{name} cannot be created directly") as caught:
        cls(*arguments)
    assert maker in caught.value.hint


def destroyed_stream():
    stream = qp.create_stream()
    stream.destroy()
    return stream


def destroyed_event():
    event = qp.create_event()
    event.destroy()
    return event


def enter(manager):
    with manager:
        pass


def assign(array, index, value):
    array[index] = value


X = qp.ndarray(qp.f32, 4)
F = qp.field(qp.f32, (4,), name="f")
POINT = qp.types.struct(a=qp.f32, b=qp.math.vec2)
P = POINT.field(shape=3)

DEEP = {
    "an argument": (lambda: fill("wrong", 1.0), "x takes an array, not str"),
    "an argument of a kernel that is prepared": (lambda: fill.prepare(X), "missing a required argument: 'by'"),
    "a type": (lambda: qp.field("f32", 4), "'f32' is not a scalar type"),
    "a vector's type": (lambda: qp.types.vector(3, "a"), "'a' is not a scalar type"),
    "a vector's length": (lambda: qp.Vector.field(-3, qp.f32, 3), "from 1 on, not -3"),
    "an index": (lambda: F[10], r"index \(10,\) is outside field"),
    "a float as index": (lambda: F[1.5], "1.5 is not an index"),
    "too many indices": (lambda: F[0, 0], "has 2 numbers"),
    "a text as element": (lambda: assign(F, 0, "a"), "cannot store 'a' as f32"),
    "a text in an array": (lambda: assign(X, 0, "a"), "cannot store 'a' as f32"),
    "a member of a struct": (lambda: P.get_member_field("c"), "has no member 'c'"),
    "an index of structs": (lambda: P[7], "outside"),
    "fill": (lambda: F.fill("a"), "cannot store 'a' as f32"),
    "from_numpy": (lambda: F.from_numpy(3), "int is not an array"),
    "from_dlpack": (lambda: qp.from_dlpack(3), "int is not an array"),
    "a stream": (lambda: destroyed_stream().synchronize(), "the stream was destroyed"),
    "a stream's query": (lambda: destroyed_stream().query(), "the stream was destroyed"),
    "a stream's handle": (lambda: destroyed_stream().handle, "the stream was destroyed"),
    "a current stream": (lambda: enter(qp.use_stream(destroyed_stream())), "the stream was destroyed"),
    "a stream as block": (lambda: enter(destroyed_stream()), "the stream was destroyed"),
    "a launch": (lambda: fill(X, 1.0, stream=destroyed_stream()), "the stream was destroyed"),
    "a stream's priority": (lambda: qp.create_stream(priority="high"), "the priority of a stream is 'high'"),
    "a foreign stream": (lambda: qp.Stream.from_handle("a"), "not a handle"),
    "an event": (lambda: destroyed_event().record(), "the event was destroyed"),
    "an event's wait": (lambda: destroyed_event().wait(), "the event was destroyed"),
    "an event's query": (lambda: destroyed_event().query(), "the event was destroyed"),
    "a graph's kernel": (lambda: qp.graph.Graph().add_kernel(3), "3 is not a kernel"),
    "a graph's device": (lambda: qp.graph.Graph(3), "3 is not a device"),
    "a capture": (lambda: enter(qp.graph.capture(3)), "3 is not a stream"),
    "a sort": (lambda: qp.algorithms.sort(3), "keys takes an array of numbers"),
    "an extent": (lambda: qp.root.dense(qp.i, -3), "negative extent"),
    "a level of logging": (lambda: qp.init(log_level="inf"), "did you mean 'info'"),
    "a picture": (lambda: qp.tools.imwrite(3, "a.png"), "an image has two axes"),
    "a function of the language": (lambda: plus_one("a"), "not defined for str and int"),
    "a matrix": (lambda: qp.svd(qp.Vector([1, 2])), "2 x 2 or 3 x 3"),
    "a backend": (lambda: qp.init(arch="cpuu"), "did you mean 'cpu'"),
    "a target": (lambda: fill.compile("gfx9422"), "did you mean 'gfx942'"),
}  # fmt: skip


@pytest.mark.parametrize("case", DEEP)
def test_a_traceback_has_at_most_two_frames_of_quadpy(case):
    call, message = DEEP[case]
    with pytest.raises(qp.QuadpyError, match=message) as caught:
        call()
    frames = own_frames(caught.value)
    assert len(frames) <= 2, frames
    assert PACKAGE not in str(caught.value)


def test_all_frames_show_if_asked_for():
    qp.init(arch=qp.cpu, print_full_traceback=True)
    with pytest.raises(qp.BoundsError) as caught:
        _ = F[10]
    assert len(own_frames(caught.value)) > 2
    qp.init(arch=qp.cpu)
    with pytest.raises(qp.BoundsError) as caught:
        _ = F[10]
    assert len(own_frames(caught.value)) <= 2


def test_frames_of_the_program_between_quadpys_stay():
    """A replayed function is the user's: its line is what the error is about."""

    @qp.graph.replay
    def step():
        fill("wrong", 1.0)

    with pytest.raises(qp.ArgumentError, match="x takes an array") as caught:
        step()
    assert "step" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_what_the_program_was_handling_stays_in_the_traceback():
    def find():
        try:
            return {}["key"]
        except KeyError:
            return F[10]

    with pytest.raises(qp.BoundsError) as caught:
        find()
    assert isinstance(caught.value.__context__, KeyError)
    assert not caught.value.__suppress_context__


def test_a_type_error_inside_a_call_stays_what_it_is():
    def broken(x):
        return x + "a"

    @qp.pyfunc
    def calls(x):
        return broken(x)

    with pytest.raises(TypeError, match="unsupported operand") as caught:
        calls(1)
    assert not isinstance(caught.value, qp.QuadpyError)
    assert "broken" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_signatures_and_documentation_stay():
    assert list(inspect.signature(qp.field).parameters)[:2] == ["dtype", "shape"]
    assert "Create a field of zeros" in qp.field.__doc__
    assert qp.field.__name__ == "field"


def test_names_that_others_have_are_not_quadpys():
    assert {name for name in INSTEAD if hasattr(qp, name) and not inspect.ismodule(getattr(qp, name))} == set()


def test_kernels_say_what_they_lack():
    @qp.kernel
    def run(x: qp.f32):
        pass

    with pytest.raises(qp.KernelTypeError, match="run uses no array with a grad"):
        run.grad(1.0)
    with pytest.raises(
        AttributeError, match=r"a kernel has no attribute 'resume'; use @qp.kernel\(graph=True, checkpoints=True\)"
    ):
        run.resume(1.0)
    with pytest.raises(AttributeError, match="a kernel has no attribute 'compil'; did you mean 'compile'"):
        run.compil()
    assert not hasattr(run, "__wrapped_by_others__")
    with pytest.raises(qp.ArgumentError, match="there is no parameter 'qd_stream'") as caught:
        run(1.0, qd_stream=None)
    assert caught.value.hint == "it takes x, stream=..."


@pytest.mark.parametrize("name", INSTEAD)
def test_a_name_that_others_have_says_where_it_is(name):
    with pytest.raises(AttributeError) as caught:
        qp.__getattr__(name)
    assert INSTEAD[name] in str(caught.value)
    for path in re.findall(r"qp\.([\w.]+\w)", INSTEAD[name]):
        value = qp
        for part in path.split("."):
            value = getattr(value, part)


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        ("quadpy", "kernl", "did you mean 'kernel'?"),
        ("quadpy.tools", "imwrit", "did you mean 'imwrite'?"),
        ("quadpy.view", "Windw", "did you mean 'Window'?"),
        ("quadpy.dist", "Gird", "did you mean 'Grid'?"),
        ("quadpy.profiler", "profil", "did you mean 'profile'?"),
        ("quadpy.graph", "Grap", "did you mean 'Graph'?"),
        ("quadpy", "Tile16x16", "use qp.simt.Tile16x16"),
        ("quadpy.simt", "Tile16", "did you mean 'Tile16x16'"),
        ("quadpy.simt.subgroup", "reduce_add_tile", "did you mean 'reduce_add_tiled'?"),
        ("quadpy.compat.taichi", "feild", "did you mean 'field'?"),
        ("quadpy.compat.taichi", "stop_grad", "called under qp.ad.no_grad()"),
    ],
)
def test_a_misspelled_name_of_a_module_says_what_was_meant(module, name, meant):
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), name)
    assert meant in str(caught.value)
