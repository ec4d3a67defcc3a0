"""Transports of GPUs: NCCL and RCCL on stand-in libraries, and MPI through pinned memory on a simulated GPU."""

import ctypes
import inspect
import re
from types import SimpleNamespace

import numpy as np
import pytest
from gpu_libraries import Machine, nccl, rccl, wait_until
from simulated import current, simulated
from simulated_gpu.driver import RecordingDriver
from thread_ranks import run_ranks
from transport_cases import CASES, array_of, stream_of

from quadpy.dist import world
from quadpy.dist.transport.checked import CheckedTransport
from quadpy.dist.transport.engine import Message
from quadpy.dist.transport.gpu.nccl import NcclLibrary
from quadpy.dist.transport.gpu.rccl import RcclLibrary
from quadpy.dist.transport.gpu.transport import GpuTransport
from quadpy.dist.transport.host import HostTransport
from quadpy.dist.transport.mpi_memory import takes_device_memory
from quadpy.dist.transport.protocol import FlatPart, Receive, Send
from quadpy.errors import RankLostError, TransportError
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.drivers.cpu import CpuDriver

LIBRARIES = {"nccl": lambda machine: NcclLibrary(nccl(machine)), "rccl": lambda machine: RcclLibrary(rccl(machine))}


@pytest.fixture
def gpu():
    """A device whose memory is the host's: the stand-ins copy it."""
    with simulated(CpuDriver()) as device:
        yield device


def run_on_gpus(size, program, library, machine=None, timeout=30):
    """Run ``program`` on ranks that a stand-in of ``library`` connects."""
    machine = machine or Machine()

    def make(engine):
        return CheckedTransport(GpuTransport(LIBRARIES[library](machine), engine, current_device()))

    return run_ranks(size, program, timeout=timeout, make=make)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("gpu")
def test_every_case(name, library):
    run_on_gpus(3, lambda: CASES[name](world()), library)


@pytest.mark.parametrize("name", CASES)
def test_every_case_through_pinned_memory(name):
    """Copies run late and in any order that the streams permit; each access is watched for races."""
    driver = RecordingDriver()
    with simulated(driver):
        run_ranks(2, lambda: CASES[name](world()))
    assert not driver.races()


class InPlaceEngine:
    """Threads that take device memory as an MPI for GPUs does, by its interface."""

    def __init__(self, engine):
        self._engine, self.in_place = engine, 0

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def start(self, call, sends, receives):
        return self._engine.start(call, [self._on_host(m) for m in sends], [self._on_host(m) for m in receives])

    def _on_host(self, message):
        interface = message.numbers.__cuda_array_interface__
        (nbytes,), (address, read_only) = interface["shape"], interface["data"]
        assert (interface["typestr"], interface["strides"], read_only) == ("|u1", None, False)
        self.in_place += 1
        memory = (ctypes.c_uint8 * nbytes).from_address(address)
        return Message(message.peer, message.tag, np.frombuffer(memory, np.uint8))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("gpu")
def test_every_case_by_an_mpi_that_takes_device_memory(name):
    engines = []

    def make(engine):
        engines.append(InPlaceEngine(engine))
        return CheckedTransport(HostTransport(engines[-1], in_place=True))

    run_ranks(3, lambda: CASES[name](world()), make=make)
    if name == "ring":
        assert [engine.in_place for engine in engines] == [2, 2, 2]


@pytest.mark.parametrize(
    ("kinds", "arch", "expected"),
    [
        ("system,mpi", "cuda", False),
        ("system,mpi,cuda", "cuda", True),
        ("system,cuda:device,mpi", "cuda", True),
        ("system,cuda", "amdgpu", False),
        ("system,rocm", "amdgpu", True),
        ("system,cuda", "cpu", False),
    ],
)
def test_an_mpi_says_whether_it_takes_device_memory(kinds, arch, expected):
    info = SimpleNamespace(Get=lambda key: kinds, Free=lambda: None)
    mpi = SimpleNamespace(COMM_WORLD=SimpleNamespace(Get_info=lambda: info))
    assert takes_device_memory(mpi, arch) is expected


