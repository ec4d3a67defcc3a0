"""Every public object has a short repr, and completion shows its public names only."""

import importlib
import pydoc
import re

import numpy as np
import pytest

import quadpy as qp
from quadpy.runtime.device.devices import current_device
from quadpy.settings import settings

CELLS = "bitmasked deactivate_all dense dynamic lazy_dual lazy_grad place pointer quant_array"
ARRAY = "copy_from device dtype element_shape fill from_numpy from_torch grad nbytes ndim shape size to_dlpack to_numpy to_torch"
FIELD = f"{ARRAY} dual get_scalar_field has_dual has_grad layout name offset parent placed snode"
STRUCTS = "copy_from device dtype fill from_numpy from_torch get_member_field grad keys nbytes ndim shape size to_numpy to_torch"
KERNEL = "compile debug fuse fusion grad graph graph_stats prepare save wave_size"
STREAM = "compute_units destroy destroyed device from_handle handle query synchronize"
GRAPH = (
    "add_alloc add_child add_empty add_event_record add_event_wait add_free add_host add_kernel add_memcpy add_memset "
    "add_semaphore_signal add_semaphore_wait clone device inspect instantiate save to_dot"
)
NODE = "after kind name reads writes"
PLACE = r"\S*test_objects\.py:\d+:1"


@qp.dataclass
class Point:
    mass: qp.f32
    x: qp.math.vec2

    @qp.func
    def heavy(self) -> qp.f32:
        return self.mass


@qp.kernel
def scale(x: qp.Array1D[qp.f32], by: qp.f32 = 2.0) -> None:
    """Multiply each element."""
    for i in x:
        x[i] *= by


@qp.func
def twice(x: qp.f32) -> qp.f32:
    """Two times x."""
    return 2.0 * x


@qp.data_oriented
class Gas:
    @qp.kernel
    def heat(self, by: qp.f32) -> None:
        """Make it warmer."""
        qp.static_assert(True)

    def __repr__(self) -> str:
        return "gas"


@qp.graph.replay
def again():
    """Nothing."""


def _destroyed(made):
    made.destroy()
    return made


def _graph():
    graph = qp.graph.Graph()
    graph.add_kernel(scale, np.zeros(3, np.float32), name="first")
    graph.add_empty(name="last", deps=["first"])
    return graph


def _hazards():
    with qp.hazards.check() as found:
        return found


def _node(number):
    return _graph().instantiate().nodes[number]


