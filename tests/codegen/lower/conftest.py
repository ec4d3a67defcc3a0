"""IR written by hand, and a way to run it on the CPU: what tests of code generation share."""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from types import SimpleNamespace

import numpy as np
import pytest

from quadpy.codegen.abi import layout_of
from quadpy.codegen.compile import compile_kernel
from quadpy.core.dtypes import Scalar, i32, u1
from quadpy.core.source import NOWHERE
from quadpy.core.target import parse_target
from quadpy.ir import nodes as ir
from quadpy.ir.types import Array, Layout, array_of
from quadpy.runtime.cpu.loader import load_object
from quadpy.runtime.drivers.hip_binding import hip_binding


class Value:
    """An expression with Python's operators."""

    def __init__(self, node):
        self.node, self.type = node, node.type

    def _binary(self, op, other):
        return Value(ir.Binary(op, self.node, value(other, self.type).node, self.type, span=NOWHERE))

    def _compare(self, op, other):
        return Value(ir.Compare(op, self.node, value(other, self.type).node, u1, span=NOWHERE))

    def __add__(self, other):
        return self._binary(ir.BinOp.ADD, other)

    def __sub__(self, other):
        return self._binary(ir.BinOp.SUB, other)

    def __mul__(self, other):
        return self._binary(ir.BinOp.MUL, other)

    def __floordiv__(self, other):
        return self._binary(ir.BinOp.FLOORDIV, other)

    def __mod__(self, other):
        return self._binary(ir.BinOp.MOD, other)

    def __and__(self, other):
        return self._binary(ir.BinOp.AND, other)

    def __lt__(self, other):
        return self._compare(ir.CmpOp.LT, other)

    def __gt__(self, other):
        return self._compare(ir.CmpOp.GT, other)

    def eq(self, other):
        return self._compare(ir.CmpOp.EQ, other)

    def to(self, t):
        return Value(ir.Cast(self.node, t, span=NOWHERE))


def value(x, t=i32):
    """``x`` as a Value: a number becomes a constant of type ``t``."""
    if isinstance(x, Value):
        return x
    if isinstance(x, ir.Var):
        return Value(ir.VarRead(x, span=NOWHERE))
    if isinstance(x, (int, float, np.generic)):
        return Value(ir.Const(x.item() if isinstance(x, np.generic) else x, t, span=NOWHERE))
    return Value(x)


def const(x, t=i32):
    return value(x, t)


def param(name, t):
    return Value(ir.ParamRead(name, t, span=NOWHERE))


def extent(array, axis=0, t=i32):
    return Value(ir.ShapeOf(array, axis, t, span=NOWHERE))


def at(array, *index, t, component=0):
    return ir.Element(array, tuple(value(i).node for i in index), component, t, span=NOWHERE)


def slot(number, t):
    return ir.Slot(number, t, span=NOWHERE)


def let(var, x):
    return ir.Let(var, value(x, var.type).node, span=NOWHERE)


def assign(var, x):
    return ir.Assign(var, value(x, var.type).node, span=NOWHERE)


def load(var, place):
    return ir.Load(var, place, span=NOWHERE)


def store(place, x):
    return ir.Store(place, value(x, place.type).node, span=NOWHERE)


def atomic(op, place, x, result=None, expected=None):
    wanted = None if expected is None else value(expected, place.type).node
    return ir.Atomic(op, place, value(x, place.type).node, result, wanted, span=NOWHERE)


def block(*stmts):
    return ir.Block(stmts, span=NOWHERE)


def if_(cond, then, orelse=()):
    return ir.If(cond.node, block(*then), block(*orelse), span=NOWHERE)


def for_(var, start, stop, *body, step=1):
    bounds = (value(x, var.type).node for x in (start, stop, step))
    return ir.For(var, *bounds, block(*body), span=NOWHERE)


def while_(cond, *body, head=()):
    return ir.While(block(*head), cond.node, block(*body), span=NOWHERE)


def axis(var, start, stop, step=1):
    return ir.Axis(var, *(value(x, var.type).node for x in (start, stop, step)), span=NOWHERE)


def serial(*body, name="t"):
    return ir.SerialTask(name, block(*body), span=NOWHERE)


def parallel(axes, *body, name="t", **options):
    axes = axes if isinstance(axes, tuple) else (axes,)
    return ir.ParallelTask(name, axes, block(*body), span=NOWHERE, **options)


