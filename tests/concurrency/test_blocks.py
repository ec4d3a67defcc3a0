"""Ctrl-C at every place where a block begins or ends: nothing of it stays, and the next one works as ever.

Each block is entered by its own ``with`` statement, by one object that lives on, and with the traceback of the interrupt
kept, as notebooks do.
"""

from __future__ import annotations

import contextlib
import threading

import pytest
from interrupts import interrupt, places_of, sample
from simulated import add, as_add, simulated, stand_in
from simulated_gpu.driver import RecordingDriver

import quadpy as qp
from quadpy.ad.checkpoints import Stepping
from quadpy.ad.recorder import Noting, Recorder
from quadpy.dist import captured as dist_captured
from quadpy.jit.results import _adjoint, result_has
from quadpy.runtime.device import life
from quadpy.runtime.device.blocks import Block
from quadpy.runtime.device.current import _REPEATED, as_launch
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.launch.capturing import CAPTURES, differentiating_here, thread_captures
from quadpy.runtime.memory.accounting import Accounting
from quadpy.runtime.printing import records

N = 8
ALL = ("ad", "hazards", "profiler", "runtime", "graph/captures", "dist/captured.py")


@qp.kernel
def say(n: qp.i32):
    print("say", n)


class Setting:
    """The objects of a test on the CPU."""

    def __init__(self):
        self.x, self.y = qp.ndarray(qp.f32, N), qp.ndarray(qp.f32, N)
        self.s, self.t = qp.create_stream(), qp.create_stream()
        self.loss = qp.ndarray(qp.f32, (), needs_grad=True)
        self.given, self.out = (qp.field(qp.f32, N, needs_dual=True) for _ in range(2))
        qp.sync()

    def race(self):
        add(self.y, self.x, stream=self.s)
        add(self.y, self.x, stream=self.t)

    def is_clean(self):
        """Whether nothing of any block is left, and each does what it should."""
        device = current_device()
        assert not CAPTURES.count
        assert not thread_captures().sessions
        assert not thread_captures().streams
        assert not life.HOSTS
        assert not life.THREAD.in_host_function
        assert dist_captured._here.step is None
        assert not records._thread.mutes
        assert _REPEATED.get() is _adjoint.get() is None
        assert device.current_stream() is device.default_stream
        self.race()  # outside of blocks, no hazard is looked for
        qp.sync()
        assert CAPTURES.observer is CAPTURES.checker is None, "the next work turns off what an interrupt left"
        assert not CAPTURES.watched
        assert device.life.direct
        with qp.hazards.check(collect=True) as found:
            self.race()
        assert (len(found.certain), len(found.allowed)) == (1, 0), found
        qp.sync()
        with qp.profile() as p, qp.profiler.range("all"):
            add(self.x, self.y)
        assert [r.kind for r in p.records if r.kind in ("range", "call", "kernel")].count("call") == 1
        assert {r.ranges for r in p.records if r.kind == "call"} == {("all",)}
        assert CAPTURES.observer is Accounting.told is None
        assert differentiating_here() is None
        with qp.graph.capture() as graph:
            add(self.x, self.y)
        assert len(graph) == 1
        qp.sync()


BLOCKS = {
    "check": lambda w: qp.hazards.check(collect=True),
    "allow": lambda w: qp.hazards.allow(w.x, reason="only here"),
    "profile": lambda w: qp.profile(),
    "range": lambda w: qp.profiler.range("part"),
    "use_stream": lambda w: qp.use_stream(w.s),
    "capture": lambda w: qp.graph.capture(),
    "host function": lambda w: life.inside_host_function(),
    "muted": lambda w: records.muted(),
    "tape": lambda w: qp.ad.Tape(w.loss),
    "forward mode": lambda w: qp.ad.FwdMode(w.out, w.given, seed=[1.0] * N),
    "tape in forward mode": lambda w: qp.ad.FwdMode(w.out, w.given, seed=[1.0] * N),
    "way back of a graph": lambda w: Noting(),
    "step that runs again": lambda w: Stepping(Recorder()),
    "same random numbers": lambda w: as_launch(1),
    "adjoint of a result": lambda w: result_has(w.loss),
    "captured step": lambda w: dist_captured._Capturing(dist_captured.CapturedStep()),
}
QUIET = ("host function", "captured step")


@pytest.fixture(autouse=True)
def cpu():
    qp.init(arch=qp.cpu, hazards=False)
    yield
    qp.init(arch=qp.cpu)


def run(block, name, setting):
    inner = qp.ad.Tape(setting.loss) if name == "tape in forward mode" else contextlib.nullcontext()
    with block, inner:
        if name not in QUIET:
            add(setting.x, setting.y)


