"""``debug=True``: what is checked inside kernels, what a failed check says, and what goes on after it."""

from __future__ import annotations

import itertools
import pickle
import random
import re

import numpy as np
import pytest

import quadpy as qp
from quadpy.errors import (
    KernelAssertionError,
    KernelFault,
    KernelIndexError,
    KernelOverflowError,
    KernelShiftError,
    KernelTypeError,
    KernelZeroDivisionError,
)

f32_1, i32_1, i32_2 = (
    qp.types.ndarray(dtype=qp.f32, ndim=1),
    qp.types.ndarray(dtype=qp.i32, ndim=1),
    qp.types.ndarray(dtype=qp.i32, ndim=2),
)


@pytest.fixture
def debug(init):
    init(debug=True)


def call_and_wait(call, *args):
    call(*args)
    qp.sync()


def fault(error, call, *args, says=None):
    """The exception of a call, which comes at the call or at the next synchronize."""
    with pytest.raises(error, match=says) as caught:
        call_and_wait(call, *args)
    assert isinstance(caught.value, KernelFault)
    qp.sync()  # nothing is left of it
    return caught.value


@qp.kernel
def shift(x: f32_1, y: f32_1, by: qp.i32):
    for i in range(x.shape[0]):
        y[i] = x[i + by]


@qp.kernel
def shift_columns(x: i32_2, by: qp.i32):
    for i, j in x:
        x[i, j] = x[i, j + by] + 1