def array(name, t, ndim=1, **options):
    """An array of elements of type ``t``; ``t`` may be a layout."""
    if isinstance(t, Layout):
        return ir.ArrayParam(name, Array(t, ndim, **options), span=NOWHERE)
    return ir.ArrayParam(name, array_of(t, ndim, **options), span=NOWHERE)


def scalar(name, t):
    return ir.ScalarParam(name, t, span=NOWHERE)


def function(name, params, results, *body):
    return ir.Function(name, params, results, block(*body), span=NOWHERE)


def returns(*values):
    return ir.Return(tuple(value(x).node for x in values), span=NOWHERE)


def call(name, t, *args):
    return Value(ir.Call(name, tuple(value(a).node for a in args), t, span=NOWHERE))


def unary(op, x):
    return Value(ir.Unary(op, x.node, x.type, span=NOWHERE))


def binary(op, a, b):
    return value(a)._binary(op, b)


def compare(op, a, b):
    return value(a)._compare(op, b)


def select(c, a, b):
    return Value(ir.Select(c.node, a.node, b.node, a.type, span=NOWHERE))


def bitcast(x, t):
    return Value(ir.BitCast(x.node, t, span=NOWHERE))


def intrinsic(name, t, *args):
    return Value(ir.Intrinsic(name, tuple(a.node for a in args), t, span=NOWHERE))


def reduction(op, place, var):
    return ir.Reduction(op, place, var, span=NOWHERE)


def kernel(params, *tasks, name="k", results=(), functions=(), slots=None, **options):
    slots = len(results) if slots is None else slots
    return ir.Kernel(name, params, results, functions, block(), tasks, slots, span=NOWHERE, **options)


NUMPY = {
    "u1": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
"""bf16 as its bits: NumPy has no such type."""


class Loaded:
    """A kernel on one target; call it with one NumPy array or number a parameter.  ``scratch`` holds its slots."""

    def __init__(self, kernel, target):
        self.kernel, self.layout = kernel, layout_of(kernel)
        self.code = compile_kernel(kernel, parse_target(target))
        self.scratch = np.zeros(max(1, self.code.slots), np.uint64)

    def __call__(self, *args):
        named = dict(zip([p.name for p in self.kernel.params], args, strict=True))
        self.run(named)
        held = (self.scratch[n : n + 1].view(NUMPY[t.name])[0].item() for n, t in enumerate(self.kernel.results))
        return tuple(held)

    def pack(self, args, address):
        """The argument block; ``address`` gives an array's."""
        return struct.pack(
            self.layout.format, *(self._value(part, args[part.param], address) for part in self.layout.values)
        )

    def _value(self, part, arg, address):
        if part.part == "pointer":
            return address(arg)
        if part.part == "extent":
            return arg.shape[part.axis]
        if part.part == "stride":
            array = next(p.type for p in self.kernel.params if p.name == part.param)
            return arg.strides[part.axis] // array.layout.unit
        return _bits(arg, next(p.type for p in self.kernel.params if p.name == part.param))


class LoadedOnCpu(Loaded):
    def __init__(self, kernel, target):
        super().__init__(kernel, target)
        self._object = load_object(self.code.image)
        signature = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32)
        self.entry = signature(self._object.address(self.code.entry))

    def run(self, args):
        block, following = self.pack(args, lambda array: array.ctypes.data), 0
        while following >= 0:
            following = self.entry(block, self.scratch.ctypes.data, following)


