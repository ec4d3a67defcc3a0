"""Sparse trees: pointer, bitmasked and dynamic nodes, and what kernels do to their cells."""

import itertools
import random

import numpy as np
import pytest

import quadpy as qp
from quadpy.codegen.frames import Iterations, Privatised, Reduced
from quadpy.codegen.plans.frame import cpu_frame
from quadpy.ir import nodes as ir
from quadpy.lang.arguments import Options
from quadpy.lang.source import FunctionSource
from quadpy.lang.trace import trace_kernel

vec2 = qp.types.vector(2, qp.f32)
Ball = qp.types.struct(x=vec2, n=qp.i32)


def tree(*levels, dtype=qp.i32, **options):
    """The nodes from the outermost on, and the field in the last."""
    node, nodes, x = qp.root, [], qp.field(dtype)
    for kind, axes, extents in levels:
        node = getattr(node, kind)(axes, extents)
        nodes.append(node)
    node.place(x, **options)
    return *nodes, x


def run_all(kernel, *args):
    kernel(*args)
    qp.sync()


def is_on(node):
    return node.activity.to_numpy()


BLOCKS = ("pointer", qp.ij, 4), ("dense", qp.ij, 2)
PIXELS = ("pointer", qp.ij, 4), ("bitmasked", qp.ij, 2)


def test_writes_activate_and_loops_visit_what_is_active():
    block, _, x = tree(*BLOCKS)
    seen, cells = qp.field(qp.i32, x.shape), qp.field(qp.i32, block.shape)

    @qp.kernel
    def run():
        x[2, 3] = 2
        x[5, 6] += 3
        for i, j in x:
            seen[i, j] = 10 + x[i, j]
        for I in qp.grouped(block):
            cells[I] += 1

    run()
    expected = np.zeros((8, 8), int)
    expected[2:4, 2:4] = expected[4:6, 6:8] = 10
    expected[2, 3], expected[5, 6] = 12, 13
    np.testing.assert_array_equal(seen.to_numpy(), expected)
    assert cells.to_numpy().nonzero()[0].tolist() == [1, 2]
    assert is_on(block)[1, 1] == is_on(block)[2, 3] == 1
    assert is_on(block).sum() == 2


def test_each_element_of_a_bitmasked_node_is_active_alone():
    block, pixel, x = tree(*PIXELS)
    seen = qp.field(qp.i32, x.shape)

    @qp.kernel
    def run() -> qp.i32:
        total = 0
        x[2, 3] = 0
        qp.atomic_max(x[5, 6], 4)
        for i, j in x:
            seen[i, j] += 1
        for i, j in pixel:
            total += 100 * i + j
        return total

    assert run() == 203 + 506
    assert np.argwhere(seen.to_numpy()).tolist() == [[2, 3], [5, 6]]
    assert is_on(block).sum() == 2
    block.deactivate_all()
    assert run() == 203 + 506
    assert (seen.to_numpy()[[2, 5], [3, 6]] == 2).all()


def test_a_read_activates_nothing_and_gives_zero():
    block, _, x = tree(*BLOCKS)

    @qp.kernel
    def read() -> qp.i32:
        total = 0
        for i, j in qp.ndrange(8, 8):
            total += x[i, j]
        return total

    assert read() == 0
    assert not is_on(block).any()


def test_queries_and_changes_by_hand():
    block, _, x = tree(*BLOCKS)
    found = qp.field(qp.i32, block.shape)

    @qp.kernel
    def look(node: qp.template()):
        for i, j in qp.ndrange(4, 4):
            found[i, j] = qp.is_active(node, [i, j])

    @qp.kernel
    def change():
        qp.activate(block, [0, 1])
        qp.activate(block, qp.Vector([3, 3]))
        x[7, 7] = 5
        qp.deactivate(block, [3, 3])

    change()
    look(block)
    assert np.argwhere(found.to_numpy()).tolist() == [[0, 1]]
    assert x[7, 7] == 0
    qp.deactivate_all_snodes()
    look(x.parent(2))
    assert not found.to_numpy().any()


