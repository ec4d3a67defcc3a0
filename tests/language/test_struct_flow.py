"""Structs as values: results of functions that return early, members of structs, whole assignments, ``fill``."""

import typing

import pytest

import quadpy as qp

vec3, mat3 = qp.types.vector(3, qp.f32), qp.types.matrix(3, 3, qp.f32)
Inner = qp.types.struct(a=qp.f32, v=vec3, m=mat3)
Outer = qp.types.struct(s=Inner, k=qp.i32)
out = qp.field(qp.f32, 4)
structs = Outer.field(shape=4)


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(**{"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param])
    structs.fill(0)


@pytest.fixture(params=["func", "real_func"])
def function(request):
    return getattr(qp, request.param)


def test_returns_in_loops(function):
    @function
    def early(x: qp.f32, n: qp.i32) -> tuple[qp.f32, Outer]:
        for j in range(n):
            for k in range(3):
                if j * k * x > 4:
                    return x, Outer(k=k, s=Inner(a=j))
        while x < 3:
            if x > 2:
                return x, Outer(k=-2)
            x += 1
        return -x, Outer(k=-1)

    @qp.kernel(graph=True)
    def kernel():
        for i in out:
            a, o = early(i, 4 * i)
            out[i] = a + 10 * o.k + 100 * o.s.a

    kernel()
    kernel()
    assert out.to_numpy().tolist() == [-13, 1 + 20 + 300, 2 + 20 + 200, 3 + 20 + 100]


def test_tuples_of_structs_with_matrices(function):
    @function
    def made(x: qp.f32) -> Inner:
        s = Inner(a=x, v=[x, x, x])
        s.m[1, 1] = x
        return s

    @function
    def both(x: qp.f32) -> typing.Tuple[Outer, qp.i32]:  # noqa: UP006 - one of the spellings
        n = Outer(k=3)
        n.s = made(x)
        n.s.v.fill(2.0)
        return n, 5

    @function
    def nested(x: qp.f32) -> tuple[tuple[qp.f32, qp.i32], Inner]:
        return (x, 2), made(x)

    @qp.kernel
    def kernel() -> typing.Tuple[qp.f32, vec3, Outer]:  # noqa: UP006
        for i in structs:
            n, j = both(i)
            structs[i] = n
            (a, b), s = nested(i)
            out[i] = n.s.m[1, 1] + n.s.v.sum() + j + n.k + a + b + s.a
        n, _ = both(2.0)
        return 1.5, n.s.v, n

    a, v, n = kernel()
    assert (a, v.to_list(), n.k, n.s.m[1, 1]) == (1.5, [2, 2, 2], 3, 2)
    assert out.to_numpy().tolist() == [16 + 3 * i for i in range(4)]
    assert structs[3].s.m[1, 1] == 3


def test_structs_are_assigned_whole():
    @qp.kernel
    def kernel():
        for i in out:
            n = Outer()
            m = Outer(s=Inner(a=i), k=2)
            n.s, n.k = m.s, m.k
            p = n
            p.s = Inner(a=5)
            q = p.s
            q.a += 1
            structs[i] = p
            structs[i].s = Inner(a=7)
            structs[i].s.m = mat3(2)
            out[i] = n.s.a + p.s.a * 10 + q.a * 100

    kernel()
    assert out.to_numpy().tolist() == [650, 651, 652, 653]
    assert (structs[2].k, structs[2].s.a, structs[2].s.m[2, 2]) == (2, 7, 2)


def test_fill():
    @qp.kernel
    def kernel():
        for i in out:
            n = Outer()
            n.fill(2)
            out[i] = n.s.m.sum() + n.k
            n.s.fill(i)
            n.s.m[0, :].fill(9)
            structs[i].fill(4)
            structs[i].s = n.s
            if i == 3:
                structs[i].s.fill(1.5)

    kernel()
    assert out.to_numpy().tolist() == [20] * 4
    assert (structs[2].k, structs[2].s.a, structs[2].s.m.to_list()) == (4, 2, [[9, 9, 9], [2, 2, 2], [2, 2, 2]])
    assert structs[3].s.v.to_list() == [1.5] * 3


def test_a_member_and_a_method_of_that_name():
    Own = qp.types.struct(fill=qp.f32)

    @qp.dataclass
    class Tank:
        level: qp.f32

        @qp.func
        def fill(self, by):
            self.level += by

    @qp.kernel
    def kernel() -> qp.f32:
        tank = Tank(1.0)
        tank.fill(2.0)
        return tank.level + Own(10.0).fill

    assert kernel() == 13


def test_what_cannot_be_filled():
    @qp.kernel
    def kernel():
        n = Outer()
        n.fill(qp.Vector([1, 2]))

    with pytest.raises(qp.KernelTypeError):
        kernel()

    @qp.kernel
    def several():
        n = Outer()
        n.fill(1, 2)

    with pytest.raises(qp.KernelTypeError, match="fill takes one value"):
        several()