@pytest.mark.usefixtures("debug")
class TestIndices:
    def test_an_index_past_the_end_is_an_error_with_the_line_the_index_the_extent_and_the_iteration(self):
        x, y = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
        found = fault(KernelIndexError, shift, x, y, 1)
        assert "x[10] is out of range: index 10 of axis 0, which has extent 10" in str(found)
        assert "y[i] = x[i + by]" in str(found)
        assert "in kernel shift, at i = 9" in str(found)
        assert (found.kernel, found.iteration, found.values) == ("shift", {"i": 9}, (10, 10))
        assert found.span.file == __file__

    def test_it_is_an_index_error_a_bounds_error_and_a_quadpy_error(self):
        found = fault(IndexError, shift, np.zeros(4, np.float32), np.zeros(4, np.float32), 9)
        assert isinstance(found, (qp.BoundsError, qp.QuadpyError))

    def test_a_negative_index_does_not_count_from_the_end(self):
        x, y = np.zeros(4, np.float32), np.zeros(4, np.float32)
        assert fault(KernelIndexError, shift, x, y, -1).values == (-1, 4)

    def test_the_axis_that_is_out_of_range_is_named(self):
        found = fault(
            KernelIndexError, shift_columns, np.zeros((3, 4), np.int32), 2, says="of axis 1, which has extent 4"
        )
        assert found.values[1] >= 4
        assert found.iteration["j"] + 2 == found.values[1]

    def test_what_is_in_range_runs(self):
        x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
        shift(x, y, 0)
        assert (y == x).all()

    def test_the_device_is_usable_after_an_error(self):
        x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
        for _ in range(3):
            fault(KernelIndexError, shift, x, y, 1)
            shift(x, y, 0)
            assert (y == x).all()

    def test_nothing_outside_of_the_array_is_written(self):
        whole = np.zeros(30, np.int32)

        @qp.kernel
        def spread(x: i32_1, by: qp.i32):
            for i in x:
                x[i + by] = 7

        for by in (-20, -10, 10, 5, 1000, -1000, 2**31 - 11):
            whole[:] = 0
            fault(KernelIndexError, spread, whole[10:20], by)
            assert (whole[:10] == 0).all()
            assert (whole[20:] == 0).all()

    def test_indices_of_every_type(self):
        @qp.kernel
        def at(x: i32_1, a: qp.i64, b: qp.u64, c: qp.u32, d: qp.i8, which: qp.i32) -> qp.i32:
            found = 0
            if which == 0:
                found = x[a]
            if which == 1:
                found = x[b]
            if which == 2:
                found = x[c]
            if which == 3:
                found = x[d]
            return found

        x = np.arange(200, dtype=np.int32)
        assert [at(x, 3, 4, 5, 6, which) for which in range(4)] == [3, 4, 5, 6]
        values = (2**32 + 1, 2**63 + 1, 2**32 - 1, -1)
        for which, value in enumerate(values):
            assert fault(KernelIndexError, at, x, *values, which).values == (value, 200)

    def test_a_field_with_an_offset_is_told_by_its_own_indices(self):
        field = qp.field(qp.f32, shape=(4, 6), offset=(-2, 10))

        @qp.kernel
        def set_one(i: qp.i32, j: qp.i32):
            field[i, j] = 1.0

        set_one(-2, 15)
        found = fault(KernelIndexError, set_one, -3, 15, says="index -3 of axis 0, which has extent 4 and begins at -2")
        assert found.values == (-3, 15, 4, 6)
        assert "field[-3, 15]" in str(found)

    def test_members_of_structs_in_fields(self):
        points = qp.Struct.field({"mass": qp.f32, "at": qp.types.vector(3, qp.f32)}, shape=5)

        @qp.kernel
        def push(k: qp.i32):
            for i in range(3):
                points[i + k].at[1] += 1.0

        push(2)
        assert fault(KernelIndexError, push, 3).iteration == {"i": 2}

    def test_a_loop_variable_of_an_inner_loop_is_told(self):
        @qp.kernel
        def rows(x: i32_2, n: qp.i32):
            for i in range(x.shape[0]):
                for k in range(n):
                    x[i, k] = 1

        x = np.zeros((1, 8), np.int32)
        rows(x, 8)
        assert fault(KernelIndexError, rows, x, 9).iteration == {"i": 0, "k": 8}

    def test_atomics_and_augmented_assignments(self):
        @qp.kernel
        def count(x: i32_1, bins: i32_1, old: i32_1):
            for i in x:
                old[i] = qp.atomic_add(bins[x[i]], 1)

        @qp.kernel
        def total(x: i32_1, bins: i32_1, at: qp.i32):
            for i in x:
                bins[at] += x[i]

        x, bins, old = np.array([0, 1, 1, 2], np.int32), np.zeros(3, np.int32), np.zeros(4, np.int32)
        count(x, bins, old)
        total(x, bins, 2)
        assert bins.tolist() == [1, 2, 5]
        x[2] = -7
        assert fault(KernelIndexError, count, x, bins, old).values == (-7, 3)
        fault(KernelIndexError, total, x, bins, 3)

    def test_components_of_local_vectors_and_matrices(self):
        @qp.kernel
        def component(i: qp.i32) -> qp.i32:
            v = qp.Vector([10, 20, 30])
            return v[i]

        @qp.kernel
        def entry(i: qp.i32, j: qp.i32) -> qp.i32:
            m = qp.Matrix([[1, 2, 3], [4, 5, 6]])
            m[i, j] = 9
            return m[i, j]

        assert (component(2), component(-3), entry(1, -1)) == (30, 10, 9)
        for i in (3, -4, 2**31 - 1, -(2**31)):
            assert fault(KernelIndexError, component, i, says="extent 3").values == (i,)
        fault(KernelIndexError, entry, 0, 3, says="axis 1")
        fault(KernelIndexError, entry, 2, 0, says="axis 0")

    def test_functions_tell_their_own_line(self):
        @qp.func
        def get(x, i):
            return x[i * 2]

        @qp.kernel
        def run(x: i32_1):
            for i in x:
                x[i] = get(x, i)

        found = fault(KernelIndexError, run, np.zeros(3, np.int32))
        assert "return x[i * 2]" in str(found)
        assert found.kernel == "run"

    def test_code_outside_of_loops(self):
        @qp.kernel
        def around(x: i32_1, k: qp.i32) -> qp.i32:
            first = x[k]
            for i in x:
                x[i] += first
            return x[k]

        x = np.array([1, 2], np.int32)
        assert around(x, 0) == 2
        assert fault(KernelIndexError, around, x, 2).iteration == {}

    def test_an_iteration_ends_where_it_fails_so_that_its_loops_end(self):
        @qp.kernel
        def search(x: i32_1, found: i32_1):
            for i in x:
                j = i
                while x[j] != 7:
                    j += 1
                found[i] = j

        @qp.kernel
        def search_alone(x: i32_1) -> qp.i32:
            j = 0
            while x[j] != 7:
                j += 1
            return j

        x, found = np.array([0, 0, 7, 0], np.int32), np.full(4, -1, np.int32)
        fault(KernelIndexError, search, x, found)
        assert found.tolist()[3] == -1
        assert search_alone(x) == 2
        fault(KernelIndexError, search_alone, np.zeros(5, np.int32))

    def test_empty_arrays(self):
        @qp.kernel
        def first(x: i32_1) -> qp.i32:
            return x[0]

        assert fault(KernelIndexError, first, np.zeros(0, np.int32)).values == (0, 0)