OBJECTS = {
    "a kernel": (lambda: scale, rf"<quadpy kernel scale at {PLACE}>", KERNEL),
    "a kernel of an object": (lambda: Gas().heat, "<quadpy kernel heat of gas>", KERNEL),
    "a function": (lambda: twice, rf"<quadpy function twice at {PLACE}>", ""),
    "a method": (lambda: Point(1, [2, 3]).heavy, r"functools.*quadpy function heavy.*Point\(mass=1\.0.*", None),
    "a function of quadpy": (lambda: qp.svd, r"<quadpy function svd at .*>", ""),
    "a builtin": (lambda: qp.sin, "<quadpy builtin sin>", ""),
    "a builtin of blocks": (lambda: qp.simt.block.sync, r"<quadpy builtin block\.sync>", ""),
    "a scalar type": (
        lambda: qp.f32, "f32", "bits is_float is_integral is_signed kind max_int min_int name nbytes",
    ),
    "a vector type": (lambda: qp.types.vector(3, qp.u8), r"vector\(3, u8\)", "dtype element_shape field n ndarray tensor"),
    "a vector type of the default": (lambda: qp.math.vec3, r"vector\(3, float\)", None),
    "a matrix type": (lambda: qp.math.mat2, r"matrix\(2, 2, float\)", "dtype element_shape field m n ndarray tensor"),
    "an annotation": (lambda: qp.Array1D[qp.f32], r"Array1D\[f32\]", "dtype ndim"),
    "an annotation of any elements": (lambda: qp.Array2D, "Array2D", "dtype ndim"),
    "an annotation of any axes": (lambda: qp.Array[qp.math.vec2], r"Array\[vector\(2, float\)\]", "dtype ndim"),
    "an annotation of anything": (qp.types.ndarray, "Array", "dtype ndim"),
    "a template": (qp.template, "Template", "dtype ndim"),
    "a struct type": (
        lambda: Point, r"Point\(mass: f32, x: vector\(2, float\)\)", "cast field filled_with_scalar members methods name ndarray numpy_dtype",
    ),
    "a struct": (lambda: Point(1, [2, 3]), r"Point\(mass=1\.0, x=Vector\(.*", "field items keys mass to_dict x"),
    "a struct without a type": (lambda: qp.Struct(a=1), r"struct\(a=1\)", "a field items keys to_dict"),
    "a vector": (lambda: qp.Vector([1.0, 2.0]), r"Vector\(\[1\., 2\.\], dt=f32\)", None),
    "a matrix": (lambda: qp.Matrix([[1, 2], [3, 4]]), r"Matrix\(\[\[1, 2\], \[3, 4\]\], dt=i32\)", None),
    "a field": (lambda: qp.field(qp.f32, (2, 3)), r"field\(f32, shape=\(2, 3\)\)", FIELD),
    "a field of vectors": (lambda: qp.Vector.field(3, qp.f32, 2), r"field\(f32x3, shape=\(2,\)\)", FIELD),
    "a field of structs": (
        lambda: Point.field(2), r"field\(Point\(.*\), shape=\(2,\)\)",
        f"{STRUCTS} dual has_dual has_grad layout mass name offset parent placed snode x",
    ),
    "an array": (lambda: qp.ndarray(qp.f32, (2, 3)), r"ndarray\(f32, shape=\(2, 3\)\)", ARRAY),
    "an array of structs": (
        lambda: qp.ndarray(Point, 2), r"ndarray\(Point\(.*\), shape=\(2,\)\)", f"{ARRAY} get_member_field keys mass x",
    ),
    "a layout": (lambda: qp.Layout.SOA, r"<Layout\.SOA: 'soa'>", None),
    "the root": (lambda: qp.root, r"<root of \d+ trees?>", CELLS),
    "a grid of cells": (
        lambda: qp.root.dense(qp.ij, 4), r"<dense, shape \(4, 4\), 0 fields>", f"{CELLS} parent shape",
    ),
    "a builder of fields": (
        qp.FieldsBuilder, "<FieldsBuilder of 0 trees>", f"{CELLS} empty finalize finalized root",
    ),
    "finalized fields": (lambda: qp.FieldsBuilder().finalize(False), "<FieldsTree of 0 trees>", "destroy"),
    "a stream": (qp.create_stream, r"Stream\(handle=0x\w+, device=<.*>\)", STREAM),
    "a destroyed stream": (lambda: _destroyed(qp.create_stream()), r"Stream\(destroyed, device=<.*>\)", STREAM),
    "an event": (
        qp.create_event, r"Event\(handle=0x\w+, device=<.*>\)",
        "destroy destroyed device elapsed_time handle query record recorded synchronize timing wait",
    ),
    "a current stream": (lambda: qp.use_stream(None), r"use_stream\(None\)", ""),
    "a graph": (
        _graph, "<Graph of 2 nodes on <.*>>",
        GRAPH,
    ),
    "a node": (lambda: _node(0), "<kernel node 'first'>", NODE),
    "a node after another": (lambda: _node(1), "<empty node 'last' after 'first'>", NODE),
    "an executable graph": (
        lambda: _graph().instantiate(), "<GraphExec of 2 nodes, 0 launches on <.*>>",
        "destroy destroyed device disabled enable fusion inspect launch nodes save stats synchronize update upload",
    ),
    "a replay": (lambda: again, "<replayed again, .*>", "clear fusion stats variants"),
    "machine code": (lambda: scale.compile("cpu"), r"<CodeObject for \S+, [\d,]+ bytes: .*>", None),
    "a device": (
        current_device, "<cpu:0 .*>",
        "close create_event create_stream current_stream default_stream memory_stats synchronize",
    ),
    "the memory of a device": (lambda: current_device().memory, r"<DeviceMemory, \w+: [\d,]+ of [\d,]+ bytes in use>", None),
    "the use of memory": (qp.memory_stats, r"MemoryStats\(allocator=.*", "allocator blocks peak reserved used"),
    "the streams of a device": (lambda: current_device().streams, "<StreamManager of cpu>", None),
    "the configuration": (lambda: qp.cfg, r"Config\(arch='cpu', .*", None),
    "the settings": (settings, r"Settings\(arch=.*", None),
    "hazards": (_hazards, r"<hazards: 0 certain.*>", "allowed certain possible to_json"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu)
    yield
    qp.reset()


def _has(value, name):
    try:
        return hasattr(value, name)
    except qp.StreamError:  # it was destroyed
        return True


@pytest.mark.parametrize("what", OBJECTS)
def test_an_object_says_what_it_is_in_one_line_and_shows_its_public_names(what):
    make, text, names = OBJECTS[what]
    made = make()
    assert re.fullmatch(text, repr(made)), repr(made)
    assert "\n" not in repr(made)
    assert len(repr(made)) < 500
    assert "object at 0x" not in repr(made)
    public = {name for name in dir(made) if not name.startswith("_")}
    if names is not None:
        assert public == set(names.split())
    assert {name for name in public if not _has(made, name)} <= {"dual", "grad"}  # where there is none, they say why


MODULES = [
    "quadpy", "quadpy.math", "quadpy.simt", "quadpy.simt.block", "quadpy.simt.grid", "quadpy.simt.subgroup",
    "quadpy.simt.warp", "quadpy.types", "quadpy.algorithms", "quadpy.hazards", "quadpy.graph", "quadpy.runtime",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_a_module_shows_its_public_names_and_says_which_was_meant(name):
    module = importlib.import_module(name)
    assert set(dir(module)) == set(module.__all__)
    known = max((each for each in module.__all__ if each.isidentifier()), key=len)
    with pytest.raises(
        AttributeError, match=rf"^module '{name}' has no attribute '{known}x'; did you mean '{known}'\?$"
    ):
        getattr(module, f"{known}x")
    with pytest.raises(AttributeError, match=r"has no attribute '_none'$"):
        module._none  # noqa: B018 - the access raises


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (lambda: scale, "scale(x: Array1D[f32], by: f32 = 2.0) -> None\n    Multiply each element."),
        (lambda: Gas().heat, "heat(by: f32) -> None\n    Make it warmer."),
        (lambda: twice, "twice(x: f32) -> f32\n    Two times x."),
        (lambda: again, "again()\n    Nothing."),
    ],
    ids=["a kernel", "a kernel of an object", "a function", "a replay"],
)
def test_help_shows_the_signature_and_the_docstring(value, text):
    assert pydoc.render_doc(value(), renderer=pydoc.plaintext).partition("\n\n")[2].strip() == text


@pytest.mark.parametrize("name", ["dtype", "element_shape", "ndim", "shape", "size"])
@pytest.mark.parametrize("make", [qp.field, qp.ndarray])
def test_what_an_array_is_made_with_cannot_be_set(make, name):
    array = make(qp.f32, (2, 3))
    before = getattr(array, name)
    with pytest.raises(
        AttributeError, match=rf"the {name} of .*shape=\(2, 3\)\) cannot be changed: make another array"
    ):
        setattr(array, name, 3)
    assert getattr(array, name) == before
