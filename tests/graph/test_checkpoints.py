"""Graph kernels that pause where a flag is set, and go on from there with other arguments, on every backend."""

from __future__ import annotations

import dataclasses
import enum
import os
import pickle
import textwrap
import threading

import numpy as np
import pytest
from backends import backends

import quadpy as qp
from quadpy.runtime.device.devices import current_device, open_device

A = qp.types.ndarray
I32, FLAG = A(qp.i32, 1), A(qp.i32, 0)
EMULATED = "ROCJITSU_RUNTIME_DIR" in os.environ
WIDTH = 40


class Stage(enum.IntEnum):
    GROW = 10
    LAST = 20


def ways():
    """The backends that are here: the CPU also interpreted and with checks; GPUs in one launch, as graphs, and in chunks."""
    found = ["cpu", "cpu debug", "python"]
    for name in backends()[1:]:
        loops = "loops" in open_device(name).driver.graphs.features
        found += [f"{name} one launch", f"{name} graph", *([f"{name} chunks"] if loops else [])]
    return found


@pytest.fixture(scope="module", autouse=True, params=ways())
def way(request):
    """How graph kernels run: ``fuse`` of the decorator."""
    name, _, how = request.param.partition(" ")
    qp.init(arch=name, cpu_max_num_threads=2, debug=how == "debug")
    with pytest.MonkeyPatch.context() as patch:
        if how == "chunks":
            graphs = current_device().driver.graphs
            patch.setattr(graphs, "features", graphs.features - {"loops"})
        yield {"one launch": True}.get(how, False)
    qp.init(arch=qp.cpu)


def kernel(function, way, **options):
    return qp.kernel(graph=True, checkpoints=True, fuse=way, **options)(function)


def array(values):
    values = np.asarray(values, np.int32)
    found = qp.ndarray(qp.i32, values.shape)
    found.from_numpy(values)
    return found


def collect(found: I32, count: FLAG, full: FLAG, left: FLAG):
    """In each round as many numbers as rounds are left are appended; if there is no room, none."""
    while qp.graph.do_while(left):
        for i in found:
            found[i] += 1000
        with qp.checkpoint(Stage.GROW, yield_on=full):
            full[()] = count[()] + left[()] > found.shape[0]
            for i in range(left[()]):
                if full[()] == 0:
                    found[count[()] + i] = left[()]
        count[()] += left[()]
        left[()] -= 1


@pytest.mark.parametrize("rounds", [1, 3] if EMULATED else [1, 3, 8, 20])
def test_an_array_grows_while_the_kernel_is_paused(way, rounds):
    collecting = kernel(collect, way)
    found, count, full, left = array([0] * 2), array(0), array(0), array(rounds)
    status = collecting(found, count, full, left)
    pauses = 0
    while status.yielded:
        assert status.checkpoint is Stage.GROW
        pauses += 1
        found = array([*found.to_numpy(), *[0] * len(found.to_numpy())])
        full[None] = 0
        status = collecting.resume(found, count, full, left, from_checkpoint=status.checkpoint)
    assert status.checkpoint is None
    want = [1000 * (k - 1) + k for k in range(rounds, 0, -1) for _ in range(k)]
    np.testing.assert_array_equal(found.to_numpy()[: len(want)], want)
    assert (left[None], count[None]) == (0, len(want))
    assert pauses == max(0, int(np.ceil(np.log2(len(want) / 2))))


def parts(x: I32, flags: I32, a: FLAG, b: FLAG, outer: FLAG, inner: FLAG):
    """Which parts run, and how often; ``flags`` has what ``a`` and ``b`` are to be set to."""
    x[0] += 1
    with qp.checkpoint(1, a):
        for _ in range(1):
            x[1] += 1
    while qp.graph.do_while(outer):
        x[2] += 1
        inner[()] += 2
        while qp.graph.do_while(inner):
            x[3] += 1
            with qp.checkpoint(yield_on=b, cp_id=2):
                x[4] += 1
                b[()] = flags[0]
            x[5] += 1
            inner[()] -= 1
        x[6] += 1
        outer[()] -= 1
    with qp.checkpoint(3, yield_on=a):
        x[7] += 1
    x[8] += 1


