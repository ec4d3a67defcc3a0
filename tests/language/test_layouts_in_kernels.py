"""Fields in blocks, gradients, and fields whose memory was given back, in kernels."""

import ctypes
import gc
import random
import threading
import weakref

import numpy as np
import pytest

import quadpy as qp

vec3 = qp.types.vector(3, qp.f32)
Particle = qp.types.struct(x=vec3, m=qp.f32, k=qp.i32)


def blocked(dtype, *levels, **options):
    f, node = qp.field(dtype), qp.root
    for axes, extents in levels:
        node = node.dense(axes, extents)
    node.place(f, **options)
    return f


@pytest.mark.parametrize(
    "levels",
    [
        [(qp.ij, (1, 2)), (qp.ij, 2), (qp.ij, 2)],
        [(qp.ij, (3, 2)), (qp.ij, (5, 4))],
        [(qp.i, 4), (qp.j, 3), (qp.i, 2)],
        [(qp.ij, (0, 2)), (qp.ij, 2)],
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [qp.i32, vec3], ids=str)
def test_kernels_see_the_same_fields_in_blocks(levels, dtype):
    f, plain = blocked(dtype, *levels), qp.field(dtype, blocked(dtype, *levels).shape)

    @qp.kernel
    def write():
        for i, j in f:
            f[i, j] = 100 * i + j

    @qp.kernel
    def copy():
        for I in qp.grouped(f):
            plain[I] = f[I] + f.shape[0] * 10000

    write()
    copy()
    n, m = f.shape
    expected = 100 * np.arange(n)[:, None] + np.arange(m)
    found, copied = f.to_numpy(), plain.to_numpy()
    if dtype is vec3:
        found, copied = found[..., 1], copied[..., 1]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(copied, expected + n * 10000)


def test_blocks_with_an_offset_and_other_indices():
    f = blocked(qp.i32, (qp.i, 4), (qp.i, 8), offset=-16)
    out = qp.field(qp.i32, 32, offset=-16)

    @qp.kernel
    def work(shift: qp.i64):
        for i in f:
            f[i] = i
        for i in f:
            out[i] = f[-1 - i + shift - shift] + f[-16] * 0
        f[-16] += 5
        f[qp.Vector([15])] = qp.i32(f.ndim) + f.size

    work(3)
    assert out.to_numpy().tolist() == list(range(15, -17, -1))
    assert (f[-16], f[15]) == (-11, 33)


def test_structs_in_blocks_and_beside_other_fields():
    p, n = Particle.field(), qp.field(qp.i32)
    qp.root.dense(qp.i, 3).dense(qp.i, 5).place(p, n)

    @qp.kernel
    def work():
        for i in p:
            p[i] = Particle(x=[i, 2 * i, 3 * i], m=0.5, k=i)
            n[i] = -i
        for i in n:
            p.x[i].y += p[i].k
            qp.atomic_add(p[i].m, 1.5)

    work()
    assert p[7] == Particle([7, 21, 21], 2, 7)
    assert n.to_numpy().tolist() == [-i for i in range(15)]


def test_a_field_in_blocks_as_a_template_argument():
    a, b = blocked(qp.f32, (qp.i, 2), (qp.i, 4)), qp.field(qp.f32, 8)

    @qp.kernel
    def fill(x: qp.template(), value: qp.f32):
        for i in x:
            x[i] = value + i

    fill(a, 1)
    fill(b, 2)
    assert a.to_numpy().tolist() == list(range(1, 9))
    assert b.to_numpy().tolist() == list(range(2, 10))


def test_a_field_in_blocks_is_no_array_argument():
    a = blocked(qp.f32, (qp.i, 2), (qp.i, 4))

    @qp.kernel
    def fill(x: qp.types.ndarray(dtype=qp.f32, ndim=1)):
        for i in x:
            x[i] = 1

    with pytest.raises((qp.ArgumentError, BufferError), match="in blocks"):
        fill(a)


def test_layouts_at_random():
    chance = random.Random(7)
    for _ in range(6):
        levels = [
            (chance.choice([qp.i, qp.j, qp.ij, qp.jk]), chance.randint(1, 4)) for _ in range(chance.randint(1, 4))
        ]
        f, axes = blocked(qp.i32, *levels), len({a for group, _ in levels for a in group})
        sums = qp.field(qp.i32, ())

        @qp.kernel
        def number():
            for I in qp.grouped(f):  # noqa: B023
                at = 0
                for k in qp.static(range(axes)):  # noqa: B023 - called in the same turn
                    at = at * f.shape[k] + I[k]  # noqa: B023
                f[I] = at  # noqa: B023
            for I in qp.grouped(f):  # noqa: B023
                sums[None] += f[I]  # noqa: B023

        number()
        count = f.size
        np.testing.assert_array_equal(f.to_numpy().ravel(), np.arange(count))
        assert sums[None] == count * (count - 1) // 2


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_80"])
def test_blocks_compile_for_every_gpu(target):
    f, g = (blocked(vec3, (qp.ij, (4, 3)), (qp.ij, (8, 5))) for _ in range(2))

    @qp.kernel
    def move():
        for i, j in f:
            f[i, j] = g[j % 32, i % 15] * 2

    assert move.compile(target).image


# derivatives


def test_kernels_read_and_write_gradients():
    x, y = qp.field(qp.f32, 8, needs_grad=True, needs_dual=True), vec3.field(8, needs_grad=True)

    @qp.func
    def add(a, i):
        a.grad[i] += 1.0

    @qp.kernel
    def work(given: qp.template()):
        for i in x:
            x.grad[i] = 2 * x[i]
            x.dual[i] = x.grad[i] + i
            y.grad[i].y = x.grad[i]
        for i in x.grad:
            add(given, i)
            y.grad[i] += qp.Vector([1.0, 0.0, 0.0])

    x.fill(3)
    work(x)
    assert x.grad.to_numpy().tolist() == [7] * 8
    assert x.dual.to_numpy().tolist() == [6 + i for i in range(8)]
    assert y.grad[5].to_list() == [1, 6, 0]
    assert x.to_numpy().tolist() == [3] * 8


@pytest.mark.parametrize("layout", [qp.Layout.AOS, qp.Layout.SOA])
def test_gradients_of_structs(layout):
    p = Particle.field(6, needs_grad=True, layout=layout)

    @qp.kernel
    def work():
        for i in p:
            p.grad[i].m = 1.0
            p.grad.x[i] = qp.Vector([1.0, 2.0, 3.0])
            p.x.grad[i].z += 4.0
            p[i].m = p.grad[i].x.z + p.m.grad[i]

    work()
    assert (p.grad[2], p[2]) == (Particle([1, 2, 7], 1), Particle(0, 8))


def test_gradients_beside_their_fields():
    x = qp.field(qp.f32)
    qp.root.dense(qp.i, 2).dense(qp.i, 4).place(x, x.grad)

    @qp.kernel
    def work():
        for i in x:
            x[i] = i
            x.grad[i] = -i

    work()
    assert (x.to_numpy() == -x.grad.to_numpy()).all()
    assert x[7] == 7


def test_gradients_of_fields_in_classes():
    @qp.data_oriented
    class Net:
        def __init__(self):
            self.w = qp.field(qp.f32, 4, needs_grad=True)

        @qp.kernel
        def clear(self):
            for i in self.w:
                self.w.grad[i] = 5.0

    net = Net()
    net.clear()
    assert net.w.grad.to_numpy().tolist() == [5] * 4


@pytest.mark.usefixtures("own_root")
def test_a_kernel_that_wants_a_gradient_that_is_not_there():
    x, n = qp.field(qp.f32, 4, name="x"), qp.field(qp.i32, 4)

    @qp.kernel
    def of_floats():
        for i in x:
            x.grad[i] = 1

    @qp.kernel
    def of_integers():
        for i in n:
            n.grad[i] = 1

    for kernel in (of_floats, of_integers):
        with pytest.raises(qp.KernelTypeError, match="grad") as caught:
            kernel()
        assert ".grad[i] = 1" in str(caught.value)
    with pytest.raises(qp.KernelTypeError, match=r"(?s)no grad.*pass needs_grad=True to qp.field"):
        of_floats()
    qp.root.lazy_grad()
    of_floats()
    assert x.grad.to_numpy().tolist() == [1] * 4


# use after destroy


def test_kernels_refuse_fields_that_were_destroyed():
    builder, x, kept = qp.FieldsBuilder(), qp.field(qp.f32, name="x"), qp.field(qp.f32, 4)
    builder.dense(qp.i, 4).place(x)
    tree = builder.finalize()

    @qp.kernel
    def named():
        for i in x:
            x[i] += 1

    @qp.kernel
    def given(f: qp.template()):
        for i in f:
            f[i] += 1

    @qp.kernel
    def other() -> qp.f32:
        s = 0.0
        for i in kept:
            s += kept[i]
        return s

    for _ in range(2):
        named()
        given(x)
        given(kept)
    assert x.to_numpy().tolist() == [4] * 4
    tree.destroy()
    for call in (named, lambda: given(x)):
        for _ in range(2):
            with pytest.raises(qp.QuadpyError, match="'x' was destroyed"):
                call()
    given(kept)
    assert other() == 12


def test_a_kernel_names_an_unplaced_field():
    x = qp.field(qp.f32, name="x")

    @qp.kernel
    def work():
        x[0] = 1

    with pytest.raises(qp.KernelTypeError, match=r"(?s)no memory.*x\[0\] = 1"):
        work()


def test_memory_of_destroyed_fields_is_freed_though_kernels_used_it(arch):
    if arch != "cpu":
        pytest.skip("looks at memory of the host")
    builder, x = qp.FieldsBuilder(), qp.field(qp.f32)
    builder.dense(qp.i, 1 << 22).place(x)

    @qp.kernel
    def work():
        for i in x:
            x[i] = 1

    tree = builder.finalize()
    work()
    alive = weakref.ref(x.storage.view)
    tree.destroy()
    gc.collect()
    assert alive() is None


def test_graphs_keep_the_memory_of_destroyed_fields(arch):
    builder, x, total = qp.FieldsBuilder(), qp.field(qp.f32), qp.field(qp.f32, ())
    builder.dense(qp.i, 64).place(x)
    tree = builder.finalize()

    @qp.kernel
    def work():
        for i in x:
            x[i] += 1
        for i in x:
            total[None] += x[i]

    work()
    qp.sync()
    with qp.create_stream() as stream:
        with qp.graph.capture(stream) as captured:
            work(stream=stream)
        graph = captured.instantiate()
        tree.destroy()
        del builder, tree
        gc.collect()
        junk = [qp.ndarray(qp.f32, 64) for _ in range(50)]
        graph.launch(stream)
        graph.launch(stream)
        stream.synchronize()
    assert total[None] == 64 * (1 + 2 + 3)
    assert not any(each.to_numpy().any() for each in junk)


def test_random_numbers_go_on_after_a_destroy():
    out = qp.field(qp.f32, 64)

    @qp.kernel
    def draw():
        for i in out:
            out[i] = qp.random()

    draw()
    first = out.to_numpy()
    builder, x = qp.FieldsBuilder(), qp.field(qp.f32)
    builder.dense(qp.i, 4).place(x)
    builder.finalize().destroy()
    draw()
    assert not np.array_equal(first, out.to_numpy())


def test_addresses_of_blocks():
    """A stencil over blocks reads the neighbours that the indices name."""
    f, g = blocked(qp.f32, (qp.ij, 4), (qp.ij, 8)), qp.field(qp.f32, (32, 32))
    f.from_numpy(np.random.default_rng(0).random((32, 32), np.float32))

    @qp.kernel
    def blur():
        for i, j in g:
            if i > 0 and i < 31 and j > 0 and j < 31:
                g[i, j] = f[i - 1, j] + f[i + 1, j] + f[i, j - 1] + f[i, j + 1]

    blur()
    a = f.to_numpy()
    np.testing.assert_array_equal(g.to_numpy()[1:-1, 1:-1], a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    if f.device is None:
        assert ctypes.c_float.from_address(f.pointer + 4 * (8 * 8 * (1 * 4 + 2) + 3 * 8 + 5)).value == a[11, 21]


def test_indices_of_blocks_are_checked_in_debug_mode(init):
    init(debug=True)
    f = blocked(qp.i32, (qp.i, 4), (qp.i, 8), offset=-16)

    @qp.kernel
    def work(at: qp.i32):
        f[at] = 1

    def store(at):
        work(at)
        qp.sync()

    store(15)
    store(-16)
    for outside in (16, -17, 1 << 30):
        with pytest.raises(qp.BoundsError, match=str(outside)):
            store(outside)
    assert f.to_numpy().sum() == 2


def test_threads_that_use_a_field_while_it_is_destroyed():
    @qp.kernel
    def add(f: qp.template()):
        for i in f:
            f[i] += 1.0

    for _ in range(8):
        builder, x = qp.FieldsBuilder(), qp.field(qp.f32, name="x")
        builder.dense(qp.i, 1 << 16).place(x)
        tree, begun, wrong = builder.finalize(), threading.Event(), []
        add(x)

        def use(x=x, begun=begun, wrong=wrong):
            try:
                for _ in range(300):
                    add(x)
                    begun.set()
            except qp.QuadpyError as error:
                wrong += [error] if "'x' was destroyed" not in str(error) else []

        threads = [threading.Thread(target=use) for _ in range(2)]
        for each in threads:
            each.start()
        begun.wait(60)
        tree.destroy()
        junk = [qp.ndarray(qp.f32, 1 << 16) for _ in range(4)]
        for each in threads:
            each.join(60)
        assert wrong == []
        assert not any(each.to_numpy().any() for each in junk)
        with pytest.raises(qp.QuadpyError, match="'x' was destroyed"):
            add(x)
