"""Values of the wrong type, shape or size inside kernels: the class of the error, its message, its line, its hint."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

KERNEL = """
SCALAR = qp.field(qp.f32, shape=())

@qp.func
def one_argument(v):
    return v

@qp.func
def uneven(v):
    if v > 0:
        return 1, 2
    return 3

@qp.func
def sometimes(v):
    if v > 0:
        return 1

@qp.func
def typed(v: qp.f32):
    return v

@qp.kernel
def kernel(x: qp.types.ndarray(qp.f32, 1), m: qp.types.ndarray(qp.i32, 2), n: qp.i32, f: qp.f32):
    v = qp.Vector([1.0, 2.0])
{body}
"""
FIRST_LINE = KERNEL.count("\n", 0, KERNEL.index("{body}")) + 3  # ``load`` puts two lines before
TYPE, VALUE, SYNTAX = qp.KernelTypeError, qp.KernelValueError, qp.KernelSyntaxError
CASES = {
    "too few values for a text": ("print('%d %d' % (1,))", TYPE, "not enough arguments for format string"),
    "a value that a text does not take": ("print('%d' % 'a')", TYPE, "%d format: a real number is required, not str"),
    "a format that does not exist": ("print('%q' % 1)", TYPE, "unsupported format character 'q'"),
    "a keyword that a vector does not take": ("qp.Vector([1], x=2)", TYPE, "Vector takes no x="),
    "a keyword that a vector type does not take": ("qp.math.vec2(1, 2, dt=qp.f64)", TYPE, "takes no dt="),
    "a reset": ("qp.reset()", SYNTAX, "reset cannot be called inside a kernel"),
    "a static reset": ("qp.static(qp.reset())", SYNTAX, "reset cannot be called inside a kernel"),
    "an init": ("qp.init(arch=qp.cpu)", SYNTAX, "init cannot be called inside a kernel"),
    "a sync": ("qp.sync()", SYNTAX, "sync cannot be called inside a kernel"),
    "a field that is made": ("qp.field(qp.f32, 3)", SYNTAX, "field cannot be called inside a kernel"),
    "a field of vectors that is made": ("qp.Vector.field(2, qp.f32, 3)", SYNTAX, "field cannot be called inside a kernel"),
    "an array that is made": ("qp.ndarray(qp.f32, 3)", SYNTAX, "ndarray cannot be called inside a kernel"),
    "a tree that is made": ("qp.root.dense(qp.i, 3)", SYNTAX, "dense cannot be called inside a kernel"),
    "a call of a number": ("a = n\na()", TYPE, "i32 cannot be called inside a kernel"),
    "a call of a vector": ("a = qp.Vector([n, 2])\na()", TYPE, "i32x2 cannot be called inside a kernel"),
    "a unit vector along no axis": ("qp.Vector.unit(3, 5)", TYPE, "a vector of 3 numbers has no component 5"),
    "a method of a list": ("a = [n]\na.pop()", TYPE, "pop cannot be called inside a kernel"),
    "a variable that becomes a float": ("t = 1\nt = 2.5", TYPE, "'t' is i32 since line 28"),
    "a variable that becomes a float in a loop": ("t = 0\nfor i in range(n):\n    t += f", TYPE, "'t' is i32"),
    "a variable that becomes a float in a branch": ("t = 0\nif n > 1:\n    t += f", TYPE, "'t' is i32"),
    "a compile-time value that changes in a branch": ("t = (1, 2)\nif n > 1:\n    t = 5", TYPE, "cannot change here"),
    "a variable that becomes a vector": ("t = 1\nt = v", TYPE, "shape"),
    "a vector that becomes longer": ("t = v\nt = v.xyx", TYPE, "shape"),
    "a variable that becomes a tuple": ("t = 1\nt = (1, 2)", TYPE, "cannot become"),
    "too many indices": ("y = x[0, 1]", TYPE, "2 indices for an array of 1"),
    "too few indices": ("m[0] = 1", TYPE, "1 index for an array of 2"),
    "an index that is a float": ("y = x[f]", TYPE, "an index must be an integer"),
    "a literal index that is a float": ("y = x[1.0]", TYPE, "an index must be an integer"),
    "a negative literal index": ("y = x[-1]", TYPE, "out of bounds"),
    "a slice of an array with steps": ("y = x[0:2:2]", TYPE, "no steps"),
    "a component that is not there": ("y = v[2]", VALUE, "out of range"),
    "a component of a number": ("y = n[0]", TYPE, "cannot be indexed"),
    "vectors of two lengths": ("y = v + qp.Vector([1, 2, 3])", TYPE, "shapes do not agree"),
    "a product that does not fit": ("y = qp.Matrix([[1, 2, 3]]) @ v", TYPE, "inner extents differ"),
    "the inverse of an oblong matrix": ("y = qp.Matrix([[1, 2, 3]]).inverse()", TYPE, "square"),
    "rows of two lengths": ("y = qp.Matrix([[1, 2], [3]])", TYPE, "rows"),
    "a vector of nothing": ("y = qp.Vector([])", TYPE, "list of numbers"),
    "no argument for Vector": ("y = qp.Vector()", TYPE, "Vector"),
    "a vector as a condition": ("if v > 1.0:\n    n = 1", TYPE, "any"),
    "bits of a float": ("y = f & 1", TYPE, "integer"),
    "a shift of a float": ("y = f << 1", TYPE, "integer"),
    "inverted float": ("y = ~f", TYPE, "integer"),
    "bit_cast to another width": ("y = qp.bit_cast(f, qp.i64)", TYPE, "equal widths"),
    "bit_cast to no type": ("y = qp.bit_cast(f, 5)", TYPE, "type"),
    "cast to no type": ("y = qp.cast(f, 5)", TYPE, ""),
    "a literal that does not fit": ("y = n + 3000000000", VALUE, "3000000000 does not fit i32"),
    "a negative literal for unsigned": ("y = qp.u32(n) + -1", VALUE, "-1 does not fit u32"),
    "a cast literal that does not fit": ("y = qp.i8(300)", VALUE, "300 does not fit i8"),
    "a string in arithmetic": ("y = n + 'a'", TYPE, "str"),
    "an array in arithmetic": ("y = x + 1", TYPE, "array"),
    "an array as a value": ("y = 1.0\ny = x", TYPE, "cannot become"),
    "a function in arithmetic": ("y = one_argument + 1", TYPE, "the function one_argument"),
    "a loop over a float": ("for i in range(f):\n    pass", TYPE, "bounds of a loop must be integers"),
    "a loop over a number": ("for i in n:\n    pass", TYPE, "cannot run over"),
    "a range without arguments": ("for i in range():\n    pass", TYPE, "range takes"),
    "a range of step zero": ("for i in range(0, 5, 0):\n    pass", TYPE, "step"),
    "one name for two indices": ("for i in m:\n    pass", TYPE, "2 indices, but one name"),
    "two names for one index": ("for i, j in x:\n    pass", TYPE, "1 index, not 2"),
    "an index with a variable's name": ("t = 5.0\nwhile t < f:\n    for t in range(3):\n        pass", TYPE, "'t' is already a variable"),
    "a name of an unrolled loop that is a variable's": (
        "t = 5\nwhile t < f:\n    for t in qp.static(range(3)):\n        pass", TYPE, "'t' is already a variable"),
    "an index with an array's name": ("for i, x in m:\n    pass", TYPE, "'x' is already a variable"),
    "ndrange of a float": ("for i in qp.ndrange(1.5):\n    pass", TYPE, "ndrange takes integers"),
    "grouped of a number": ("for i in qp.grouped(n):\n    pass", TYPE, "cannot run over"),
    "two names for no index": ("for i, j in SCALAR:\n    pass", TYPE, "0 indices, not 2"),
    "grouped of nothing": ("for i in qp.grouped():\n    pass", TYPE, "grouped"),
    "static of a run-time value": ("y = qp.static(n)", TYPE, "compile time"),
    "an unrolled loop over a run-time range": ("for i in qp.static(range(n)):\n    pass", SYNTAX, "run-time range"),
    "an unrolled loop over a number": ("for i in qp.static(5):\n    pass", TYPE, "not iterable"),
    "a comprehension over an array": ("y = [i for i in x]", TYPE, "compile time"),
    "static_assert": ("qp.static_assert(1 > 2, 'one is less')", TYPE, "one is less"),
    "too many arguments": ("y = one_argument(1, 2)", TYPE, "one_argument"),
    "too few arguments": ("y = one_argument()", TYPE, "one_argument"),
    "an unknown keyword": ("y = one_argument(v=1, w=2)", TYPE, "one_argument"),
    "an array for a number": ("y = typed(x)", TYPE, "v is f32"),
    "too many arguments of a builtin": ("y = qp.sqrt(f, f)", TYPE, "sqrt"),
    "too few arguments of a builtin": ("y = qp.atan2(f)", TYPE, "atan2"),
    "too few arguments of a method": ("y = v.dot()", TYPE, "dot"),
    "a cast of two values": ("y = qp.f32(1, 2)", TYPE, "a cast takes one value"),
    "a value of a function that gives none": ("y = 1 + sometimes(0)", TYPE, ""),
    "names for too few values": ("a, b, c = 1, 2", TYPE, "3 names for"),
    "an atomic on a value": ("qp.atomic_add(1.0, 1.0)", TYPE, "a target that can be assigned"),
    "an atomic with one argument": ("qp.atomic_add(x[0])", TYPE, "takes 2 arguments"),
    "atomic bits of a float": ("x[0] |= 1", TYPE, "integer"),
    "an array in +=": ("x += 1", TYPE, "array"),
    "an assigned array": ("x = n", TYPE, "'x' is an array"),
    "an unknown loop option": ("qp.loop_config(blocks=3)", TYPE, "no option 'blocks'"),
    "an array as a loop option": ("qp.loop_config(serialize=x)", TYPE, "serialize must be known at compile time"),
    "a list as a loop option": ("qp.loop_config(serialize=[])", TYPE, "serialize must be True or False, not list"),
    "a number as a loop's name": ("qp.loop_config(name=3)", TYPE, "name must be a string, not int"),
    "a block of no threads": ("qp.loop_config(block_dim=0)", TYPE, "block_dim"),
    "a key that is not there": ("y = {'a': 1}['b']", TYPE, "there is no key 'b'"),
    "a run-time key": ("y = (1, 2)[n]", TYPE, "compile time"),
    "a math error at compile time": ("import_ = max()", TYPE, "argument"),
    "an item of a set": ("y = {n, 1}", TYPE, "items of a set must be known"),
    "a run-time key of a comprehension": ("y = {n + j: j for j in range(3)}", TYPE, "key of a dict must be known"),
    "** of no dict": ("y = one_argument(**1)", TYPE, "** takes a dict whose keys are names, not int"),
    "** of other keys": ("y = one_argument(**{1: 2})", TYPE, "** takes a dict whose keys are names"),
    "an argument that is given twice": ("y = one_argument(v=1, **{'v': 2})", TYPE, "'v' is given twice"),
    "names for too many values": ("a, b = 1, 2, 3", TYPE, "2 names for 3 values"),
    "names and a star for too few values": ("a, b, *c = (1,)", TYPE, "3 names for 1 values"),
    "a lambda with too many arguments": ("y = (lambda a: a)(1, 2)", TYPE, "lambda: too many"),
    "a lambda whose value Python needs": ("y = sorted([1, 2], key=lambda a: n)", TYPE, "known at compile time, not i32"),
    "a Python function of a run-time value": ("y = qp.static(hash(n))", TYPE, "hash runs while compiling"),
    "a Python function that refuses": ("y = qp.static(chr(-1))", TYPE, "chr: ValueError"),
    "a positional pattern": ("match qp.static(slice(1)):\n    case slice(1):\n        pass", TYPE, "fewer positional members"),
    "a number of threads": ("qp.loop_config(parallelize='x')\nfor i in x: pass", TYPE, "parallelize must be a number of"),
    "a length of a number": ("y = len(n)", TYPE, ""),
    "a huge literal power": ("y = 10 ** 10 ** 10", VALUE, "power"),
}  # fmt: skip
IN_A_FUNCTION = {
    "results of two shapes": ("y = uneven(n)", TYPE, "of the same shape"),
    "a path without result": ("y = sometimes(n)", TYPE, "ends without a return"),
}


@pytest.mark.parametrize("case", [*CASES, *IN_A_FUNCTION])
def test_case(load, case):
    body, error, message = (CASES | IN_A_FUNCTION)[case]
    module = load(KERNEL.format(body="\n".join("    " + line for line in body.splitlines())))
    with pytest.raises(error) as caught:
        module.kernel(np.zeros(4, np.float32), np.zeros((2, 2), np.int32), 2, 1.5)
    assert message in str(caught.value) + caught.value.hint
    line = caught.value.span.line
    assert (line < FIRST_LINE) if case in IN_A_FUNCTION else (0 <= line - FIRST_LINE <= body.count("\n"))
    assert f"{module.__file__}:{line}:" in str(caught.value)
    assert "^" in str(caught.value)