def test_deactivating_clears_all_that_is_inside():
    outer = qp.root.pointer(qp.i, 4)
    inner = outer.bitmasked(qp.ij, (2, 3))
    lists = outer.dynamic(qp.j, 5)
    x, v, word, balls = qp.field(qp.i32), qp.field(vec2), qp.field(qp.i32), Ball.field()
    inner.place(x)
    inner.place(v, offset=(10, -1))
    lists.place(word, balls)

    @qp.kernel
    def fill():
        for i, j in qp.ndrange(8, 3):
            x[i, j] = 1
            v[i + 10, j - 1] = [2.0, 3.0]
        for i in range(4):
            for k in range(i + 1):
                word[i].append(7)
                balls[i, k] = Ball(x=[1.0, 2.0], n=3)

    @qp.kernel
    def drop():
        for i in range(1, 3):
            qp.deactivate(outer, i)

    fill()
    drop()
    rows = np.array([1, 1, 0, 0, 0, 0, 1, 1])
    assert is_on(outer).tolist() == [1, 0, 0, 1]
    np.testing.assert_array_equal(is_on(inner), rows[:, None].repeat(3, 1))
    np.testing.assert_array_equal(x.to_numpy(), rows[:, None].repeat(3, 1))
    np.testing.assert_array_equal(v.to_numpy()[..., 1], 3 * rows[:, None].repeat(3, 1))
    assert is_on(lists).tolist() == [1, 0, 0, 4]
    assert word.to_numpy().sum(1).tolist() == [7, 0, 0, 28]
    assert balls.to_numpy()["n"].sum(1).tolist() == [3, 0, 0, 12]


def test_a_loop_visits_the_cells_that_were_active_when_it_began():
    pixel, x = tree(("bitmasked", qp.i, 64))

    @qp.kernel
    def spread():
        for i in x:
            if i + 1 < 64:
                x[i + 1] = x[i] + 1

    @qp.kernel
    def spread_in_order():
        qp.loop_config(serialize=True)
        for i in x:
            if i + 1 < 64:
                x[i + 1] = x[i] + 1

    x[0] = 1
    spread()
    assert is_on(pixel).sum() == 2
    spread_in_order()
    assert is_on(pixel).sum() == 3
    assert x.to_numpy()[:4].tolist() == [1, 2, 3, 0]


def test_a_cell_can_leave_during_the_loop_over_it_and_come_back():
    pixel, x = tree(("bitmasked", qp.i, 16))
    visits = qp.field(qp.i32, ())
    x.from_numpy(np.arange(1, 17, dtype=np.int32))

    @qp.kernel
    def halve():
        for i in x:
            visits[None] += 1
            if i % 2:
                qp.deactivate(x.parent(), i)
            if i % 4 == 1:
                x[i] = 50

    halve()
    assert visits[None] == 16
    expected = [0 if i % 4 == 3 else 50 if i % 4 == 1 else i + 1 for i in range(16)]
    assert x.to_numpy().tolist() == expected
    assert is_on(pixel).tolist() == [int(e > 0) for e in expected]


