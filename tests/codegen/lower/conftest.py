"""IR written by hand, and a way to run it on the CPU: what tests of code generation share."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from quadpy.codegen.abi import layout_of
from quadpy.codegen.compile import compile_kernel
from quadpy.dtypes import Scalar, i32, u1
from quadpy.ir import nodes as ir
from quadpy.ir.effects import effects_of
from quadpy.ir.types import Array
from quadpy.runtime.cpu.jit import load_object
from quadpy.source import NOWHERE
from quadpy.target import parse_target


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
    return ir.ArrayParam(name, Array(t, ndim, **options), span=NOWHERE)


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
    tasks = tuple(replace(task, effects=effects_of(task)) for task in tasks)
    slots = len(results) if slots is None else slots
    return ir.Kernel(name, params, results, functions, block(), tasks, slots, span=NOWHERE, **options)


NUMPY = {
    "u1": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
"""bf16 as its bits: NumPy has no such type."""


class Loaded:
    """A kernel on the CPU; call it with one NumPy array or number a parameter.  ``scratch`` holds its slots."""

    def __init__(self, kernel, target="cpu"):
        self.kernel, self.layout = kernel, layout_of(kernel)
        code = compile_kernel(kernel, parse_target(target))
        self._object = load_object(code.image)
        signature = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int32)
        self._entry = signature(self._object.address(code.entry))
        self.scratch = np.zeros(max(1, kernel.slots), np.uint64)

    def __call__(self, *args):
        block = struct.pack(self.layout.format, *self._values(dict(zip(self._names(), args, strict=True))))
        following = 0
        while following >= 0:
            following = self._entry(block, self.scratch.ctypes.data, following)
        held = (self.scratch[n : n + 1].view(NUMPY[t.name])[0].item() for n, t in enumerate(self.kernel.results))
        return tuple(held)

    def _names(self):
        return [p.name for p in self.kernel.params]

    def _values(self, args):
        for part in self.layout.slots:
            arg = args[part.param]
            if part.part == "pointer":
                yield arg.ctypes.data
            elif part.part == "extent":
                yield arg.shape[part.axis]
            elif part.part == "stride":
                yield arg.strides[part.axis] // arg.itemsize
            else:
                yield _bits(arg, next(p.type for p in self.kernel.params if p.name == part.param))


def _bits(x, t: Scalar):
    return int(np.float16(x).view(np.uint16)) if t.name == "f16" else x


@pytest.fixture
def b():
    """The builder: ``b.kernel``, ``b.store`` and so on."""
    return SimpleNamespace(**{name: thing for name, thing in globals().items() if not name.startswith("_")})
