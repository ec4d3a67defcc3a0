"""Rules of the language that few programs break: what is wrong, the line in the kernel, and what to do instead."""

from __future__ import annotations

import numpy as np
import pytest

import quadpy as qp

KERNEL = """
P = qp.types.struct(mass=qp.f32, v=qp.types.vector(2, qp.f32))
Q = qp.types.struct(mass=qp.f32)
SCALAR, TABLE, OBJECT = qp.field(qp.f32, ()), np.arange(4.0), object()

def exhausted():
    raise MemoryError

@qp.kernel
def kernel(x: qp.types.ndarray(qp.f32, 1), k: qp.types.ndarray(qp.i32, 1), a: qp.types.ndarray(P, 1), n: qp.i32, p: P):
    v = qp.Vector([1.0, 2.0])
    s = P(1.0, v)
{body}
"""
RULES = {
    # operators and literals
    "a literal that no type holds": ("y = n + 2**70", "does not fit i32", "no integer type holds it"),
    "an operator of an object": ("y = OBJECT + 1", "this operator is not defined for object and int", ""),
    "an operator of a run-time value and an object": ("y = n + OBJECT", "this operator needs numbers or vectors, not object", ""),
    "a literal that would be cut": ("k[0] = 1.5", "the literal 1.5 is not a whole number", "i32(1.5) to truncate"),
    "a truth that Python does not know": ("if TABLE: pass", "ambiguous", ""),
    # arrays and elements
    "an index of no array": ("n[0] = 1", "'n' is not a vector or struct", ""),
    "more indices than axes of an element": ("y = a[0].v[1, 2]", "2 indices for", ""),
    "an array that is unrolled": ("for i in qp.static(x): pass", "an array cannot be unrolled", ""),
    "a length of no axis": ("y = len(SCALAR)", "a 0-d array has no length", "x[None]"),
    # loops and comprehensions
    "a loop variable that is not a name": ("for x[0] in qp.static(range(3)): pass", "a loop variable must be a name", ""),
    "a condition at run time": ("y = [j for j in range(3) if n > j]", "condition of a comprehension must be known", ""),
    "any of a number": ("y = any(n)", "any takes a list, a tuple or a vector, not i32", ""),
    "all of a struct": ("y = all(s)", "all takes a list", ""),
    # functions
    "an atomic for an operator": (
        "for i in x: x[i] = qp.simt.block.reduce(x[i], 256, qp.atomic_add)", "changes its first argument", "qp.atomic_add",
    ),
    "a function that needs too much memory": ("y = qp.static(exhausted())", "needs more memory to compile", "in Python"),
    "a large determinant": ("y = qp.Matrix.identity(qp.f32, 7).determinant()", "up to 6 x 6, not 7 x 7", ""),
    # structs
    "an index of a struct": ("y = s[0]", "cannot be indexed", "there are mass, v"),
    "an index of a struct's element": ("y = a[0][1]", "cannot be indexed", "there are mass, v"),
    "an index of a struct that is set": ("s[0] = 1.0", "cannot be indexed", ""),
    "a struct for a number": ("x[0] = s", "where f32 is needed", "name one of its members"),
    "a struct for a vector": ("v[0] = s", "where f32 is needed", ""),
    "a number for a struct": ("a[0] = 1.0", "is needed", "calling the struct type"),
    "a member of the wrong shape": ("y = P(1.0, n, 3)", "3 values for the 2 members", ""),
    "a vector for a number": ("y = P(v, v)", "the member 'mass' is f32, not f32x2", ""),
    "a member that is given twice": ("y = P(1.0, mass=2.0)", "the member 'mass' is given twice", ""),
    "a float for an integer member": ("y = qp.Struct(n=1)\ny.n = 1.5", "would be cut to i32", "truncate"),
    "Struct of a number": ("y = qp.Struct(1)", "takes one dict, or members by name", "qp.Struct(a=1.0)"),
    "Struct of nothing": ("y = qp.Struct()", "at least one member", ""),
    "structs of two types": ("y = s == Q(1.0)", "cannot be compared", ""),
    "an order of structs": ("y = s < p", "structs have no order", "compare their members"),
    "a sum of structs": ("y = s + p", "not defined for", "combine the members"),
    "a struct that is compared and swapped": ("qp.atomic_cas(a[0], s, p)", "atomic_cas changes numbers and vectors, not a struct", ""),
    "a dict without a member": ("a[0] = {'mass': 1.0}", "needs a value for its member 'v'", ""),
    "a struct with another member": ("a[0] = qp.Struct(mass=1.0, w=2.0)", "has no member 'v'", ""),
    "a condition that is a struct": ("if s: pass", "a condition must be a single value", ""),
    "a dict's item at run time": ("y = {'a': 1}[n]", "must be known at compile time", "make the index static"),
    # hints and options
    "a hint about a number": ("qp.block_local(n)", "a hint takes arrays and fields, not i32", ""),
    "blocks of text": ("qp.loop_config(block_dim='x')\nfor i in x: pass", "block_dim must be a number", ""),
    "options by position": ("qp.loop_config(True)", "only keyword arguments", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", RULES)
def test_rule(load, case):
    body, message, hint = RULES[case]
    lines = "\n".join("    " + line for line in body.splitlines())
    module = load(KERNEL.format(body=lines))
    arguments = np.zeros(4, np.float32), np.zeros(4, np.int32), module.P.ndarray(2), 2, module.P(1.0, [1, 2])
    with pytest.raises(qp.CompilationError) as caught:
        module.kernel(*arguments)
    error = caught.value
    assert message in error.message
    assert hint in error.hint
    assert "internal error" not in str(error)
    first = KERNEL.count("\n", 0, KERNEL.index("{body}")) + 3
    assert 0 <= error.span.line - first <= body.count("\n")
    assert f"{module.__file__}:{error.span.line}:" in str(error)


LIMITS = {
    "a static loop": ("for j in qp.static(range(10**7)): pass", "more than the limit of 500,000 steps", "run-time loops"),
    "nested static loops": (
        "for j in qp.static(range(1000)):\n    for l in qp.static(range(1000)): pass", "limit of 500,000", "QUADPY_COMPILE_STEPS",
    ),
    "a product of matrices": (
        "m = qp.Matrix.one(qp.f32, 100, 100)\ny = (m @ m)[0, 0]", "limit of 500,000 steps", "QUADPY_COMPILE_STEPS",
    ),
    "a matrix": ("m = qp.Matrix.zero(qp.f32, 500, 500)", "at most 65,536 components", "qp.ndarray or qp.field"),
    "an inverse": ("m = qp.Matrix.identity(qp.f32, 40).inverse()", "up to", ""),
    "a comprehension": ("y = sum([j for j in range(10**6)])", "limit of 500,000 steps", ""),
    "text": ("y = 'a' * 10**6", "limit of 500,000 steps", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", LIMITS)
@pytest.mark.timeout(120)
def test_limits_are_named(load, case):
    body, message, hint = LIMITS[case]
    lines = "\n".join("    " + line for line in body.splitlines())
    module = load(f"@qp.kernel\ndef kernel():\n{lines}\n")
    with pytest.raises(qp.CompilationError) as caught:
        module.kernel()
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.span.file == module.__file__


MEMBERS = {
    "an array": "qp.types.struct(a=qp.types.ndarray(qp.f32, 1))",
    "text": "qp.types.struct(a=str)",
    "a template": "qp.types.struct(a=qp.template())",
    "an object": "qp.types.struct(a=object())",
    "a field": "qp.types.struct(a=qp.field(qp.f32, 3))",
    "nothing": "qp.types.struct()",
    "a vector of text": "qp.types.vector(3, str)",
    "a matrix of vectors": "qp.types.matrix(2, 2, qp.types.vector(2, qp.f32))",
    "an array of text": "qp.ndarray(str, 3)",
    "a field of objects": "qp.field(object(), 3)",
    "an ndarray annotation of text": "qp.types.ndarray(str, 1)",
    "a dataclass of text": "qp.dataclass(type('D', (), {'__annotations__': {'a': str}}))",
}


@pytest.mark.parametrize("case", MEMBERS)
def test_types_of_members_that_are_not_supported(load, case):
    with pytest.raises(qp.QuadpyError) as caught:
        load(f"x = {MEMBERS[case]}\n")
    assert caught.value.message


def test_long_vectors_are_no_limit(load):
    module = load("""
        @qp.kernel
        def kernel(a: qp.f64) -> qp.types.vector(5, qp.f64):
            m = qp.Matrix.one(qp.f64, 40, 40) * a
            v = qp.Vector.one(qp.f64, 2000) * a
            small = 1.0 if m.any() and v.all() else 0.0
            return qp.Vector([m.sum(), v.dot(v), qp.max(v), sum([a for _ in range(1500)]), small])
    """)
    assert module.kernel(2.0).to_list() == [3200, 8000, 2, 3000, 1]