def test_lists():
    n = 16
    x = tree(("dense", qp.i, n), ("dynamic", qp.j, n))[-1]
    length, places = qp.field(qp.i32, n), qp.field(qp.i32, n)

    @qp.kernel
    def make():
        for i in range(n):
            for j in range(i):
                places[i] += qp.append(x.parent(), i, j * j)
            length[i] = qp.length(x.parent(), i)

    @qp.kernel
    def total() -> qp.i32:
        found = 0
        for i, j in x:
            found += x[i, j] + 1000
        return found

    make()
    expected = np.where(np.arange(n) < np.arange(n)[:, None], np.arange(n) ** 2, 0)
    np.testing.assert_array_equal(x.to_numpy(), expected)
    assert length.to_numpy().tolist() == list(range(n))
    assert places.to_numpy().tolist() == [i * (i - 1) // 2 for i in range(n)]
    assert total() == expected.sum() + 1000 * 120

    @qp.kernel
    def change():
        for i in range(n):
            if i % 2 == 0:
                x[i].deactivate()
            x[i].append(-i)
            x[i, 9] = 1
            length[i] = x[i].length()

    change()
    assert length.to_numpy().tolist() == [max(i % 2 * i + 1, 10) for i in range(n)]
    assert x.to_numpy()[8, :2].tolist() == [-8, 0]
    assert x.to_numpy()[9, 9] == 1


def test_one_list_of_structs_to_which_all_append():
    balls = Ball.field()
    qp.root.dynamic(qp.i, 1000, chunk_size=32).place(balls)
    seen = qp.field(qp.i32, 300)

    @qp.kernel
    def collect(count: qp.i32) -> qp.i32:
        balls.deactivate()
        for i in range(count):
            if i % 3 == 0:
                balls.append(Ball(x=[1.0, 2.0], n=i))
        for i in range(balls.length()):
            seen[balls[i].n] += 1
        return balls.length()

    for count in (300, 30):
        seen.fill(0)
        assert collect(count) == count // 3
        assert seen.to_numpy()[::3].sum() == seen.to_numpy().sum() == count // 3
    assert (balls.to_numpy()["n"][10:] == 0).all()


def test_a_full_list_stays_as_it_is(init):
    lists, x = tree(("dynamic", qp.i, 4))

    @qp.kernel
    def push(count: qp.i32) -> qp.i32:
        last = 0
        qp.loop_config(serialize=True)
        for i in range(count):
            last = x.append(i + 1)
        return last

    assert push(3) == 2
    assert push(3) == 4
    assert x.to_numpy().tolist() == [1, 2, 3, 1]
    assert lists.activity[None] == 4
    init(debug=True)
    with pytest.raises(qp.KernelIndexError, match="this list is full: it has 4 elements"):
        run_all(push, 1)


def test_a_member_of_structs_is_not_a_method_of_lists():
    Word = qp.types.struct(length=qp.i32)
    words = Word.field()
    qp.root.dynamic(qp.i, 8).place(words)

    @qp.kernel
    def run() -> qp.i32:
        words.append(Word(length=5))
        return words[0].length + qp.length(words.parent())

    assert run() == 6


def test_rescaled_indices_and_parents():
    outer = qp.root.pointer(qp.ij, (3, 3))
    inner = outer.pointer(qp.ij, (2, 2))
    pixel = inner.bitmasked(qp.ij, (2, 2))
    x, line = qp.field(qp.i32), qp.field(qp.i32)
    pixel.place(x)
    outer.dense(qp.k, 5).place(line)

    @qp.kernel
    def run() -> qp.types.vector(8, qp.i32):
        a, b = qp.rescale_index(x, outer, [7, 3]), qp.rescale_index(inner, outer, [3, 1])
        c, d = qp.rescale_index(outer, x, qp.Vector([1, 2])), qp.rescale_index(line, inner, [1, 2, 4])
        return [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]]

    assert list(run()) == [1, 0, 1, 0, 4, 8, 2, 4]
    assert x.parent() is pixel
    assert x.snode.parent(3) is outer
    assert x.parent(4) is qp.root
    assert qp.root.parent() is None
    dense = qp.field(qp.f32, (3, 4))
    assert dense.parent().shape == dense.snode.shape == (3, 4)