def run_parts(way, resumed=None, a=0, pauses=0, outer=2, inner=0):
    running = kernel(parts, way)
    x, flags = array([0] * 9), array([pauses])
    rest = array(a), array(0), array(outer), array(inner)
    found = running(x, flags, *rest) if resumed is None else running.resume(x, flags, *rest, from_checkpoint=resumed)
    return found.checkpoint, list(x.to_numpy()), [each[None] for each in rest]


def test_without_a_pause_all_parts_run(way):
    assert run_parts(way) == (None, [1, 1, 2, 4, 4, 4, 2, 1, 1], [0, 0, 0, 0])


def test_parts_before_the_checkpoint_are_skipped(way):
    assert run_parts(way, resumed=1) == (None, [0, 1, 2, 4, 4, 4, 2, 1, 1], [0, 0, 0, 0])
    # In the middle of the inner loop, with two rounds of each left; later rounds run from their beginning.
    assert run_parts(way, resumed=2, inner=2) == (None, [0, 0, 1, 3, 4, 4, 2, 1, 1], [0, 0, 0, 0])
    assert run_parts(way, resumed=3) == (None, [0, 0, 0, 0, 0, 0, 0, 1, 1], [0, 0, 2, 0])


def test_parts_after_a_pause_do_not_run(way):
    assert run_parts(way, a=1) == (1, [1, 1, 0, 0, 0, 0, 0, 0, 0], [1, 0, 2, 0])
    assert run_parts(way, pauses=7) == (2, [1, 1, 1, 1, 1, 0, 0, 0, 0], [0, 7, 2, 2])
    assert run_parts(way, resumed=3, a=-1) == (3, [0, 0, 0, 0, 0, 0, 0, 1, 0], [-1, 0, 2, 0])


def test_it_pauses_again_until_the_flag_is_reset(way):
    running = kernel(parts, way)
    x, rest = array([0] * 9), (array([0]), array(1), array(0), array(1), array(0))
    status = running(x, *rest)
    for _ in range(3):
        assert status.checkpoint == 1
        status = running.resume(x, *rest, from_checkpoint=status.checkpoint)
    rest[1][None] = 0
    status = running.resume(x, *rest, from_checkpoint=1)
    assert (status.yielded, x[1]) == (False, 5)


def heavy(x: I32, sums: I32, stop: FLAG, left: FLAG):
    with qp.checkpoint(Stage.GROW, yield_on=stop):
        while qp.graph.do_while(left):
            total = 0
            for i in x:
                total += x[i]
            sums[0] = total
            with qp.graph.parallel_context():
                with qp.graph.parallel():
                    for i in range(20):
                        x[i] += 1
                with qp.graph.parallel():
                    for i in range(20, 40):
                        x[i] += 2
            left[()] -= 1
    qp.loop_config(block_dim=32)
    for i in range(64):
        shared = qp.simt.block.SharedArray(32, qp.i32)
        shared[i % 32] = i
        qp.simt.block.sync()
        sums[1 + i] = shared[31 - i % 32]
    with qp.checkpoint(Stage.LAST, yield_on=stop):
        for i in x:
            sums[65] += x[i]


