"""A name that stood for something else before: the index of a loop, the name of an unrolled loop, a variable of a branch."""

import numpy as np
import pytest

import quadpy as qp

CASES = {
    "a variable of a serial loop, then the index of a parallel one": ("""
        qp.loop_config(serialize=True)
        for k in range(1, 4):
            i = k // 2
            a[i] += 1
        for i in a:
            a[i] += 10
    """, [11, 12, 10, 10]),
    "a variable of a serial loop, then one of each iteration": ("""
        qp.loop_config(serialize=True)
        for k in range(4):
            i = k
            v = qp.Vector([k, k])
        for p in a:
            i = p
            v = p * 2
            a[p] = i + v
    """, [0, 3, 6, 9]),
    "a variable from before a parallel loop": ("""
        i = 7.5
        for i in a:
            a[i] = i
    """, [0, 1, 2, 3]),
    "a variable keeps the last index of a serial loop": ("""
        i = 7
        qp.loop_config(serialize=True)
        for i in range(3):
            a[0] += i
            i += 10
            a[1] += i
        a[2] = i
        j = 5
        qp.loop_config(serialize=True)
        for j in range(0):
            pass
        a[3] = j
    """, [3, 33, 12, 5]),
    "a variable that an iteration keeps": ("""
        for p in a:
            k = 100
            for k in range(p):
                a[p] += 1
            a[p] += k
    """, [100, 1, 3, 5]),
    "a loop in a loop around": ("""
        qp.loop_config(serialize=True)
        for k in range(3):
            i = k * 10
            a[0] += i
            for i in range(2):
                a[1] += i
            a[2] += i
    """, [30, 3, 3, 0]),
    "vectors, numbers and indices in turn": ("""
        for k in range(4):
            if k > 1:
                p = qp.Vector([k, k])
                a[k] = p.sum()
            else:
                p = 3.5
                a[k] = int(p * 2)
            for p in range(3):
                a[k] += p
            for p, q in qp.ndrange(2, 2):
                a[k] += p * q
    """, [11, 11, 8, 10]),
    "a struct and a number": ("""
        for k in range(4):
            if k > 1:
                p = qp.Struct(x=k)
                a[k] = p.x
            elif k > 0:
                p = (k, 50)
                a[k] = p[1]
            else:
                p = 9
                a[k] = p
    """, [9, 50, 2, 3]),
    "a variable in a branch after an unrolled loop": ("""
        for p in a:
            total = 0
            for i in qp.static(range(3)):
                total += i
            if p > 0:
                i = 0
                while i < 5:
                    i += 1
                total += i
            a[p] = total
    """, [3, 8, 8, 8]),
    "an index after an unrolled loop": ("""
        for p in a:
            for i in qp.static(range(3)):
                a[p] += 1
            while a[p] < 5:
                for i in range(p + 1):
                    a[p] += 1
            for i in qp.static(range(2)):
                a[p] += 1
    """, [7, 7, 8, 9]),
    "a variable after an unrolled loop over fields": ("""
        for f in qp.static((A, B)):
            f[0] = 1
        for p in a:
            if p > 1:
                f = p * 2.0
                a[p] = int(f)
    """, [0, 0, 4, 6]),
    "an unrolled loop whose name is read later": ("""
        for i in qp.static(range(3)):
            a[i] = 1
        for p in range(1):
            a[3] = i
    """, [1, 1, 1, 2]),
}  # fmt: skip


@pytest.fixture(params=["compiled", "checked", "python"], autouse=True)
def mode(request, init):
    init(**{"compiled": {}, "checked": {"debug": True}, "python": {"arch": qp.python}}[request.param])


HEAD = """
A, B = qp.field(qp.i32, 1), qp.field(qp.f32, 1)
a = qp.field(qp.i32, 4)
"""


@pytest.mark.parametrize("case", CASES)
def test_in_a_kernel(load, case):
    body, expected = CASES[case]
    module = load(HEAD + "@qp.kernel\ndef kernel():" + _body(body))
    module.kernel()
    assert module.a.to_numpy().tolist() == expected