def test_the_host_reads_and_writes_like_kernels():
    block, pixel, x = tree(*PIXELS, dtype=vec2)
    x[3, 2].y = 5
    assert is_on(block)[1, 1] == is_on(pixel)[3, 2] == 1
    assert is_on(pixel).sum() == 1
    x.fill(7)
    assert x.to_numpy().sum() == 14
    x[0, 4:6] = 1
    assert np.argwhere(is_on(pixel)).tolist() == [[0, 4], [0, 5], [3, 2]]
    _, other, y = tree(*PIXELS, dtype=vec2)
    y.copy_from(x)
    assert np.argwhere(is_on(other)).tolist() == [[0, 4], [0, 5], [3, 2]]
    y.from_numpy(x.to_numpy())
    assert is_on(other).all()
    lists, word = tree(("dense", qp.i, 3), ("dynamic", qp.j, 8))[1:]
    word[1, 4] = 2
    word.fill(3)
    assert is_on(lists).tolist() == [0, 5, 0]
    assert word.to_numpy().sum(1).tolist() == [0, 15, 0]
    balls = Ball.field()
    qp.root.pointer(qp.i, 4).dense(qp.i, 2).place(balls)
    balls[5] = {"x": [1, 2], "n": 3}
    balls.fill({"n": 4})
    assert balls.to_numpy()["n"].tolist() == [0, 0, 0, 0, 4, 4, 0, 0]


def test_fill_in_a_kernel_changes_active_cells_only():
    block, _, x = tree(*BLOCKS)

    @qp.kernel
    def run():
        x.fill(3)

    x[0, 0] = 1
    run()
    assert x.to_numpy().sum() == 12
    assert is_on(block).sum() == 1


def test_bad_uses_say_what_is_wrong():
    block, _, x = tree(*PIXELS)
    dense, _ = tree(("dense", qp.i, 4))
    z = tree(("dense", qp.i, 4), ("dynamic", qp.j, 4))[-1]
    two = qp.root.dynamic(qp.i, 4)
    two.place(qp.field(qp.i32), qp.field(qp.f32))

    def message(body):
        with pytest.raises(qp.CompilationError) as caught:
            qp.kernel(body)()
        return str(caught.value)

    def wrong_count():
        qp.activate(block, [1, 2, 3])

    def of_dense():
        qp.deactivate(dense, 1)

    def no_node():
        qp.is_active(3, 1)

    def no_list():
        qp.append(block, [1, 2], 3)

    def floats():
        qp.activate(block, [0.5, 1.0])

    def several():
        qp.append(two, [], 3)

    def too_far():
        x.parent(5).shape  # noqa: B018 - the access raises

    def list_arguments():
        z[1].append()

    def list_index():
        z[1, 2].append(1)

    def barriers():
        for _ in qp.grouped(x):
            qp.simt.block.sync()

    expected = {
        wrong_count: "activate takes 2 indices here, not 3",
        of_dense: "the cells of a dense node are always active",
        no_node: "is_active takes a node of a layout, or a field, not int",
        no_list: "append takes a dynamic node, not a pointer one",
        floats: "an index must be an integer, not f32",
        several: "append needs a list of one field, but this node has 2",
        too_far: "there are fewer than 5 nodes around this one",
        list_arguments: "append of a list takes 1 argument",
        list_index: "append of a list takes 1 index here, not 2",
        barriers: "a loop over active cells has no blocks",
    }
    for body, text in expected.items():
        assert text in message(body), body.__name__
    for wrong, text in (
        (lambda: qp.root.dynamic(qp.i, 4).dense(qp.k, 2), "a dynamic node can hold only fields"),
        (lambda: qp.root.dense(qp.j, 2).dynamic(qp.i, 2), "one axis, which comes after those of the outer nodes"),
        (lambda: qp.root.dynamic(qp.ij, 2), "one axis"),
    ):
        with pytest.raises(qp.ArgumentError, match=text):
            wrong()


def test_debug_checks_the_index_of_a_cell(init):
    block, x = tree(("bitmasked", qp.i, 4))
    init(debug=True)

    @qp.kernel
    def look(at: qp.i32):
        qp.activate(block, at)
        x[at] = 1

    look(3)
    with pytest.raises(qp.KernelIndexError, match="index 4"):
        run_all(look, 4)


def test_too_much_memory_is_refused_with_a_reason():
    x = qp.field(qp.f64)
    qp.root.pointer(qp.ijk, 1 << 14).dense(qp.ijk, 4).place(x)
    with pytest.raises(qp.OutOfDeviceMemory) as caught:
        x[0, 0, 0] = 1
    assert "inactive cells of sparse trees also need memory" in caught.value.hint


