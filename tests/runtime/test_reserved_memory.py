"""Sparse trees whose extents exceed memory: on the CPU, only pages of active cells take any."""

import subprocess
import sys

import numpy as np
import pytest

import quadpy as qp
from quadpy.runtime.memory import host_memory

LARGE = """
import re
import numpy as np
import quadpy as qp

qp.init(arch=qp.cpu, cpu_max_num_threads=2)
m, v, big, pid = qp.field(qp.f32), qp.Vector.field(2, qp.f32), qp.field(qp.f32), qp.field(qp.i32)
block = qp.root.pointer(qp.ij, 128).pointer(qp.ij, 8)
block.dense(qp.ij, 16).place(m, v, offset=(-8192, -8192))
block.dynamic(qp.k, 1 << 20).place(pid)  # 4 TiB
top = qp.root.pointer(qp.ijk, 64)
top.bitmasked(qp.ijk, 40).place(big)  # 62.5 GiB
other = qp.field(qp.f32)
qp.root.pointer(qp.ijk, 64).bitmasked(qp.ijk, 40).place(other)
seen = qp.field(qp.i32, 8)


@qp.kernel
def write():
    for i in range(100):
        m[i * 7 - 300, i * 3 - 200] = 1
        v[i * 7 - 300, i * 3 - 200] = [i, 2]
        big[i * 5, i * 11, i * 2] = 3
        qp.append(pid.parent(), [i + 50, i % 5], 4)


@qp.kernel
def look():
    for I in qp.grouped(m):
        if m[I] > 0:
            seen[qp.i32(m[I])] += 1
    for I in qp.grouped(pid):
        seen[pid[I]] += 1
    for I in qp.grouped(big):
        seen[qp.i32(big[I])] += 1


@qp.kernel
def spread():
    for i, j in m:
        if m[i, j] == 1 and i % 16 == 0:
            m[i + 16, j] = 7


def found():
    seen.fill(0)
    look()
    return seen.to_numpy().tolist()


write()
assert found() == [0, 100, 0, 100, 100, 0, 0, 0], found()
assert (big[5, 11, 2], big[5, 11, 3], m[-293, -197], v[-293, -197].x) == (3, 0, 1, 1)
spread()
assert found()[7] == 6, found()
big.fill(5)
m.fill(0)
pid.fill(6)
assert found() == [0, 0, 0, 0, 0, 100, 100, 0], found()
big[2000, 2000, 2000] = 2
big[:3, 7, 4:6] = 1
assert found()[1:3] == [6, 1], found()
assert big[:4, 7, 3:6].tolist() == [[0, 1, 1]] * 3 + [[0, 0, 0]]
other[1, 2, 3] = 9
other.copy_from(big)
assert (other[2000, 2000, 2000], other[5, 11, 2], other[1, 2, 3]) == (2, 5, 0)
block.deactivate_all()
assert found()[6] == 0
top.deactivate_all()
qp.deactivate_all_snodes()
assert sum(found()) == 0 and big[5, 11, 2] == 0
write()
assert found() == [0, 100, 0, 100, 100, 0, 0, 0], found()
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10)  # ru_maxrss counts the parent's, too
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such memory")
def test_trees_of_terabytes_take_the_memory_of_their_active_cells(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LARGE, encoding="utf-8")
    run = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 1024, "MiB"


@pytest.fixture(params=[False, True])
def reserved(request, monkeypatch):
    """Trees of this test have reserved memory, or not."""
    qp.init(arch=qp.cpu)
    if request.param:
        monkeypatch.setattr(host_memory, "RESERVED", 1)
    return request.param


def test_the_host_sees_the_same_in_reserved_memory(reserved):
    x, y, n = qp.field(qp.i32), qp.Vector.field(2, qp.f32), qp.field(qp.i32)
    block = qp.root.pointer(qp.ij, (3, 2))
    inner = block.bitmasked(qp.j, 4)
    inner.dense(qp.ij, (2, 1)).place(x, y)
    lists = block.dynamic(qp.k, 5)
    lists.place(n)
    twin = qp.field(qp.i32)
    qp.root.pointer(qp.ij, (3, 2)).bitmasked(qp.j, 4).dense(qp.ij, (2, 1)).place(twin)
    x[3, 5], y[0, 1] = 7, [1, 2]
    n[2, 1, 2] = 4
    x.fill(3)
    y.fill(4.0)
    n.fill(5)
    expected = np.zeros((6, 8), int)
    expected[2:4, 5] = expected[0:2, 1] = 3
    assert x.to_numpy().tolist() == expected.tolist()
    assert y.to_numpy()[..., 0].tolist() == (expected * 4 // 3).tolist()
    assert n.to_numpy()[2, 1].tolist() == [5, 5, 5, 0, 0]
    x[1:5:3, ::4] = 1
    expected[1:5:3, ::4] = 1
    assert x.to_numpy().tolist() == expected.tolist()
    twin[0, 0] = 9
    twin.copy_from(x)
    twin.fill(2)
    expected[:] = 0
    for i, j in ((2, 5), (0, 1), (0, 0), (0, 4), (4, 0), (4, 4)):
        expected[i : i + 2, j] = 2
    assert twin.to_numpy().tolist() == expected.tolist()
    inner.deactivate_all()
    assert not x.to_numpy().any()
    assert n.to_numpy().any()
    block.deactivate_all()
    assert not n.to_numpy().any()
    assert (x.container.tree.is_reserved, x.container.activity is None) == (reserved and sys.platform == "linux", True)


def test_captures_fill_reserved_memory(reserved):
    x = qp.field(qp.i32)
    block = qp.root.pointer(qp.i, 8)
    block.dense(qp.i, 2).place(x)
    x[5] = 1
    with qp.create_stream() as stream:
        with qp.use_stream(stream), qp.graph.capture(stream) as g:
            block.deactivate_all()
        assert x[5] == 1
        g.instantiate().launch(stream)
        stream.synchronize()
    assert not x.to_numpy().any()


def test_dense_fields_that_do_not_fit_are_refused():
    x = qp.field(qp.f64, (1 << 24, 1 << 24))
    with pytest.raises(qp.OutOfDeviceMemory):
        x[0, 0] = 1
    y = qp.field(qp.f64)
    qp.root.pointer(qp.ij, 1 << 20).dense(qp.ij, 1 << 11).place(y)
    with pytest.raises(qp.OutOfDeviceMemory, match="addresses"):
        y[0, 0] = 1