def test_loops_sums_sections_and_barriers(way):
    """A checkpoint around a loop with sums and sections; blocks that meet behind a gate."""
    running = kernel(heavy, way)
    x, sums, stop, left = array([1] * WIDTH), array([0] * 66), array(1), array(3)
    status = running(x, sums, stop, left)
    assert (status.checkpoint, left[None], sums[0]) == (Stage.GROW, 0, 40 + 2 * 60)
    np.testing.assert_array_equal(x.to_numpy(), [4] * 20 + [7] * 20)
    assert not sums.to_numpy()[1:].any()
    stop[None] = 0
    status = running.resume(x, sums, stop, left, from_checkpoint=Stage.LAST)
    assert (status.yielded, sums[65]) == (False, 220)
    left[None] = 1
    assert not running.resume(x, sums, stop, left, from_checkpoint=Stage.GROW).yielded
    np.testing.assert_array_equal(x.to_numpy(), [5] * 20 + [9] * 20)
    np.testing.assert_array_equal(sums.to_numpy()[1:65], [32 * (i // 32) + 31 - i % 32 for i in range(64)])
    assert sums[0] == 220


# labels and flags


def simple(x: I32, stop: FLAG):
    with qp.checkpoint(Stage.LAST, yield_on=stop):
        for i in x:
            x[i] += 1
    for i in x:
        x[i] *= 10


def test_a_status_tells_what_happened(way):
    running = kernel(simple, way)
    x, stop = array([1, 2]), array(1)
    status = running(x, stop)
    assert isinstance(status, qp.GraphStatus)
    assert (status.yielded, status.checkpoint) == (True, Stage.LAST)
    assert repr(status) == f"GraphStatus(yielded=True, checkpoint={Stage.LAST!r})"
    stop[None] = 0
    later = running.resume(x=x, stop=stop, from_checkpoint=20)  # as IntEnum compares
    assert (repr(later), status.checkpoint) == ("GraphStatus(yielded=False)", Stage.LAST)
    np.testing.assert_array_equal(x.to_numpy(), [30, 40])
    assert not any(running(x, stop).yielded for _ in range(3))


def test_labels_of_closures_and_modules(way):
    first, second = 7, -3

    def run(x: I32, stop: FLAG):
        with qp.checkpoint(first, stop):
            x[0] += 1
        with qp.checkpoint(second, stop):
            x[1] += 1

    running, x, stop = kernel(run, way), array([0, 0]), array(1)
    assert running(x, stop).checkpoint == 7
    assert running.resume(x, stop, from_checkpoint=-3).checkpoint == -3
    assert list(x.to_numpy()) == [1, 1]


def test_checkpoints_that_are_left_out_at_compile_time(way):
    def run(x: I32, stop: FLAG, both: qp.template()):
        if qp.static(both):
            with qp.checkpoint(1, stop):
                x[0] += 1
        with qp.checkpoint(2, stop):
            x[1] += 1

    running, x, stop = kernel(run, way), array([0, 0]), array(1)
    assert running(x, stop, False).checkpoint == 2
    assert running(x, stop, True).checkpoint == 1
    assert running.resume(x, stop, True, from_checkpoint=2).checkpoint == 2


def test_a_kernel_without_checkpoints_is_done(way):
    def run(x: I32):
        for i in x:
            x[i] += 1

    x = array([0])
    running = kernel(run, way)
    assert not running(x).yielded
    with pytest.raises(qp.ArgumentError, match="run has no checkpoint 1"):
        running.resume(x, from_checkpoint=1)
    assert x[0] == 1


@dataclasses.dataclass
class Work:
    x: I32
    stop: FLAG
    left: FLAG


def test_flags_and_conditions_in_dataclasses(way):
    def run(work: Work):
        while qp.graph.do_while(work.left):
            with qp.checkpoint(1, yield_on=work.stop):
                for i in work.x:
                    work.x[i] += 1
            work.left[()] -= 1

    running = kernel(run, way)
    work = Work(array([0, 0]), array(1), array(3))
    assert running(work).yielded
    work.stop[None] = 0
    larger = Work(array([*work.x.to_numpy(), 5]), work.stop, work.left)
    assert not running.resume(larger, from_checkpoint=1).yielded
    np.testing.assert_array_equal(larger.x.to_numpy(), [4, 4, 8])


def test_methods(way):
    @qp.data_oriented
    class Solver:
        def __init__(self):
            self.x, self.stop, self.left = array([0, 0]), array(1), array(2)

        @qp.kernel(graph=True, checkpoints=True, fuse=way)
        def run(self, *, by: qp.i32 = 1):
            while qp.graph.do_while(self.left):
                with qp.checkpoint(Stage.GROW, yield_on=self.stop):
                    for i in self.x:
                        self.x[i] += by
                for _ in range(1):
                    self.left[()] -= 1

    one, two = Solver(), Solver()
    assert one.run(by=2).yielded
    assert two.run().checkpoint is Stage.GROW
    one.stop[None] = 0
    one.x = array([1, 1, 1])
    assert not one.run.resume(by=5, from_checkpoint=Stage.GROW).yielded
    np.testing.assert_array_equal(one.x.to_numpy(), [11, 11, 11])
    np.testing.assert_array_equal(two.x.to_numpy(), [1, 1])


def test_random_numbers_in_loops(way):
    def run(x: A(qp.f32, 1), stop: FLAG, left: FLAG):
        while qp.graph.do_while(left):
            for i in x:
                x[i] = qp.random()
            with qp.checkpoint(1, yield_on=stop):
                for i in x:
                    x[i] += qp.random()
            left[()] -= 1

    running, x, stop, left = kernel(run, way), qp.ndarray(qp.f32, WIDTH), array(1), array(2)
    assert running(x, stop, left).yielded
    before = x.to_numpy()
    assert 0 <= before.min() < before.max() < 2
    stop[None] = 0
    assert not running.resume(x, stop, left, from_checkpoint=1).yielded
    assert not np.isin(x.to_numpy(), before).all()


# captures, streams, threads, processes


def test_captured_calls(way):
    running, x, stop = kernel(simple, way), array([1, 2]), array(0)
    with qp.graph.capture() as graph:
        status = running(x, stop)
    with graph.instantiate() as run:
        run.launch()
        assert not status.yielded
        stop[None] = 1
        run.launch()
        assert status.checkpoint is Stage.LAST
        np.testing.assert_array_equal(x.to_numpy(), [21, 31])
        stop[None] = 0
        assert not running.resume(x, stop, from_checkpoint=status.checkpoint).yielded
        np.testing.assert_array_equal(x.to_numpy(), [220, 320])
        run.launch()  # each launch starts at the beginning
        assert not status.yielded
        np.testing.assert_array_equal(x.to_numpy(), [2210, 3210])


def test_a_captured_resumption(way):
    running, x, stop = kernel(parts, way), array([0] * 9), array(0)
    rest = (array([0]), stop, array(0), array(1), array(0))
    with qp.graph.capture() as graph:
        status = running.resume(x, *rest, from_checkpoint=3)
    with graph.instantiate() as run:
        run.launch()
        run.launch()
        assert (status.yielded, list(x.to_numpy())) == (False, [0] * 7 + [2, 2])


def test_a_status_cannot_be_read_in_a_capture(way):
    running, x, stop = kernel(simple, way), array([1, 2]), array(0)
    with pytest.raises(qp.CaptureError, match="reading an array"), qp.graph.capture():
        assert running(x, stop).yielded


def test_replayed_functions(way):
    running, x, stop = kernel(simple, way), array([0, 0]), array(0)

    @qp.graph.replay
    def step():
        return running(x, stop)

    for number in range(3):
        assert not step().yielded
        assert x[0] == (10, 110, 1110)[number]
    assert step.state == "captured"
    stop[None] = 1
    assert step().checkpoint is Stage.LAST
    assert x[0] == 1111


def test_streams(way):
    running, x, stop = kernel(simple, way), array([0, 0]), array(1)
    stream = qp.create_stream()
    qp.sync()
    status = running(x, stop, stream=stream)
    assert status.yielded
    stop.fill(0, stream=stream)
    assert not running.resume(x, stop, from_checkpoint=status.checkpoint, stream=stream).yielded
    stream.synchronize()
    assert list(x.to_numpy()) == [20, 20]
    stream.destroy()


def test_statuses_of_several_calls(way):
    """Each call has its own, whenever it is read."""
    running = kernel(simple, way)
    stops = [array(number % 2) for number in range(6)]
    found = [running(array([0]), stop) for stop in stops]
    assert [status.yielded for status in found] == [False, True] * 3
    assert [status.yielded for status in found[::-1]] == [True, False] * 3


@pytest.mark.skipif(EMULATED, reason="the emulator runs one thread's work at a time")
def test_threads(way):
    running, found = kernel(simple, way), {}

    def work(number):
        x, stop = array([number]), array(number % 2)
        for _ in range(20):
            status = running(x, stop)
            if status.yielded:
                status = running.resume(x, array(0), from_checkpoint=status.checkpoint)
            x.fill(number)
        found[number] = status.yielded

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), False)


@qp.kernel(graph=True, checkpoints=True)
def of_module(x: I32, stop: FLAG):
    with qp.checkpoint(1, yield_on=stop):
        x[0] += 1


def test_copies_and_what_other_processes_get(way):
    assert pickle.loads(pickle.dumps(of_module)) is of_module
    again = type(of_module).__new__(type(of_module))
    again._make_again(of_module.source.fn, of_module.recipe().options)
    x, stop = array([0]), array(1)
    assert again(x, stop).yielded
    assert [task.symbol for task in again.compile("gfx942").tasks]


def test_a_fault_is_raised_and_later_calls_run(way):
    def run(x: I32, at: qp.i32, stop: FLAG):
        with qp.checkpoint(1, yield_on=stop):
            for _ in range(1):
                x[at] += 1

    running, x, stop = kernel(run, way, debug=True), array([0, 0]), array(0)
    with pytest.raises(qp.KernelIndexError, match="index 7"):
        repr(running(x, 7, stop))
    assert not running(x, 1, stop).yielded
    assert list(x.to_numpy()) == [0, 1]


# bad input

GOOD = "with qp.checkpoint(1, yield_on=stop):\n        x[0] += 1"


def within(head):
    return head + "\n" + textwrap.indent(f"    {GOOD}", "    ")


def refused(way, body, error, match, tmp_path, options="graph=True, checkpoints=True"):
    text = (
        "import enum\nimport quadpy as qp\nI32, FLAG = qp.types.ndarray(qp.i32, 1), qp.types.ndarray(qp.i32, 0)\n"
        f"other, field = qp.checkpoint, qp.field(qp.i32, shape=())\n\n@qp.kernel({options})\n"
        f"def run(x: I32, stop: FLAG, wide: qp.types.ndarray(qp.f32, 0), n: qp.i32):\n    {body}\n"
    )
    file = tmp_path / "program.py"
    file.write_text(text)
    names = {"__name__": "program"}
    exec(compile(text, str(file), "exec"), names)
    with pytest.raises(error, match=match):
        names["run"](array([0]), array(0), qp.ndarray(qp.f32, ()), 1)


BAD = {
    "no graph kernel": (GOOD, "checkpoint needs a graph kernel", "graph=False"),
    "no checkpoints": (GOOD, "needs a graph kernel with checkpoints", "graph=True"),
    "no flag": (GOOD.replace(", yield_on=stop", ""), "takes a label and a flag", None),
    "no label": (GOOD.replace("1, ", ""), "takes a label and a flag", None),
    "too much": (GOOD.replace("stop", "stop, x=1"), "takes a label and a flag", None),
    "no call": (GOOD.replace("(1, yield_on=stop)", ""), "must be called|takes", None),
    "a name": (GOOD.replace("stop:", "stop as y:").replace("stop)", "stop) as y"), "no value to bind", None),
    "a run-time label": (GOOD.replace("1,", "n,"), "the label n is not an integer", None),
    "a text": (GOOD.replace("1,", "'a',"), "the label 'a' is not an integer", None),
    "True": (GOOD.replace("1,", "True,"), "the label True is not an integer", None),
    "one label twice": (f"{GOOD}\n    {GOOD}", "two checkpoints have the label 1", None),
    "one in another": (within("with qp.checkpoint(2, yield_on=stop):"), "inside another one", None),
    "a loop": (within("for i in x:"), "top level", None),
    "a section": (within("with qp.graph.parallel():"), "inside a section", None),
    "a field": (GOOD.replace("stop", "field"), "takes an array parameter, not a field\n(.|\n)*hint: such as flag: qp.types", None),
    "a field of a loop": ("while qp.graph.do_while(field):\n        x[0] -= 1", "do_while takes an array parameter, not a field\n(.|\n)*such as cond: ", None),
    "a number": (GOOD.replace("stop", "n"), "takes an array parameter", None),
    "an array": (GOOD.replace("stop", "x"), "takes an array of one integer", None),
    "floats": (GOOD.replace("stop", "wide"), r"takes an array of one integer, not array f32\[\]", None),
    "an expression": (GOOD.replace("stop", "x[0]"), "takes the name of one array", None),
    "a long condition": (f"while qp.graph.do_while(x):\n        x[0] -= 1\n    {GOOD}", "array of one integer", None),
    "a variable": (f"n2 = x[0]\n    {GOOD}\n    for i in range(n2):\n        x[i] = 1", "a pause would lose it", None),
    "a variable of a loop": (f"n2 = x[0]\n    while qp.graph.do_while(stop):\n        x[n2] = 1\n        {GOOD}".replace("\n        x[0]", "\n            x[0]"), "a pause would lose it", None),
    "a sum": (f"t = 0\n    for i in x:\n        t += x[i]\n    {GOOD}\n    x[0] = t", "a pause would lose it", None),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_checkpoints_are_refused(way, case, tmp_path):
    body, match, options = BAD[case]
    options = options or "graph=True, checkpoints=True"
    refused(way, body, qp.CompilationError, match, tmp_path, options)


def test_variables_may_pass_within_a_part(way):
    def run(x: I32, stop: FLAG):
        n = x.shape[0] // 2  # follows from the arguments
        with qp.checkpoint(1, yield_on=stop):
            total = 0
            for i in x:
                total += x[i]
            x[0] = total
        last = x[n]
        for i in range(n):
            x[i] += last - 2 if last > 99 else 1

    running, x = kernel(run, way), array([1, 2, 3, 4])
    assert not running(x, array(0)).yielded
    assert list(x.to_numpy()) == [11, 3, 3, 4]
    assert not running.resume(x, array(0), from_checkpoint=1).yielded
    assert list(x.to_numpy()) == [22, 4, 3, 4]


def test_variables_may_pass_a_loop_without_checkpoints(way):
    def run(x: I32, left: FLAG, stop: FLAG):
        first = x[1]
        while qp.graph.do_while(left):
            for i in x:
                x[i] += first
            left[()] -= 1
        x[0] = first
        with qp.checkpoint(1, yield_on=stop):
            x[1] = -1

    running, x = kernel(run, way), array([1, 2, 3])
    assert not running(x, array(3), array(0)).yielded
    assert list(x.to_numpy()) == [2, -1, 9]


def test_bad_resumptions_are_refused(way):
    running, x, stop = kernel(simple, way), array([0, 0]), array(0)
    status = running(x, stop)
    with pytest.raises(qp.ArgumentError, match="did not pause"):
        running.resume(x, stop, from_checkpoint=status.checkpoint)
    with pytest.raises(qp.ArgumentError, match=r"no checkpoint 3(.|\n)*it has <Stage.LAST: 20>"):
        running.resume(x, stop, from_checkpoint=3)
    with pytest.raises(qp.ArgumentError, match="from_checkpoint"):
        running.resume(x, stop)
    with pytest.raises(qp.ArgumentError, match="it takes x, stop"):
        running.resume(x, from_checkpoint=20)
    with pytest.raises(qp.ArgumentError, match="it takes x, stop"):
        running(x, stop, stop)
    with pytest.raises(qp.ArgumentError, match="stop"):
        running.resume(x, 5, from_checkpoint=20)
    assert list(x.to_numpy()) == [10, 10]


def test_only_calls_have_a_status(way):
    running, x, stop = kernel(simple, way), array([0, 0]), array(0)
    with pytest.raises(qp.ArgumentError, match="capture a call"):
        qp.graph.Graph().add_kernel(running, x, stop)
    assert isinstance(running.fusion(x, stop).fused, bool)


def test_checkpoints_are_for_graph_kernels(way):
    with pytest.raises(qp.ArgumentError, match="graph=True, checkpoints=True"):
        qp.kernel(checkpoints=True)(simple)
    with pytest.raises(qp.ArgumentError, match="checkpoints"):
        qp.kernel(graph=True, checkpoints=3)(simple)
    with pytest.raises(AttributeError, match="checkpoints=True"):
        qp.kernel(graph=True)(simple).resume(from_checkpoint=1)