# Between two instructions at which CPython looks for no signal, a stream's use is not in its list yet.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*method remove of list:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("kept", ["dropped", "object", "traceback"])
@pytest.mark.parametrize("name", BLOCKS)
def test_ctrl_c_at_every_place(name, kept, request):
    setting, make = Setting(), BLOCKS[name]
    add(setting.x, setting.y)
    run(make(setting), name, setting)  # which imports all
    places = places_of(lambda: run(make(setting), name, setting), ALL)
    assert len(places) > 10
    for place in sample(places, request.config.getoption("--interrupts"), 0):
        mine = make(setting) if kept == "object" else None
        caught = []

        def program(mine=mine, caught=caught):
            try:
                run(make(setting) if mine is None else mine, name, setting)
            except KeyboardInterrupt as error:
                if kept == "traceback":
                    caught.append(error)
                raise

        if interrupt(program, place):
            try:
                setting.is_clean()
            except AssertionError as error:
                raise AssertionError(f"after Ctrl-C at {place}") from error
        del mine, caught


def test_every_public_context_manager_is_attacked_or_owns_what_it_ends():
    """The others release a handle, which its owner does, too: a stream, an event, a graph, a device, a window, a film."""
    blocks = {each.__name__ for each in Block.__subclasses__() if each.__module__.startswith("quadpy")}
    assert blocks == {
        "During", "FwdMode", "Noting", "Stepping", "Tape", "allow", "capture", "check", "inside_host_function", "muted", "profile",
        "range", "use_stream", "_Capturing",
    }  # fmt: skip


def test_the_process_is_checked_or_not_after_an_interrupt_of_init(request):
    """``qp.init(hazards=…)`` may be called again, and leaves nothing of the interrupted call."""
    setting = Setting()

    def on_and_off():
        qp.init(arch=qp.cpu, hazards="collect")
        qp.init(arch=qp.cpu, hazards=False)

    on_and_off()
    for place in sample(
        places_of(on_and_off, ("hazards", "runtime/launch")), request.config.getoption("--interrupts"), 0
    ):
        interrupt(on_and_off, place)
        qp.init(arch=qp.cpu, hazards=True)
        with pytest.raises(qp.HazardError):
            setting.race()
        qp.init(arch=qp.cpu, hazards=False)
        qp.sync()
        setting.is_clean()


def test_the_profiler_of_the_process_may_be_turned_on_again(request):
    setting = Setting()

    def on_and_off():
        qp.profiler.set_kernel_profiler(True)
        add(setting.x, setting.y)
        qp.profiler.set_kernel_profiler(False)

    on_and_off()
    for place in sample(places_of(on_and_off, ("profiler",)), request.config.getoption("--interrupts"), 0):
        interrupt(on_and_off, place)
        qp.profiler.set_kernel_profiler(True)
        add(setting.x, setting.y)
        assert qp.profiler.query_kernel_profiler_info("add").counter == 1, str(place)
        qp.profiler.set_kernel_profiler(False)
        setting.is_clean()


def test_on_a_gpu_the_driver_is_as_before_and_measured_again(request):
    """A profile replaces functions of the driver."""

    def profiled(x, y):
        with qp.profile() as p:
            add(x, y)
        return [r.kind for r in p.records if r.kind in ("call", "kernel")]

    driver = RecordingDriver()
    with simulated(driver) as device:
        stand_in(driver, add, as_add)
        x, y = qp.ndarray(qp.f32, N), qp.ndarray(qp.f32, N)
        profiled(x, y)
        plain = set(vars(driver))
        places = places_of(lambda: profiled(x, y), ("profiler",))
        for place in sample(places, request.config.getoption("--interrupts"), 0):
            interrupt(lambda: profiled(x, y), place)
            add(x, y)
            add(x, y)
            assert sorted(profiled(x, y)) == ["call", "kernel"], str(place)
            assert set(vars(driver)) == plain, str(place)
            assert device.life.direct


# the mechanism


class Named(Block):
    def __init__(self, ended):
        self.ended = ended

    def __enter__(self):
        self._begin(len(self.ended))
        return self

    def _end(self, about, *exception):
        self.ended.append((about, exception[0] if exception else None))

    def _end_early(self):
        self.ended.append("early")


def test_a_block_ends_once_however_it_is_entered():
    ended = []
    block = Named(ended)
    with block as entered:
        assert entered is block
        with block:  # one object, twice at a time
            pass
    with contextlib.suppress(ValueError), block:
        raise ValueError
    with contextlib.ExitStack() as stack:
        stack.enter_context(block)
        with block:
            pass
    block.__enter__()
    block.__exit__(None, None, None)
    block.__exit__(None, None, None)
    assert ended == [(0, None), (0, None), (2, ValueError), (3, None), (3, None), (5, None), "early"]


def test_threads_may_enter_one_object_at_once():
    setting = Setting()
    use, barrier, found = qp.use_stream(setting.s), threading.Barrier(4), []

    def work():
        for _ in range(50):
            barrier.wait()
            with use:
                found.append(current_device().current_stream() is setting.s)
            found.append(current_device().current_stream() is not setting.s)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 400


def test_generators_that_are_dropped_end_their_blocks():
    setting = Setting()

    def steps():
        with qp.use_stream(setting.s), qp.profiler.range("steps"):
            yield

    running = steps()
    next(running)
    assert current_device().current_stream() is setting.s
    del running
    setting.is_clean()


def test_a_mute_drops_prints_of_its_thread(capsys):
    with records.muted():
        say(1)
        thread = threading.Thread(target=say, args=(2,))
        thread.start()
        thread.join()
    say(3)
    assert capsys.readouterr().out == "say 2\nsay 3\n"