def one(op: str, type: str, load):
    """A kernel that returns ``a op b`` of one type."""
    return load(f"""
        @qp.kernel
        def run(a: qp.{type}, b: qp.{type}) -> qp.{type}:
            return {op}
    """).run


def interesting(type: str, rng: random.Random):
    bits = int(type[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type[0] == "i" else (0, (1 << bits) - 1)
    near = [low, low + 1, high, high - 1, 0, 1, 2, 3, bits - 1, bits]
    chosen = [
        v for v in (*near, *(() if low == 0 else (-1, -2)), *(rng.randint(low, high) for _ in range(4))) if v <= high
    ]
    return chosen, low, high


@pytest.mark.usefixtures("debug")
class TestArithmetic:
    @pytest.mark.parametrize("type", ["i8", "i32", "i64"])
    @pytest.mark.parametrize(
        "op",
        ["a + b", "a - b", "a * b", "a // b", "a % b", "a << b", "a >> b", "-a + 0 * b", "abs(a) + 0 * b", "a ** 3 + 0 * b",
         "a ** (b & 31)"],
    )  # fmt: skip
    def test_signed_integers_agree_with_python_or_raise(self, op, type, load):
        values, low, high = interesting(type, random.Random(op + type))
        bits = int(type[1:])
        run = one(op, type, load)
        for a, b in itertools.islice(itertools.product(values, values), 0, None, 3):
            if ("<<" in op or ">>" in op) and not 0 <= b < bits:
                fault(KernelShiftError, run, a, b)
                continue
            try:
                wanted = eval(op, {"a": a, "b": b})
            except ZeroDivisionError:
                fault(KernelZeroDivisionError, run, a, b, says="by zero")
                continue
            if low <= wanted <= high:
                assert run(a, b) == wanted, (a, b)
            else:
                fault(KernelOverflowError, run, a, b, says=f"overflows {type}")

    @pytest.mark.parametrize("op", ["a + b", "a - b", "a * b"])
    def test_unsigned_integers_wrap(self, op, load):
        run = one(op, "u32", load)
        for a, b in itertools.product((0, 1, 2**31, 2**32 - 1), repeat=2):
            assert run(a, b) == eval(op) % 2**32

    def test_unsigned_division_by_zero(self, load):
        fault(KernelZeroDivisionError, one("a // b", "u32", load), 1, 0)
        fault(ZeroDivisionError, one("a % b", "u8", load), 1, 0)

    @pytest.mark.parametrize("float_type", ["f32", "f64"])
    @pytest.mark.parametrize("type", ["i8", "u8", "i32", "u32", "i64", "u64"])
    def test_casts_of_floats(self, float_type, type, load):
        run = load(f"""
            @qp.kernel
            def run(a: qp.{float_type}) -> qp.{type}:
                return qp.{type}(a)
        """).run
        _, low, high = interesting(type, random.Random(1))
        around = [float(x) for x in (low, high, high + 1, 0, -1, 1)]
        as_float = np.float32 if float_type == "f32" else np.float64
        values = {float(as_float(x)) for a in around for x in (a, a - 0.5, a + 0.5, a - 1, a + 1, 1.5 * a)}
        for value in [*values, float("inf"), float("-inf"), float("nan")]:
            if value == value and abs(value) != float("inf") and low <= int(value) <= high:
                assert run(value) == int(value), value
            else:
                fault(KernelOverflowError, run, value, says=f"does not fit {type}")

    def test_casts_of_integers_to_signed_ones(self, load):
        run = load("""
            @qp.kernel
            def narrow(a: qp.i64) -> qp.i32:
                return qp.i32(a)

            @qp.kernel
            def signed(a: qp.u32) -> qp.i32:
                return qp.i32(a)

            @qp.kernel
            def unsigned(a: qp.i32) -> qp.u32:
                return qp.u32(a)
        """)
        assert (run.narrow(-5), run.signed(7), run.unsigned(-1)) == (-5, 7, 2**32 - 1)
        fault(KernelOverflowError, run.narrow, 2**31, says="2147483648 does not fit i32")
        fault(KernelOverflowError, run.signed, 2**31)

    def test_a_value_that_is_stored_must_fit(self):
        @qp.kernel
        def keep(x: i32_1, v: qp.f32):
            for i in x:
                x[i] = v * 1000.0

        x = np.zeros(2, np.int32)
        keep(x, 1.5)
        assert x.tolist() == [1500, 1500]
        fault(KernelOverflowError, keep, x, 1e10)

    def test_what_is_not_evaluated_is_not_checked(self):
        @qp.kernel
        def safe(a: qp.i32, b: qp.i32) -> qp.i32:
            q = a // b if b != 0 else -1
            if b != 0 and a // b > 10:
                q = 10
            return q

        assert (safe(7, 0), safe(7, 2), safe(70, 2)) == (-1, 3, 10)

    def test_powers_and_random_numbers_do_not_raise(self):
        @qp.kernel
        def powers(a: qp.i32, n: qp.i32) -> qp.i32:
            return a**n + a**3

        @qp.kernel
        def draws(x: f32_1):
            for i in x:
                x[i] = qp.random() + qp.randn()

        assert powers(3, 19) == 3**19 + 27
        draws(np.zeros(100, np.float32))
        qp.sync()


def random_expression(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(["a", "b", "c", str(rng.choice([1, 2, 3, 7, 100, 65536]))])
    left, right = random_expression(rng, depth - 1), random_expression(rng, depth - 1)
    match rng.choice("+-*/%<>n?&"):
        case "/":
            return f"({left} // {right})"
        case "<":
            return f"({left} << {right})"
        case ">":
            return f"({left} >> {right})"
        case "n":
            return f"-({left})"
        case "?":
            return f"({left} if a > {right} else {random_expression(rng, depth - 1)})"
        case op:
            return f"({left} {op} {right})"


class Checked(int):
    """A 32-bit integer whose operators raise what a kernel raises."""

    def __new__(cls, value):
        if not -(2**31) <= value < 2**31:
            raise OverflowError
        return super().__new__(cls, value)

    def __lshift__(self, count):
        return Checked(int(self) << self.count(count))

    def __rshift__(self, count):
        return Checked(int(self) >> self.count(count))

    @staticmethod
    def count(count):
        if not 0 <= count < 32:
            raise ValueError
        return count

    def __neg__(self):
        return Checked(-int(self))


for name in ("add", "sub", "mul", "floordiv", "mod", "and"):
    operator = getattr(int, f"__{name}__")
    setattr(Checked, f"__{name}__", lambda self, other, operator=operator: Checked(operator(self, other)))


class TestRandomExpressions:
    @pytest.mark.parametrize("seed", range(30))
    def test_they_agree_with_python_or_raise_what_it_raises(self, seed, load, debug):
        rng = random.Random(seed)
        text = random_expression(rng, 4)
        tree = re.sub(r"\b(\d+)\b", r"Checked(\1)", text)
        run = load(f"""
            @qp.kernel
            def run(a: qp.i32, b: qp.i32, c: qp.i32) -> qp.i32:
                return {text} + 0 * a
        """).run
        for _ in range(8):
            values = [rng.choice([0, 1, -1, 5, 31, 32, 1000, -(2**31), 2**31 - 1, rng.randint(-9, 40)]) for _ in "abc"]
            try:
                wanted = eval(tree, {"Checked": Checked, **dict(zip("abc", map(Checked, values), strict=True))})
            except (OverflowError, ZeroDivisionError, ValueError) as error:
                fault(type(error), run, *values)
            else:
                assert run(*values) == wanted, (text, values)


@pytest.mark.usefixtures("debug")
class TestAssertions:
    def test_a_message_with_values(self):
        @qp.kernel
        def positive(x: f32_1):
            for i in x:
                assert x[i] > 0, f"x[{i}] is {x[i]:.2f}, {{not}} {x[i]} > 0"

        positive(np.ones(3, np.float32))
        x = np.ones(3, np.float32)
        x[1] = -0.1
        found = fault(KernelAssertionError, positive, x)
        assert found.message == "x[1] is -0.10, {not} -0.10000000149011612 > 0"
        assert isinstance(found, AssertionError)

    def test_without_a_message_the_condition_is_shown(self):
        @qp.kernel
        def small(n: qp.i32):
            assert n < 10

        small(9)
        assert fault(KernelAssertionError, small, 10).message == "assertion failed: n < 10"

    def test_vectors_and_static_values_in_messages(self):
        name = "speed"

        @qp.kernel
        def check(a: qp.f32):
            v = qp.Vector([a, 2.0])
            assert v.norm() < 3.0, f"{name} {v:.1f} is too high"

        check(1.0)
        assert fault(KernelAssertionError, check, 4.0).message == "speed [4.0, 2.0] is too high"

    def test_an_assertion_ends_its_iteration(self):
        @qp.kernel
        def run(x: i32_1):
            for i in x:
                assert i % 2 == 0
                x[i] = 1

        x = np.zeros(6, np.int32)
        fault(KernelAssertionError, run, x)
        assert x.tolist() == [1, 0, 1, 0, 1, 0]

    def test_what_cannot_be_shown_is_refused_with_its_line(self):
        @qp.kernel
        def run(x: i32_1):
            for i in x:
                assert i < 3, f"{x}"

        with pytest.raises(KernelTypeError, match="cannot be printed as a whole"):
            run(np.zeros(2, np.int32))


class TestSwitches:
    def test_without_debug_assertions_do_nothing(self, init):
        init()

        @qp.kernel
        def never(x: i32_1):
            for i in x:
                assert x[i] == 1, "no"
                x[i] = 2

        x = np.zeros(2, np.int32)
        never(x)
        assert x.tolist() == [2, 2]

    def test_a_kernel_may_ask_for_checks_alone_or_decline_them(self, init):
        @qp.kernel(debug=True)
        def checked(a: qp.i32) -> qp.i32:
            assert a == 1
            return a

        @qp.kernel(debug=False)
        def plain(a: qp.i32) -> qp.i32:
            assert a == 1
            return a

        init()
        fault(KernelAssertionError, checked, 2)
        init(debug=True)
        fault(KernelAssertionError, checked, 2)
        assert plain(2) == 2

    def test_a_fault_can_be_pickled_and_raised_elsewhere(self, debug):
        found = fault(KernelIndexError, shift, np.zeros(2, np.float32), np.zeros(2, np.float32), 5)
        again = pickle.loads(pickle.dumps(found))
        assert (str(again), again.iteration, again.values) == (str(found), found.iteration, found.values)


@pytest.mark.usefixtures("debug")
class TestBlocks:
    def test_threads_that_wait_for_each_other_go_on(self):
        @qp.kernel
        def reverse(x: i32_1, y: i32_1, by: qp.i32):
            qp.loop_config(block_dim=32)
            for i in range(64):
                pad = qp.simt.block.SharedArray((32,), qp.i32)
                t = i % 32
                pad[t] = x[i + by]
                qp.simt.block.sync()
                y[i] = pad[31 - t]

        x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
        reverse(x, y, 0)
        assert y.tolist() == [*range(31, -1, -1), *range(63, 31, -1)]
        assert fault(KernelIndexError, reverse, x, y, 1).values == (64, 64)

    def test_shared_arrays_are_checked(self):
        @qp.kernel
        def spill(y: i32_1, by: qp.i32):
            qp.loop_config(block_dim=32)
            for i in range(32):
                pad = qp.simt.block.SharedArray((32,), qp.i32)
                pad[i + by] = i
                qp.simt.block.sync()
                y[i] = pad[i]

        y = np.zeros(32, np.int32)
        spill(y, 0)
        assert y.tolist() == list(range(32))
        found = fault(KernelIndexError, spill, y, 3, says="pad")
        assert found.values[0] >= 32

    def test_loops_between_barriers_end(self):
        @qp.kernel
        def walk(x: i32_1):
            qp.loop_config(block_dim=32)
            for i in range(32):
                pad = qp.simt.block.SharedArray((32,), qp.i32)
                pad[i] = 0
                qp.simt.block.sync()
                j = 0
                while pad[i + j] == 0:
                    j += 1
                qp.simt.block.sync()
                x[i] = j

        fault(KernelIndexError, walk, np.zeros(32, np.int32), says="pad")


@qp.kernel
def count_parallel(first: qp.i32, last: qp.i32, step: qp.i32, x: i32_1):
    for i in range(first, last, step):
        x[i] = 1


@qp.kernel
def count_inner(first: qp.i32, last: qp.i32, step: qp.i32, x: i32_1):
    for i in x:
        for j in range(first, last, step):
            x[i] += j * 0 + 1


@pytest.mark.usefixtures("debug")
@pytest.mark.parametrize(
    ("kernel", "loops"), [(count_parallel, {}), (count_inner, {"i": 0})], ids=["parallel", "inner"]
)
def test_a_range_in_steps_of_0(kernel, loops):
    x = np.zeros(1, np.int32)
    caught = fault(qp.KernelRangeError, kernel, 0, 1, 0, x, says="the step of this range is 0")
    assert isinstance(caught, ValueError)
    assert "range(first, last, step)" in str(caught)
    assert caught.iteration == loops
    kernel(0, 1, 1, x)
    kernel(0, -1, -1, x)
    assert x[0] == (1 if kernel is count_parallel else 2)


def test_without_debug_a_range_in_steps_of_0_runs_nothing(init):
    init()
    x = np.zeros(1, np.int32)
    for kernel in (count_parallel, count_inner):
        kernel(0, 1, 0, x)
    assert x[0] == 0


@qp.func
def square(v):
    return qp.math.dot(v, v)


@qp.kernel
def add_squares(x: i32_1):
    for i in x:
        for j in range(2):
            x[i] += square(qp.Vector([x[i], j]))


@pytest.mark.parametrize("on", ["cpu", "python"])
def test_a_failure_in_quadpys_own_functions_shows_the_line_that_calls_them(init, on):
    init(arch=getattr(qp, on), debug=True)
    found = fault(KernelOverflowError, add_squares, np.full(2, 90000, np.int32), says=r"90000 \* 90000 overflows i32")
    assert (found.span.file, found.span.line) == (__file__, square.source.span.line + 2)
    assert "return qp.math.dot(v, v)" in str(found)
    assert (found.kernel, found.iteration) == ("add_squares", {"i": 0, "j": 0})
    assert fault(KernelOverflowError, square, qp.Vector([90000, 0])).span == found.span
