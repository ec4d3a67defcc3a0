"""Quantised fields: what a store keeps, and that the other numbers of a word stay as they are."""

import pickle

import numpy as np
import pytest

import quadpy as qp
from quadpy.core.target import parse_target
from quadpy.jit.offline import compile_with_asm

quant = qp.types.quant
N = 64
FLOATS = np.array(
    [0, -0.0, 1e-30, 1, -1, 1.5, 2.01, -2.01, 0.3, -0.3, 7.7, -7.7, 1e9, -1e9, np.inf, -np.inf, np.nan], "f4"
)


def packed(*types, bits=32, shared=False, shape=N):
    """Fields of these types that share words."""
    pack, fields = qp.BitpackedFields(max_num_bits=bits), [qp.field(each) for each in types]
    pack.place(*fields, shared_exponent=shared)
    qp.root.dense(qp.i, shape).place(pack)
    return fields


@qp.kernel
def put(x: qp.template(), values: qp.types.ndarray()):
    for i in values:
        x[i] = values[i]


@qp.kernel
def get(x: qp.template(), values: qp.types.ndarray()):
    for i in values:
        values[i] = x[i]


def stored(x, values):
    """What is left of values that a kernel stores; the host reads the same, and stores the same."""
    put(x, values)
    found = np.empty_like(values)
    get(x, found)
    np.testing.assert_array_equal(x.to_numpy()[: len(values)], found)
    x.fill(0)
    x[: len(values)] = values
    np.testing.assert_array_equal(x.to_numpy()[: len(values)], found)
    assert [x[i] for i in range(3)] == found[:3].tolist()
    return found


@pytest.mark.parametrize(("bits", "signed"), [(1, False), (5, True), (5, False), (13, True), (31, False), (32, True)])
def test_integers_wrap(bits, signed):
    values = np.array([0, 1, -1, 15, 16, 31, 32, -16, -17, 2**31 - 1, -(2**31)], "i4")
    (x,) = packed(quant.int(bits, signed))
    wrapped = values.astype("i8") % (1 << bits)
    expected = np.where(signed & (wrapped >> (bits - 1) == 1), wrapped - (1 << bits), wrapped)
    np.testing.assert_array_equal(stored(x, values), expected)


def test_integers_of_64_bits():
    (x, y) = packed(quant.int(40, compute=qp.i64), quant.int(24, False), bits=64)
    values = np.array([2**39, -(2**39), 2**39 - 1, -5], "i8")
    assert stored(x, values).tolist() == [-(2**39), -(2**39), 2**39 - 1, -5]
    assert not y.to_numpy().any()


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("bits", "scale"), [(8, 1 / 64), (8, 0.1), (21, 2.0**-19), (32, 2.0**-28)])
def test_fixed_point_numbers_are_the_nearest(bits, scale, signed):
    (x,) = packed(quant.fixed(bits, signed, scale=scale))
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    with np.errstate(over="ignore"):
        steps = np.nan_to_num(FLOATS * np.float32(1 / scale), nan=0).astype(float)
    rounded = np.trunc((steps + np.copysign(0.5, steps)).astype("f4" if bits < 32 else "f8"))
    expected = np.clip(rounded, low, high).astype("f4") * np.float32(scale)
    np.testing.assert_array_equal(stored(x, FLOATS), expected)


def numbers_of(exp, frac, signed):
    """The numbers of a type of floats, from its definition."""
    digits, bias = frac - signed, 2 ** (exp - 1) - 1
    mantissas = 1 + np.arange(2**digits) / 2**digits
    sizes = np.concatenate([[0], *(mantissas * 2.0 ** (e - bias) for e in range(1, 2**exp))])
    return np.concatenate([-sizes[:0:-1], sizes]) if signed else sizes