@pytest.mark.usefixtures("gpu")
def test_an_exchange_is_one_group_in_the_order_of_tags():
    machine = Machine()

    def program():
        array, peer = array_of(np.zeros(4)), 1 - world().rank
        sends = [Send(peer, FlatPart(array, 0, tag), tag) for tag in (2, 1)]
        receives = [Receive(peer, FlatPart(array, 2, tag), tag) for tag in (1, 2)]
        world().transport.start_exchange(sends, receives, stream_of(array)).finish()

    run_on_gpus(2, program, "nccl", machine)
    for thread in {thread for thread, name, _ in machine.calls if name == "send"}:
        calls = [(name, *arguments[1:]) for who, name, arguments in machine.calls if who == thread]
        assert calls == [("group_start",), ("send", 4), ("send", 8), ("recv", 4), ("recv", 8), ("group_end",)]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.usefixtures("gpu")
def test_a_failed_call_ends_its_group_and_says_why(library):
    machine = Machine()

    def program():
        array = array_of(np.zeros(4))
        machine.refuse["recv"] = 5
        with pytest.raises(TransportError, match=f"{library.upper()}'s .*[rR]ecv failed: error 5"):
            world().transport.start_exchange([], [Receive(0, FlatPart.whole(array))], stream_of(array))
        assert machine.calls[-1][1] == "group_end"

    def only_rank_1():
        world().transport.share()
        if world().rank == 1:
            program()

    run_on_gpus(2, only_rank_1, library, machine)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.usefixtures("gpu")
def test_a_rank_that_fails_while_a_gpu_waits(library):
    """The GPU would wait for ever: the watch ends the communicator, and the next call says why."""
    errors = {}

    def program():
        array, transport = array_of(np.zeros(4)), world().transport
        transport.share()
        if world().rank == 1:
            raise ValueError("no such file")
        try:
            transport.start_exchange([], [Receive(1, FlatPart.whole(array))], stream_of(array)).finish()
            transport.all_gather(FlatPart(array, 0, 2), FlatPart(array, 0, 2 * world().size), stream_of(array))
        except RankLostError as error:
            errors[0] = str(error)
            raise

    with pytest.raises(ValueError, match="no such file"):
        run_on_gpus(2, program, library)
    assert "rank 1 has failed: ValueError: no such file" in errors[0]


@pytest.mark.usefixtures("gpu")
def test_the_library_fails_behind_the_calls():
    machine = Machine()

    def program():
        array, transport = array_of(np.zeros(4)), world().transport
        transport.all_gather(FlatPart(array, 0, 2), FlatPart(array, 0, 2 * world().size), stream_of(array))
        machine.refuse["async"] = 6
        wait_until(lambda: any(name == "comm_abort" for _, name, _ in machine.calls))
        with pytest.raises(TransportError, match="all_gather failed: error 6"):
            transport.all_gather(FlatPart(array, 0, 2), FlatPart(array, 0, 2 * world().size), stream_of(array))

    run_on_gpus(1, program, "nccl", machine)


@pytest.mark.usefixtures("gpu")
def test_memory_of_the_host_is_not_exchanged_between_gpus():
    def program():
        array = array_of(np.zeros(4))
        with current("cpu"):
            host = array_of(np.zeros(4))
        with pytest.raises(TransportError, match="is in the host's memory"):
            world().transport.all_gather(FlatPart.whole(host), FlatPart.whole(array), stream_of(array))

    run_on_gpus(1, program, "nccl")


def parameters_of(function):
    """The names in the first line of a binding's docstring, such as ``send(intptr_t sendbuff, size_t count, ...)``."""
    inside = re.search(r"\((.*?)\)", function.__doc__)[1]
    return [part.split()[-1] for part in inside.split(",")] if inside else []


@pytest.mark.parametrize(("package", "stand_in"), [("nccl.bindings.nccl", nccl), ("rocm.bindings.rccl", rccl)])
def test_the_stand_ins_have_the_real_signatures(package, stand_in):
    """Runs where the real bindings are installed."""
    real = pytest.importorskip(package)
    for name, function in vars(stand_in(Machine())).items():
        if inspect.isfunction(function) and (expected := getattr(function, "parameters", None)) is not None:
            assert parameters_of(getattr(real, name))[: len(expected)] == expected, name