class LoadedOnHip(Loaded):
    """Plain HIP calls, one at a time: what is under test is the code object."""

    def __init__(self, kernel, target):
        super().__init__(kernel, target)
        self._module = hip_check("hipModuleLoadData", self.code.image)

    def run(self, args):
        copies = {id(a): (a, self._copy_in(a)) for a in (*args.values(), self.scratch) if isinstance(a, np.ndarray)}
        block = self.pack(args, lambda array: copies[id(array)][1] + _skipped(array))
        padded = block.ljust(-(-len(block) // 8) * 8, b"\0")
        for number, task in enumerate(self.code.tasks):
            self._launch(task, padded + struct.pack("Q", copies[id(self.scratch)][1]), args, number)
        hip_check("hipDeviceSynchronize")
        for array, pointer in copies.values():
            self._copy_out(array, pointer)

    def _launch(self, task, block, args, number):
        blocks = 1
        if task.parallel:
            blocks = 3 if task.grid_stride else -(-self._threads(task, args) // task.block_dim)
        if blocks == 0:
            return
        function = hip_check("hipModuleGetFunction", self._module, task.symbol.encode())
        buffer, size = ctypes.create_string_buffer(block, len(block)), ctypes.c_size_t(len(block))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
        hip_check("hipModuleLaunchKernel", function, blocks, 1, 1, task.block_dim, 1, 1, 0, None, None, extra)

    def _threads(self, task, args):
        """The iterations of the task with that symbol; its axes hold constants, parameters and extents."""
        found = next(t for n, t in enumerate(self.kernel.tasks) if task.symbol == f"{self.kernel.name}_t{n}")
        ranges = ([_evaluate(e, args) for e in (axis.start, axis.stop, axis.step)] for axis in found.axes)
        return math.prod(len(range(*r)) if r[2] else 0 for r in ranges)

    @staticmethod
    def _copy_in(array):
        base = _base(array)
        pointer = int(hip_check("hipMalloc", max(1, base.nbytes)))
        if base.nbytes:
            hip_check("hipMemcpy", pointer, base, base.nbytes, hip().hipMemcpyKind.hipMemcpyHostToDevice)
        return pointer

    @staticmethod
    def _copy_out(array, pointer):
        base = _base(array)
        if base.nbytes and base.flags.writeable:
            hip_check("hipMemcpy", base, pointer, base.nbytes, hip().hipMemcpyKind.hipMemcpyDeviceToHost)
        hip_check("hipFree", pointer)


def _base(array):
    """The contiguous array behind a view."""
    while array.base is not None and not array.flags.c_contiguous:
        array = array.base
    return array


def _skipped(array):
    """How far a view begins behind its base."""
    return array.ctypes.data - _base(array).ctypes.data


def _evaluate(e, args):
    match e:
        case ir.Const(value=v):
            return v
        case ir.ParamRead(name=name):
            return int(args[name])
        case ir.ShapeOf(array=name, axis=k):
            return args[name].shape[k]
        case ir.Binary(op=ir.BinOp.SUB, lhs=a, rhs=c):
            return _evaluate(a, args) - _evaluate(c, args)
        case _:
            raise NotImplementedError(type(e).__name__)


def hip():
    hip_binding()  # tells hip-python where the library is
    from hip import hip as module

    return module


def hip_check(verb, *args):
    status, *values = getattr(hip(), verb)(*args)
    assert status == hip().hipError_t.hipSuccess, f"{verb}: {status}"
    return values[0] if len(values) == 1 else values


@functools.cache
def amd_devices():
    """The targets of the AMD GPUs here, as a list of one or none."""
    try:
        status, count = hip().hipGetDeviceCount()
    except (ImportError, OSError, RuntimeError):  # no hip-python, or no HIP library
        return []
    if status != hip().hipError_t.hipSuccess or count == 0:
        return []
    name = hip_check("hipGetDeviceProperties", 0).gcnArchName
    return [(name.decode() if isinstance(name, bytes) else name).split(":")[0]]


def _bits(x, t: Scalar):
    return int(np.float16(x).view(np.uint16)) if t.name == "f16" else x


def pytest_configure(config):
    config.addinivalue_line("markers", "cpu_only: runs on the CPU alone")
    config.addinivalue_line("markers", "cpu_targets(*targets): the CPU's targets to run on")


def pytest_generate_tests(metafunc):
    """A test runs on the CPU and on the AMD GPU, real or emulated, if there is one."""
    if "b" in metafunc.fixturenames:
        cpu = metafunc.definition.get_closest_marker("cpu_targets")
        targets = list(cpu.args) if cpu else ["cpu"]
        if metafunc.definition.get_closest_marker("cpu_only") is None:
            targets += amd_devices()
        metafunc.parametrize("b", targets, indirect=True)


@pytest.fixture
def b(request):
    """The builder: ``b.kernel``, ``b.store`` and so on; ``b.Loaded(kernel)`` runs one on ``b.target``."""
    names = {name: thing for name, thing in globals().items() if not name.startswith("_") and name != "b"}
    target = request.param

    def loaded(kernel):
        return (LoadedOnCpu if target.startswith("cpu") else LoadedOnHip)(kernel, target)

    names |= {"target": target, "on_cpu": target.startswith("cpu")}
    return SimpleNamespace(**names | {"Loaded": loaded})