@pytest.mark.parametrize(("exp", "frac"), [(5, 10), (4, 4), (2, 3), (6, 9)])
@pytest.mark.parametrize("signed", [True, False])
def test_floats_are_the_nearest(exp, frac, signed):
    (x,) = packed(quant.float(exp, frac, signed))
    known = numbers_of(exp, frac, signed)
    rng = np.random.default_rng(3)
    values = np.concatenate([FLOATS, rng.normal(0, 3, N - len(FLOATS))]).astype("f4")
    finite = np.nan_to_num(values, nan=0).astype(float)
    least = known[known > 0][0]
    normal = np.where(abs(finite) < least * (1 - 2.0 ** -(frac - signed + 2)), 0, finite)
    nearest = known[np.argmin(abs(known[:, None] - normal[None]), axis=0)]
    found = stored(x, values)
    np.testing.assert_array_equal(abs(found - finite)[np.isfinite(values)], abs(nearest - finite)[np.isfinite(values)])
    assert set(found.tolist()) <= set(known.tolist())
    assert not np.signbit(found[found == 0]).any()


def test_floats_with_eight_bits_of_exponent_are_like_f32():
    (x,) = packed(quant.float(8, 24))
    np.testing.assert_array_equal(stored(x, FLOATS), FLOATS)


@pytest.mark.parametrize("signed", [True, False])
def test_a_shared_exponent_is_that_of_the_largest(signed):
    kind = quant.float(5, 9, signed)
    x, y, z = packed(kind, kind, kind, shared=True)
    rng, digits = np.random.default_rng(5), 9 - signed
    values = (np.exp2(rng.uniform(-6, 6, (3, N))) * (rng.choice([-1, 1], (3, N)) if signed else 1)).astype("f4")
    values[1, :8] = 0
    for field, each in zip((x, y, z), values, strict=True):
        put(field, each)
    step = 2.0 ** (np.floor(np.log2(abs(values).max(0))) - digits + 1)
    for field, each in zip((x, y, z), values, strict=True):
        # A number is rounded each time that one of the three is stored.
        assert (abs(field.to_numpy() - each) <= 1.6 * step).all()
    x.fill(0)
    y.fill(0)
    values = values[2]
    z.from_numpy(values)
    assert (abs(z.to_numpy() - values) <= abs(values) * 2.0**-digits).all()
    assert not x.to_numpy().any()


