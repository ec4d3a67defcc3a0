"""What a loop runs over, chosen at compile time, and ranges under a name."""

import numpy as np
import pytest

import quadpy as qp

out = qp.field(qp.i32, 4)


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(**{"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param])
    out.fill(0)


@qp.func
def inner(p, n, c: qp.template()):
    for i in range(n) if qp.static(c) else qp.static(range(5)):
        out[p] += i


@qp.func
def over(p, r):
    for i in r:
        out[p] += i


@pytest.mark.parametrize("c", [True, False])
def test_in_iterations_functions_and_graphs(c):
    @qp.kernel(graph=True)
    def kernel(n: qp.i32, c: qp.template()):
        for p in out:
            for _ in range(n) if qp.static(c) else qp.static(range(5)):
                out[p] += 100
            inner(p, n, c)
            for _i, _j in qp.ndrange(n, 2) if qp.static(not c) else qp.static(qp.ndrange(1, 2)):
                out[p] += 1000
            for i in (range(1, n, 2) if qp.static(p is None) else range(n)) if c else range(2, 0, -1):
                out[p] += 10000 * i

    kernel(3, c)
    kernel(3, c)
    expected = 2 * (303 + 2000 + 30000 if c else 510 + 6000 + 30000)
    assert out.to_numpy().tolist() == [expected] * 4


@pytest.mark.parametrize("c", [True, False])
def test_at_the_top_level(c):
    @qp.kernel
    def kernel(x: qp.types.ndarray(qp.i32, 1), n: qp.i32, c: qp.template()):
        for i in range(n) if qp.static(c) else qp.static(range(2)):
            out[i] += 1
        for i in x if qp.static(c) else out:
            out[i] += 10
        for I in qp.grouped(x) if qp.static(c) else qp.grouped(out):
            out[I] += 100

    kernel(np.zeros(3, np.int32), 3, c)
    assert out.to_numpy().tolist() == ([111, 111, 111, 0] if c else [111, 111, 110, 110])


def test_a_range_has_a_name():
    @qp.kernel
    def kernel(n: qp.i32, c: qp.template()):
        r = range(n) if qp.static(c) else qp.static(range(3))
        for p in out:
            for i in r:
                out[p] += i
            m = p
            own = range(m, m + 2)
            m = 100
            for i in own:
                out[p] += 10 * i
            over(p, range(n))
            over(p, own)
            m = 7

    kernel(3, True)
    assert out.to_numpy().tolist() == [6 + 11 * (2 * p + 1) for p in range(4)]
    kernel(3, False)
    assert out.to_numpy().tolist() == [2 * (6 + 11 * (2 * p + 1)) for p in range(4)]


REFUSED = {
    "chosen at run time": (
        "for i in range(n) if n > 2 else range(3):\n    pass", qp.KernelSyntaxError, "must be chosen at compile time"),
    "the items of a range": ("r = range(n)\nv = [i for i in r]", qp.KernelTypeError, "only be used in a for statement"),
    "an unrolled range": ("r = range(n)\nfor i in qp.static(r):\n    pass", qp.KernelTypeError, "only be used in a for"),
    "the length of a range": ("m = len(range(n))", qp.KernelTypeError, "a run-time range has no len"),
    "no bounds": ("r = range(n, n, n, n)", qp.KernelTypeError, "range takes 1 to 3 arguments"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_range_is_not_for(load, case):
    body, error, message = REFUSED[case]
    text = "@qp.kernel\ndef kernel(n: qp.i32):\n" + "\n".join("    " + line for line in body.splitlines())
    with pytest.raises(error, match=message):
        load(text).kernel(3)
