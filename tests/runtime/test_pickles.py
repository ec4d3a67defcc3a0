"""Arrays, fields, values and types through pickles: in this process, another one, and from a GPU to the host."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from simulated import current

import quadpy as qp

vec2 = qp.types.vector(2, qp.f32)
Inner = qp.types.struct(k=qp.i8)
S = qp.types.struct(a=qp.f64, v=vec2, inner=Inner)


@qp.dataclass
class Ball:
    x: vec2
    r: qp.f32 = 1.5

    @qp.func
    def area(self):
        return self.r * self.r


def blocked():
    f = qp.field(qp.i32)
    qp.root.dense(qp.i, 2).dense(qp.i, 3).place(f)
    f.from_numpy(np.arange(6))
    return f


def samples():
    f = qp.field(qp.f16, (2, 3), order="ji", offset=(1, 2), name="f", needs_grad=True)
    f.fill(2)
    f.grad.fill(3)
    a = qp.ndarray(S, 3)
    a[1] = S(1, [2, 3], Inner(4))
    s = Ball.field(2, layout=qp.Layout.SOA)
    s[1] = Ball([1, 2])
    t = qp.tensor(qp.bf16, (2, 3), layout=(1, 0))
    t[1, 2] = 2.5
    return {
        "field": f, "structs": a, "balls": s, "tensor": t, "blocks": blocked(), "bools": qp.ndarray(qp.u1, (0, 2)),
        "vector": qp.Vector([1, 2], qp.f32), "matrix": qp.Matrix([[1, 2]]), "struct": a[1], "ball": s[1],
        "types": [qp.f32, vec2, qp.types.matrix(2, 3, qp.i8), S, Ball, qp.Layout.SOA, qp.Backend.FIELD],
    }  # fmt: skip


def check(found):
    f = found["field"]
    assert (f.shape, f.offset, f.name, f[1, 2], f.grad[2, 4]) == ((2, 3), (1, 2), "f", 2, 3)
    assert found["structs"][1] == found["struct"] == S(1, [2, 3], Inner(4))
    assert found["balls"][1] == found["ball"] == Ball([1, 2])
    assert (found["balls"][0].r, found["tensor"][1, 2], found["bools"].shape) == (0, 2.5, (0, 2))
    assert found["blocks"].to_numpy().tolist() == list(range(6))
    assert (found["vector"].entries, found["matrix"].to_list()) == ((1, 2), [[1, 2]])
    assert found["types"] == [qp.f32, vec2, qp.types.matrix(2, 3, qp.i8), S, Ball, qp.Layout.SOA, qp.Backend.FIELD]
    assert found["types"][4]([0, 0]).r == 1.5
    assert found["ball"].area is not None


@pytest.mark.usefixtures("arch")
def test_pickles_in_one_process():
    check(pickle.loads(pickle.dumps(samples())))


def test_from_a_gpu_to_the_host(gpu):
    data = pickle.dumps(samples())
    with current("cpu"):
        found = pickle.loads(data)
        check(found)
        assert found["field"].device is None


def test_another_process(tmp_path):
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(pickle.dumps(samples()))
    text = f"""
import importlib, pickle, sys
from pathlib import Path
sys.path[:0] = {[str(Path(__file__).parents[2]), *sys.path]!r}
import quadpy as qp
qp.init(arch=qp.cpu)
tests = importlib.import_module({__name__!r})
found = pickle.loads(Path({str(sent)!r}).read_bytes())
tests.check(found)
Path({str(back)!r}).write_bytes(pickle.dumps(found))
"""
    subprocess.run([sys.executable, "-c", text], check=True, timeout=120)
    check(pickle.loads(back.read_bytes()))


def test_a_local_struct_is_pickled_by_its_members():
    @qp.dataclass
    class Local:
        a: qp.f32
        b: qp.i32 = 3

    found = pickle.loads(pickle.dumps(Local.ndarray(2)))
    found[1] = {"a": 2}
    assert (found[1].a, found.dtype(1).b, repr(found.dtype)) == (2, 3, repr(Local))