@pytest.mark.parametrize("where", ["own", "python"])
@pytest.mark.parametrize("debug", [False, True])
def test_other_numbers_of_a_word_stay(init, where, debug):
    init(debug=debug, **({"arch": qp.python} if where == "python" else {}))
    a, b, c = packed(quant.int(7), quant.fixed(12, max_value=4.0), quant.float(5, 8))
    order = np.random.default_rng(1).permutation(N).astype("i4")

    @qp.kernel
    def run(at: qp.types.ndarray(qp.i32, 1)):
        for i in at:
            a[at[i]] = at[i] - 32
        for i in range(3 * N):
            if i % 3 == 0:
                b[at[i // 3]] = (at[i // 3] - 32) / 8
            elif i % 3 == 1:
                c[at[i // 3]] = at[i // 3] * 2.0
            else:
                a[at[i // 3]] += 1

    run(order)
    numbers = np.arange(N)
    assert a.to_numpy().tolist() == (numbers - 31).tolist()
    assert b.to_numpy().tolist() == np.minimum((numbers - 32) / 8, 4 - 2.0**-9).tolist()
    assert c.to_numpy().tolist() == (numbers * 2.0).tolist()


@pytest.mark.parametrize("where", ["own", "python"])
def test_updates_are_atomic(init, where):
    init(**({"arch": qp.python} if where == "python" else {}))
    a, b, c, d = packed(
        quant.int(12), quant.int(8, False), quant.int(6), quant.fixed(30, max_value=4096.0), bits=64, shape=2
    )
    olds = qp.field(qp.i32, 1000)

    @qp.kernel
    def run():
        a[1] = -5
        for i in range(1000):
            olds[i] = qp.atomic_add(a[0], 1)
            b[0] |= 1 << (i % 8)
            qp.atomic_max(c[0], i % 25)
            d[0] += 0.5

    run()
    assert sorted(olds.to_numpy().tolist()) == list(range(1000))
    assert (a[0], a[1], b[0], c[0], d[0]) == (1000, -5, 255, 24, 500.0)


def test_atomics_on_one_thread_give_old_values():
    a, b = packed(quant.int(9), quant.float(6, 10), shape=1)

    @qp.kernel
    def run() -> qp.types.vector(5, qp.f32):
        a[0], b[0] = 7, 1.5
        first = qp.atomic_exchange(a[0], 9)
        second = qp.atomic_cas(a[0], 9, 11)
        third = qp.atomic_cas(a[0], 9, 12)
        fourth = qp.atomic_sub(b[0], 0.25)
        b[0] *= 2.0
        b[0] /= 4.0
        return qp.Vector([first, second, third, fourth, b[0]], dt=qp.f32)

    assert list(run()) == [7, 9, 11, 1.5, 0.625]
    assert a[0] == 11


def vectors():
    x, f = qp.Vector.field(3, quant.fixed(20, max_value=2.0)), qp.Matrix.field(2, 2, quant.fixed(16, max_value=4.0))
    first, second, third = (qp.BitpackedFields(max_num_bits=n) for n in (64, 32, 32))
    first.place(x)
    second.place(f.get_scalar_field(0, 0), f.get_scalar_field(0, 1))
    third.place(f.get_scalar_field(1, 0), f.get_scalar_field(1, 1))
    qp.root.dense(qp.i, 4).dense(qp.i, 8).place(first, second, third)
    return x, f


def test_vectors_and_matrices_and_their_components():
    x, f = vectors()
    corner = f.get_scalar_field(1, 1)

    @qp.kernel
    def run():
        for i in x:
            x[i] = [i / 32, -i / 32, 1.0]
            x[i].y += 0.25
            x[i][i % 3] -= 0.5
            f[i] = [[1.0, 2.0], [3.0, -i / 16]]
            f[i][0, 1] *= 0.5
            f[i] += f[i]
        for i in corner:
            corner[i] += 0.25

    run()
    i = np.arange(32)
    expected = np.stack([i / 32, -i / 32 + 0.25, np.ones(32)], 1)
    expected[i, i % 3] -= 0.5
    np.testing.assert_array_equal(x.to_numpy(), expected)
    assert f[3].to_numpy().tolist() == [[2.0, 2.0], [4 - 2.0**-13, -0.125]]
    assert (x.shape, f.shape, corner.shape, x[5].y) == ((32,), (32,), (32,), -5 / 32 + 0.25)
    x[5].y = 1.5
    f[5] = [[1, 0], [0, 1]]
    assert (x[5].y, corner[5], f[5][0, 0]) == (1.5, 1.0, 1.0)
    assert corner is f.get_scalar_field(1, 1)


def test_arrays_in_words():
    bit, four, two = qp.field(quant.int(1, False)), qp.field(quant.int(4)), qp.field(quant.fixed(8, max_value=1.0))
    qp.root.dense(qp.i, 3).quant_array(qp.i, 32, max_num_bits=32).place(bit)
    qp.root.dense(qp.ij, (2, 3)).quant_array(qp.ij, (4, 2), max_num_bits=32).place(four, offset=(-4, 10))
    qp.root.dense(qp.i, 3).quant_array(qp.j, 8, max_num_bits=64).place(two)
    alone = qp.field(quant.int(8))
    qp.root.quant_array(qp.i, 4, max_num_bits=32).place(alone)
    alone[1], alone[2:] = 5, [6, -7]
    assert alone.to_numpy().tolist() == [0, 5, 6, -7]

    @qp.kernel
    def run():
        for i in bit:
            bit[i] = i % 3 == 0
        for i, j in four:
            four[i, j] = i - j
        for i, j in two:
            two[i, j] = -(i * 8 + j) / 32
        for i in range(96):
            four[i % 8 - 4, 10 + i % 6] += 1

    run()
    assert bit.to_numpy().tolist() == [int(i % 3 == 0) for i in range(96)]
    i, j = np.mgrid[-4:4, 10:16]
    hits = np.zeros((8, 6), int)
    for n in range(96):
        hits[n % 8, n % 6] += 1
    expected = (i - j + hits + 8) % 16 - 8
    np.testing.assert_array_equal(four.to_numpy(), expected)
    np.testing.assert_array_equal(two.to_numpy(), -(np.arange(24).reshape(3, 8)) / 32)
    assert (four.shape, two.shape, four[-4, 10], four[3, 15]) == ((8, 6), (3, 8), expected[0, 0], expected[7, 5])
    four[0, 11] = 5
    four[-4:0, 12:] = -1
    expected[4, 1], expected[:4, 2:] = 5, -1
    np.testing.assert_array_equal(four.to_numpy(), expected)


def test_words_in_sparse_trees():
    a, b = qp.field(quant.int(20)), qp.field(quant.int(12))
    block, pack = qp.root.pointer(qp.i, 8), qp.BitpackedFields(max_num_bits=32)
    pack.place(a, b)
    block.dense(qp.i, 4).place(pack)
    x, where = qp.field(quant.int(20)), qp.root.dynamic(qp.i, 100)
    single = qp.BitpackedFields(max_num_bits=32)
    single.place(x)
    where.place(single)

    @qp.kernel
    def run() -> qp.i32:
        b[9] = 3
        a[30] += 4
        found = 0
        for i in a:
            found += i
        for i in range(10):
            x.append(i * i)
        for i in x:
            found += x[i] * 1000
        return found

    assert run() == 8 + 9 + 10 + 11 + 28 + 29 + 30 + 31 + 285_000
    assert (b[9], a[30], qp.FieldsBuilder().empty) == (3, 4, True)
    a[0] = 1
    assert run() == 0 + 1 + 2 + 3 + 156 + 285_000 * 2
    a.fill(7)
    assert a.to_numpy().tolist() == [7] * 4 + [0] * 4 + [7] * 4 + [0] * 16 + [7] * 4
    block.deactivate_all()
    assert not a.to_numpy().any()
    assert not b.to_numpy().any()

    @qp.kernel
    def wrong():
        qp.append(where, [], 3)

    with pytest.raises(qp.KernelTypeError, match="quantised"):
        wrong()


def test_graphs_replay_with_quantised_fields():
    a, b = packed(quant.int(20), quant.fixed(12, max_value=8.0))

    @qp.kernel(graph=True)
    def twice():
        for i in a:
            a[i] += 1
        for i in a:
            b[i] = a[i] / 4

    for _ in range(3):
        twice()
    with qp.create_stream() as stream:
        with qp.graph.capture(stream) as g:
            twice(stream=stream)
        run = g.instantiate()
        run.launch(stream)
        stream.synchronize()
    assert a.to_numpy().tolist() == [4] * N
    assert b.to_numpy().tolist() == [1.0] * N


def test_host_access():
    a, b = packed(quant.int(20), quant.fixed(12, max_value=8.0))
    a.from_numpy(np.arange(N, dtype="i4"))
    b[3:9:2] = [1, 2, 3]
    b[-1] = 4
    a[:4] += 10
    assert a[:6].tolist() == [10, 11, 12, 13, 4, 5]
    assert b.to_numpy().nonzero()[0].tolist() == [3, 5, 7, N - 1]
    other = packed(quant.int(20))[0]
    other.copy_from(a)
    assert other.to_numpy().tolist() == a.to_numpy().tolist()
    assert (a.dtype, b.dtype, a.nbytes, a.quant.bits) == (qp.i32, qp.f32, N * 20 // 8, 20)
    assert np.asarray(b).dtype == np.float32
    with pytest.raises(qp.BoundsError):
        a[N]
    with pytest.raises(BufferError, match="copy"):
        a.__dlpack__()
    with pytest.raises(TypeError, match="from_numpy"):
        pickle.dumps(a)
    with pytest.raises(qp.ArgumentError, match="does not fit"):
        a[2] = 2**40


def test_debug_finds_indices(init):
    init(debug=True)
    a, _ = packed(quant.int(20), quant.int(12))

    @qp.kernel
    def leave(n: qp.i32):
        for i in range(n):
            a[i] = 1

    with pytest.raises(qp.KernelIndexError, match="a"):  # noqa: PT012 - the call, or the wait for it
        leave(N + 1)
        qp.sync()  # on a GPU, only now


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("for i in range(65):\n        x[i] = i", "index 64 of x, which is out of range: x has shape"),
        ("for i in range(65):\n        s.own[i] += i", "index 64 of s.own, which is out of range: s.own has"),
        ("for i in range(65):\n        v[i] = [1, 2]", "index 64 of v, which is out of range: v has shape"),
        ("for i in range(65):\n        y[i] = x[i]", r"of x/y, which is out of range(.|\n)*if i < x.shape\[0\]"),
    ],
)
def test_messages_name_the_users_field(body, names, load):
    m = load(
        f"{KERNELS}\nclass S: pass\ns = S()\ns.own = qp.field(q.int(5))\nv = qp.Vector.field(2, q.int(5))\n"
        "more = qp.BitpackedFields(max_num_bits=32)\nmore.place(s.own, v)\nqp.root.dense(qp.i, 64).place(more)\n"
        f"@qp.kernel\ndef k():\n    {body}\n"
    )
    with pytest.raises(qp.BoundsError, match=names):
        m.k()


def test_the_hazard_checker_names_the_users_field(load):
    m = load(
        f"{KERNELS}\n@qp.kernel\ndef use(out: qp.types.ndarray(qp.i32, 1)):\n    for i in out:\n        out[i] = x[i]"
    )
    with qp.hazards.check() as found, qp.create_stream() as one, qp.create_stream() as other:
        m.apart(stream=one)
        with pytest.warns(qp.HazardWarning, match="read after write of x:"):
            m.use(np.zeros(8, np.int32), stream=other)
    assert "words" not in str(found.possible[0])


KERNELS = """
q = qp.types.quant
x, y = qp.field(q.int(20)), qp.field(q.int(12))
pack = qp.BitpackedFields(max_num_bits=32)
pack.place(x, y)
qp.root.dense(qp.i, 64).place(pack)

@qp.kernel
def apart():
    for i in x:
        x[i] = i
        y[i] += 1

@qp.kernel
def anywhere(at: qp.types.ndarray(qp.i32, 1)):
    for i in at:
        x[at[i]] = i
"""


@pytest.mark.parametrize("target", ["cpu", "gfx942", "sm_90"])
def test_only_stores_that_may_meet_are_atomic(load, target):
    m = load(KERNELS)
    swaps = {"cpu": "cmpxchg", "gfx942": "cmpswap", "sm_90": ".cas."}[target]
    assert swaps not in compile_with_asm(m.apart, parse_target(target), {}).asm
    assert swaps in compile_with_asm(m.anywhere, parse_target(target), {}).asm


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: quant.int(33), "bits=33 must be an integer from 1 to 32"),
        (lambda: quant.fixed(33), "from 1 to 32"),
        (lambda: quant.fixed(8, max_value=0), "must be positive"),
        (lambda: quant.float(9, 10), "exp=9 must be an integer from 1 to 8"),
        (lambda: quant.float(5, 10, compute=qp.f64), "compute in f32"),
        (lambda: qp.BitpackedFields(16), "16 is not 32 or 64"),
        (lambda: packed(quant.int(20), quant.int(13)), "33 bits, but max_num_bits is 32"),
        (lambda: packed(quant.int(5), quant.int(5), shared=True), "share one"),
        (lambda: packed(quant.float(5, 5), shared=True), "at least two"),
        (lambda: qp.field(quant.int(5), 8), "takes no shape"),
        (lambda: qp.root.dense(qp.i, 3).place(qp.field(quant.int(5))), "is quantised"),
        (lambda: qp.BitpackedFields(32).place(qp.field(qp.i32)), "not a quantised field"),
        (lambda: qp.ndarray(quant.int(5), 3), "BitpackedFields"),
        (lambda: qp.field(quant.int(5))[0], "has no memory"),
        (lambda: qp.field(quant.float(5, 5), needs_grad=True), "needs_grad"),
        (lambda: qp.root.quant_array(qp.i, 9, max_num_bits=32).place(qp.field(quant.int(4))), "9 numbers of 4 bits"),
        (lambda: qp.root.quant_array(qp.i, 2, max_num_bits=32).place(qp.field(quant.float(5, 5))), "integers and fixed"),
        (lambda: qp.root.quant_array(qp.i, 2, max_num_bits=32).dense(qp.i, 2), "only a field"),
    ],
)  # fmt: skip
def test_what_is_refused(make, message):
    with pytest.raises(qp.ArgumentError, match=message):
        make()