class Model:
    """The same tree, as Python has it: the active cells of each node as sets."""

    def __init__(self, extents, kinds):
        self.inside = [int(np.prod(extents[k + 1 :])) for k in range(len(extents))]
        self.kinds, self.on, self.values = kinds, [set() for _ in extents], {}

    def write(self, at, value):
        self.values[at] = value
        for inside, on in zip(self.inside, self.on, strict=True):
            on.add(at // inside)

    def drop(self, level, cell):
        inside = self.inside[level]
        self.values = {at: v for at, v in self.values.items() if at // inside != cell}
        for below in range(level, len(self.on)):
            ratio = inside // self.inside[below]
            self.on[below] = {c for c in self.on[below] if c // ratio != cell}

    def active(self, size):
        sparse = [level for level, kind in enumerate(self.kinds) if kind != "dense"]
        on, inside = self.on[sparse[-1]], self.inside[sparse[-1]]
        return [at for at in range(size) if at // inside in on]


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_against_a_model(seed):
    rng = random.Random(seed)
    extents = [rng.choice([2, 3, 4]) for _ in range(3)]
    kinds = [rng.choice(["pointer", "bitmasked", "dense"]) for _ in range(3)]
    kinds[rng.randrange(3)] = rng.choice(["pointer", "bitmasked"])
    *nodes, x = tree(*((kind, qp.i, extent) for kind, extent in zip(kinds, extents, strict=True)))
    size, model = x.shape[0], Model(extents, kinds)
    seen = qp.field(qp.i32, size)

    @qp.kernel
    def write(at: qp.i32, value: qp.i32):
        x[at] = value

    @qp.kernel
    def add(at: qp.i32):
        x[at] += 1

    @qp.kernel
    def drop(node: qp.template(), cell: qp.i32):
        qp.deactivate(node, cell)

    @qp.kernel
    def look():
        for i in x:
            seen[i] = 1

    for step in itertools.count(1):
        at = rng.randrange(size)
        level = rng.choice([k for k, kind in enumerate(kinds) if kind != "dense"])
        match rng.randrange(4):
            case 0:
                write(at, step)
                model.write(at, step)
            case 1:
                add(at)
                model.write(at, model.values.get(at, 0) + 1)
            case 2:
                x[at] = -step
                model.write(at, -step)
            case _:
                cell = at // model.inside[level]
                drop(nodes[level], cell)
                model.drop(level, cell)
        if step % 10 == 0:
            assert x.to_numpy().tolist() == [model.values.get(i, 0) for i in range(size)]
            seen.fill(0)
            look()
            assert seen.to_numpy().nonzero()[0].tolist() == model.active(size)
        if step == 100:
            break


def test_loops_go_cell_by_cell_with_the_numbers_of_their_indices():
    """Random numbers, indices with an offset, and cells of several levels: what a loop over all indices gives."""
    outer = qp.root.pointer(qp.ij, (2, 3))
    node, plain = outer.pointer(qp.j, 2).dense(qp.ij, (4, 2)), qp.field(qp.f32, (8, 12), offset=(-3, 5))
    x = qp.field(qp.f32)
    node.place(x, offset=(-3, 5))

    @qp.kernel
    def draw_all():
        for i, j in plain:
            plain[i, j] = i * 100 + j + qp.random()

    @qp.kernel
    def draw_active():
        for i, j in x:
            x[i, j] = i * 100 + j + qp.random()

    @qp.kernel
    def total() -> qp.f64:
        found = qp.f64(0.0)
        for I in qp.grouped(x):
            found += x[I]
        return found

    qp.init(arch=qp.cfg.arch, random_seed=7, cpu_max_num_threads=2)
    draw_all()
    x[-3, 5] = x[4, 16] = x[1, 9] = 1
    qp.init(arch=qp.cfg.arch, random_seed=7, cpu_max_num_threads=2)
    draw_active()
    active = is_on(node.parent()).repeat(4, 0).repeat(2, 1).astype(bool)
    assert active.sum() == 3 * 8
    np.testing.assert_array_equal(x.to_numpy(), np.where(active, plain.to_numpy(), 0))
    assert total() == pytest.approx(x.to_numpy().astype(float).sum(), rel=1e-12)


TWO_LEVELS = [
    [("pointer", qp.i, 7), ("pointer", qp.i, 5)],
    [("pointer", qp.i, 3), ("bitmasked", qp.i, 4), ("dense", qp.i, 6)],
    [("pointer", qp.ij, (3, 5)), ("pointer", qp.ij, 4)],
    [("pointer", qp.ij, (2, 3)), ("dense", qp.j, 2), ("bitmasked", qp.ij, (3, 2)), ("dense", qp.i, 5)],
    [("dense", qp.i, 3), ("pointer", qp.ij, (2, 3)), ("pointer", qp.i, 3), ("pointer", qp.j, 4), ("dense", qp.ij, 2)],
    [("pointer", qp.ijk, (2, 1, 3)), ("pointer", qp.ijk, (1, 3, 2)), ("dense", qp.ijk, 2)],
    [("bitmasked", qp.i, 4), ("pointer", qp.j, 9), ("pointer", qp.i, 2)],
    [("pointer", qp.i, 1), ("pointer", qp.i, 5), ("dense", qp.i, 2)],
    [("dense", qp.ij, 1), ("bitmasked", qp.ij, (4, 1)), ("dense", qp.ij, (2, 1))],
]


@pytest.mark.parametrize("init_options", [{}, {"cpu_max_num_threads": 2}, {"debug": True}], ids=str)
@pytest.mark.parametrize("levels", TWO_LEVELS, ids=lambda levels: "-".join(kind for kind, *_ in levels))
def test_several_levels_are_visited_level_by_level(levels, init_options, init):
    """What a loop visits, changes and sums, and what it finds while its body adds and drops cells."""
    init(**init_options)
    *nodes, x = tree(*levels, dtype=qp.f32)
    sparse = [node for node, (kind, *_) in zip(nodes, levels, strict=True) if kind != "dense"]
    inner = sparse[-1]
    random_numbers = np.random.default_rng(3)
    for _ in range(4):
        x[tuple(int(random_numbers.integers(extent)) for extent in x.shape)] = 1
    visits, steps = qp.field(qp.i32, x.shape), qp.field(qp.i32, ())

    @qp.kernel
    def visit():
        for I in qp.grouped(x):
            visits[I] += 1
            qp.atomic_add(steps[None], 1)

    @qp.kernel
    def sums() -> qp.f32:
        found = qp.f32(0.0)
        for _ in qp.grouped(x):
            found += 1.0
        return found

    @qp.kernel
    def move():
        for I in qp.grouped(x):
            qp.deactivate(inner, qp.rescale_index(x, inner, I))
            x[I * 0] = 2.0
            visits[I] += 1

    active = np.zeros(x.shape, bool)
    cells = is_on(inner).astype(bool)
    for index in np.ndindex(*x.shape):
        active[index] = cells[tuple(
            at * cells.shape[axis] // extent for axis, (at, extent) in enumerate(zip(index, x.shape, strict=True))
        )]  # fmt: skip
    run_all(visit)
    np.testing.assert_array_equal(visits.to_numpy(), active)
    assert steps[None] == active.sum() == sums()
    visits.fill(0)
    if "debug" not in init_options:  # iterations of one cell race for it
        run_all(move)
        np.testing.assert_array_equal(visits.to_numpy(), active)  # those of the beginning, each once
    visits.fill(0)
    sparse[0].deactivate_all()
    run_all(visit)
    assert not visits.to_numpy().any()


def frame_of(kernel):
    """How the CPU runs the only parallel loop of ``kernel``."""
    traced = trace_kernel(FunctionSource(kernel), {}, Options()).kernel
    (task,) = (task for task in traced.tasks if isinstance(task, ir.ParallelTask))
    return cpu_frame(traced, task)


def test_an_inactive_outer_cell_is_asked_once():
    """Its inner cells are not looked at: one test skips all iterations in it, whatever they do."""
    *_, x = tree(("pointer", qp.ij, 8), ("pointer", qp.ij, 4), ("dense", qp.ij, 2))
    total, bins = qp.field(qp.f32, ()), qp.field(qp.i32, 4)

    @qp.kernel
    def update():
        for i, j in x:
            x[i, j] = 2

    @qp.kernel
    def to_field():
        for i, j in x:
            total[None] += x[i, j]

    @qp.kernel
    def returned() -> qp.i32:
        most, found = 0, 0
        for I in qp.grouped(x):
            found += x[I]
            qp.atomic_max(most, x[I])
        return found + most

    @qp.kernel
    def histogram():
        for i, j in x:
            bins[x[i, j] & 3] += 1

    kinds = {update: Iterations, to_field: Reduced, returned: Reduced, histogram: Privatised}
    for kernel, kind in kinds.items():
        frame = frame_of(kernel)
        assert isinstance(frame, kind)
        assert [each.depth for each in frame.guard.guards] == [1, 2]


def test_only_the_elements_of_a_list_are_looked_at():
    """Its length bounds the row; so does such a condition in a plain loop, unless an iteration may change it."""
    x, alone, n = qp.field(qp.i32), qp.field(qp.i32), qp.field(qp.i32, 16)
    qp.root.pointer(qp.i, 16).dynamic(qp.j, 1000).place(x)
    qp.root.dynamic(qp.i, 1000).place(alone)

    @qp.kernel
    def update():
        for i, j in x:
            x[i, j] = 2

    @qp.kernel
    def returned() -> qp.i32:
        found = 0
        for i in alone:
            found += alone[i]
        return found

    @qp.kernel
    def plain() -> qp.i32:
        found = 0
        for i, j in qp.ndrange(16, (3, 1000)):
            if j < n[i]:
                found += i
        return found

    @qp.kernel
    def changing():
        for i, j in qp.ndrange(16, 1000):
            if j < n[i]:
                n[i] -= 1

    for kernel in (update, returned, plain):
        assert frame_of(kernel).guard.bound is not None
    assert frame_of(changing).guard is None


@pytest.mark.parametrize("type", [qp.i8, qp.i32, qp.i64, qp.u16, qp.u64], ids=repr)
def test_rows_end_where_their_condition_says(type):
    """For bounds below, among and above the iterations, and at both ends of their type."""
    ends = np.iinfo(repr(type).replace("qp.", "").replace("i", "int").replace("u", "uint"))
    bounds = [ends.min, 0, 5, 6, 90, 127, ends.max]
    shape = 7, len(bounds), 127
    n, seen = qp.field(type, len(bounds)), qp.field(qp.i32, shape)
    n.from_numpy(np.array(bounds, ends.dtype))

    @qp.kernel
    def run() -> qp.f32:
        found = qp.f32(0)
        for k, i, j in qp.ndrange(7, len(bounds), (5, 127)):
            if type(j) < n[i]:
                found += qp.f32(1)
                seen[k, i, j] += 1
        return found

    @qp.kernel
    def alone(bound: type) -> qp.i32:
        found = 0
        for j in range(type(5), type(127)):
            if j < bound:
                found += 1
        return found

    got = run()
    expected = (np.arange(127) >= 5) & (np.arange(127) < np.array(bounds, object)[:, None])
    np.testing.assert_array_equal(seen.to_numpy(), np.broadcast_to(expected, shape))
    assert got == 7 * expected.sum()
    assert [alone(bound) for bound in bounds] == expected.sum(1).tolist()


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_sum_over_active_cells_has_the_bits_of_one_over_all(step):
    """What is skipped would have added nothing: elements of inactive cells are 0 and count as -0.0."""
    *_, x = tree(("pointer", qp.ij, (9, 5)), ("bitmasked", qp.ij, (3, 4)), ("dense", qp.ij, (2, 5)), dtype=qp.f32)
    values = np.random.default_rng(step).normal(size=x.shape).astype(np.float32)
    given = qp.field(qp.f32, x.shape)
    given.from_numpy(values)

    @qp.kernel
    def fill():
        for i, j in given:
            if (i * 100 + j) % step == 0:
                x[i, j] = given[i, j]

    @qp.kernel
    def active() -> qp.f32:
        found = qp.f32(0)
        for i, j in x:
            found += x[i, j]
        return found

    @qp.kernel
    def every() -> qp.f32:
        found = qp.f32(0)
        for a, b, c in qp.ndrange(45, 12, 10):
            found += x[(a // 5 * 3 + b // 4) * 2 + c // 5, (a % 5 * 4 + b % 4) * 5 + c % 5]
        return found

    fill()
    assert active() == every()


def test_a_row_is_asked_once_only_where_no_iteration_changes_the_answer():
    """Nested loops whose body is under a condition of the outer index: the condition may change on the way."""
    flags, seen = qp.field(qp.i32, 8), qp.field(qp.i32, (8, 16))

    @qp.kernel
    def unchanged():
        for i, j in qp.ndrange(8, 16):
            if flags[i] > 0:
                seen[i, j] += 1

    @qp.kernel
    def changed():
        for i, j in qp.ndrange(8, 16):
            if flags[i] > 0:
                seen[i, j] += 1
                if j == 15:
                    flags[i] = 0

    flags.from_numpy(np.arange(8, dtype=np.int32) % 2)
    unchanged()
    changed()
    assert seen.to_numpy().sum(1).tolist() == [0, 32] * 4
    unchanged()
    assert seen.to_numpy().sum(1).tolist() == [0, 32] * 4


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "sm_80"])
def test_they_compile_for_gpus(target):
    outer = qp.root.pointer(qp.ij, 4)
    x, word = qp.field(qp.f32), qp.field(qp.i32)
    outer.dense(qp.ij, 4).place(x)
    outer.dynamic(qp.k, 8).place(word)
    total = qp.field(qp.f32, ())

    @qp.kernel
    def run():
        for i, j in x:
            total[None] += x[i, j]
        for i, j in x:
            x[(i + 4) % 16, j] = 1.0
            word[i // 4, j // 4].append(i)
        for i, j in outer:
            if word[i, j].length() > 3:
                qp.deactivate(outer, [i, j])

    assert run.compile(target).image


@pytest.mark.parametrize("options", [{"debug": True}, {"fast_math": True}], ids=str)
def test_neighbours_share_cells_without_a_race(init, options):
    """Iterations that activate one cell are no race, and checks of indices know the loop's own indices."""
    init(**options)
    block, _, x = tree(*BLOCKS)

    @qp.kernel
    def run():
        for i, j in qp.ndrange(8, 8):
            x[i, j] = i
        for i, j in x:
            x[i, j] += j

    run()
    qp.sync()
    assert is_on(block).all()
    np.testing.assert_array_equal(x.to_numpy(), np.add.outer(np.arange(8), np.arange(8)))

    @qp.kernel
    def beyond():
        for i, j in x:
            x[i, j + 1] = 0

    if options.get("debug"):
        with pytest.raises(qp.KernelIndexError, match="j = 7"):
            run_all(beyond)


def test_trees_without_cells():
    node = qp.root.pointer(qp.ij, (0, 2))
    lists = node.dynamic(qp.k, 3)
    x, word = qp.field(qp.i32), qp.field(qp.i32)
    node.dense(qp.ij, 2).place(x)
    lists.place(word)

    @qp.kernel
    def run() -> qp.i32:
        found = 0
        for i, j in x:
            found += 1 + x[i, j]
        for i, j, k in word:
            found += word[i, j, k]
        for i, j in node:
            qp.deactivate(node, [i, j])
            found += qp.rescale_index(node, x, [i, j])[0] + word[i, j].length()
        return found

    assert x.shape == (0, 4)
    assert run() == 0
    x.fill(3)
    node.deactivate_all()
    x.from_numpy(np.zeros((0, 4), np.int32))