@pytest.mark.parametrize("case", CASES)
def test_with_an_array(load, case):
    body, expected = CASES[case]
    module = load(HEAD + "@qp.kernel\ndef kernel(a: qp.types.ndarray(qp.i32, 1)):" + _body(body))
    x = np.zeros(4, np.int32)
    module.kernel(x)
    assert x.tolist() == expected


@pytest.mark.parametrize("kind", ["func", "real_func"])
@pytest.mark.parametrize("case", CASES)
def test_in_a_function(load, case, kind):
    body, expected = CASES[case]
    function = f"@qp.{kind}\ndef body(a: qp.template()):" + _body(body)
    module = load(HEAD + function + "\n@qp.kernel\ndef kernel():\n    body(a)\n")
    module.kernel()
    assert module.a.to_numpy().tolist() == expected


@pytest.mark.parametrize("case", CASES)
def test_in_a_graph(load, case):
    body, expected = CASES[case]
    module = load(HEAD + "@qp.kernel(graph=True)\ndef kernel():" + _body(body))
    module.kernel()
    module.a.fill(0)
    module.kernel()
    assert module.a.to_numpy().tolist() == expected


def _body(text):
    return "\n" + "\n".join(line[4:] for line in text.strip("\n").splitlines()) + "\n"


READ_AGAIN = {
    "an index of a parallel loop": ("i = 7\nfor i in a:\n    pass\na[0] = i", "it has no value after the loop"),
    "an index that is no number": (
        "for k in range(1):\n    i = 7.5\n    for i in range(3):\n        pass\n    a[0] = i", "it has no value after the loop"),
    "variables of two types": (
        "for k in a:\n    if k > 1:\n        p = qp.Vector([k, k])\n    else:\n        p = 3.5\n    a[k] = p",
        r"'p' is i32x2 on one path to this line \(line \d+\), and f32 on another"),
    "a float after an integer": (
        "for k in a:\n    if k > 1:\n        p = 1\n    else:\n        p = 3.5\n    a[k] = p", "'p' is i32 on one path"),
    "a name of an unrolled loop": (
        "for k in a:\n    for i in qp.static(range(2)):\n        pass\n    if k > 1:\n        i = 5\n    a[k] = i",
        "does not assign it on every path"),
    "a name that a section binds": (
        "i = 7\nwith qp.stream_parallel():\n    for i in a:\n        pass\na[0] = i", "it has no value after the loop"),
}  # fmt: skip


@pytest.mark.parametrize("case", READ_AGAIN)
def test_a_name_with_two_meanings_cannot_be_read(load, case):
    body, message = READ_AGAIN[case]
    module = load(HEAD + "@qp.kernel\ndef kernel():\n" + "\n".join("    " + line for line in body.splitlines()))
    with pytest.raises(qp.KernelNameError, match=message):
        module.kernel()


KEPT = {
    "a name of an unrolled loop that was read": (
        "for i in qp.static(range(2)):\n    pass\na[0] = i\nif a[1] > 0:\n    i = 5", "cannot change here"),
    "one that a loop reads before it changes it": (
        "for k in range(1):\n    for i in qp.static(range(2)):\n        pass\n    while a[1] < 3:\n        a[1] += i\n        i = 5",
        "cannot change here"),
    "one that a lambda reads": (
        "for i in qp.static(range(2)):\n    f = lambda: i\na[0] = f()\nif a[1] > 0:\n    i = 5", "cannot change here"),
    "an index that a loop around reads first": (
        "for k in range(1):\n    i = 7.5\n    while a[0] < i:\n        for i in range(9):\n            a[0] += 1",
        "'i' is already a variable"),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_what_may_be_read_again_keeps_its_meaning(load, case):
    body, message = KEPT[case]
    module = load(HEAD + "@qp.kernel\ndef kernel():\n" + "\n".join("    " + line for line in body.splitlines()))
    with pytest.raises(qp.KernelTypeError, match=message):
        module.kernel()
