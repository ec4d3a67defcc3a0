"""Stand-ins for the bindings of NCCL and RCCL, whose ranks are threads: the same calls, with the same arguments.

Calls of a group run when it ends, and wait for the other ranks, as a stream would; memory is the host's.
"""

import ctypes
import enum
import inspect
import itertools
import threading
import time
from collections import deque
from types import SimpleNamespace

_SIZES = {0: 1, 1: 1, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2}


class Refused(Exception):
    """A call that the library refuses, with its status."""

    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status = status


class Machine:
    """All communicators of one stand-in, by their unique ids, and the log of calls."""

    def __init__(self):
        self.boxes, self.changed, self.numbers = {}, threading.Condition(), itertools.count(1)
        self.calls, self.local, self.refuse = [], threading.local(), {}

    def group(self):
        return self.local.__dict__.setdefault("group", [])

    def log(self, name, *arguments):
        self.calls.append((threading.get_ident(), name, arguments))
        if name in self.refuse:
            raise Refused(self.refuse[name])

    def start_group(self):
        self.log("group_start")
        self.local.depth = getattr(self.local, "depth", 0) + 1

    def end_group(self):
        self.log("group_end")
        self.local.depth -= 1
        if self.local.depth == 0:
            calls, self.group()[:] = list(self.group()), []
            for _, call in sorted(calls, key=lambda item: item[0]):  # sends first: the order in a group is free
                call()

    def submit(self, rank, call):
        assert getattr(self.local, "depth", 0), "outside of a group"
        self.group().append((rank, call))

    def unique_id(self):
        return next(self.numbers).to_bytes(128, "little")


class Comm:
    def __init__(self, machine, name, size, rank):
        self.machine, self.name, self.size, self.rank, self.aborted = machine, name, size, rank, False

    def post(self, peer, kind, data):
        with self.machine.changed:
            self.machine.boxes.setdefault((self.name, self.rank, peer, kind), deque()).append(data)
            self.machine.changed.notify_all()

    def take(self, peer, kind):
        box = (self.name, peer, self.rank, kind)
        with self.machine.changed:
            self.machine.changed.wait_for(lambda: self.machine.boxes.get(box) or self.aborted)
            return None if self.aborted else self.machine.boxes[box].popleft()

    def send(self, address, count, dtype, peer):
        self.machine.log("send", peer, count)
        self.machine.submit(0, lambda: self.post(peer, "p2p", ctypes.string_at(address, count * _SIZES[dtype])))

    def receive(self, address, count, dtype, peer):
        self.machine.log("recv", peer, count)

        def receive():
            data = self.take(peer, "p2p")
            if data is not None:
                assert len(data) == count * _SIZES[dtype], "NCCL would hang or overwrite memory"
                ctypes.memmove(address, data, len(data))

        self.machine.submit(1, receive)

    def together(self, address, nbytes, finish):
        """Every rank sends ``nbytes`` bytes to all, and ``finish`` gets what came."""

        def run():
            for peer in range(self.size):
                self.post(peer, "all", ctypes.string_at(address, nbytes))
            parts = [self.take(peer, "all") for peer in range(self.size)]
            if None not in parts:
                finish(parts)

        self.machine.submit(2, run)

    def all_gather(self, source, target, nbytes):
        self.together(source, nbytes, lambda parts: ctypes.memmove(target, b"".join(parts), nbytes * self.size))

    def abort(self):
        with self.machine.changed:
            self.aborted = True
            self.machine.changed.notify_all()


def nccl(machine):
    """As the module ``nccl.bindings.nccl`` of nccl4py 0.6."""

    class NCCLError(Exception):
        pass

    class UniqueId:
        def __init__(self, data=bytes(128)):
            self.data = data

        @staticmethod
        def from_buffer(data):
            assert len(data) == 128
            return UniqueId(bytes(data))

        def __bytes__(self):
            return self.data

    def checked(function):
        def call(*arguments):
            inspect.signature(function).bind(*arguments)
            try:
                return function(*arguments)
            except Refused as error:
                raise NCCLError(f"error {error.status}") from None

        call.__name__ = function.__name__
        call.parameters = list(inspect.signature(function).parameters)
        return call

    def get_unique_id():
        return UniqueId(machine.unique_id())

    def comm_init_rank(nranks, comm_id, rank):
        machine.log("comm_init_rank", nranks, rank)
        return Comm(machine, bytes(comm_id), nranks, rank)

    def send(sendbuff, count, datatype, peer, comm, stream):
        comm.send(sendbuff, count, datatype, peer)

    def recv(recvbuff, count, datatype, peer, comm, stream):
        comm.receive(recvbuff, count, datatype, peer)

    def all_gather(sendbuff, recvbuff, sendcount, datatype, comm, stream):
        comm.all_gather(sendbuff, recvbuff, sendcount * _SIZES[datatype])

    def group_start():
        machine.start_group()

    def group_end():
        machine.end_group()

    def comm_get_async_error(comm):
        return machine.refuse.get("async", 0)

    def get_error_string(result):
        return f"error {result}"

    def comm_abort(comm):
        machine.log("comm_abort")
        comm.abort()

    functions = (
        get_unique_id, comm_init_rank, send, recv, all_gather, group_start, group_end,
        comm_get_async_error, get_error_string, comm_abort,
    )  # fmt: skip
    return SimpleNamespace(
        NCCLError=NCCLError, UniqueId=UniqueId, **{function.__name__: checked(function) for function in functions}
    )


def rccl(machine):
    """As the module ``rocm.bindings.rccl`` of hip-python 10."""
    inner = nccl(machine)

    def enum_of(name, prefix, **members):
        return enum.IntEnum(name, {f"{prefix}{member}": number for member, number in members.items()})

    kinds = enum_of(
        "ncclDataType_t", "nccl", Int8=0, Uint8=1, Int32=2, Uint32=3, Int64=4, Uint64=5, Float16=6, Float32=7, Float64=8,
        Bfloat16=9,
    )  # fmt: skip
    results = enum_of(
        "ncclResult_t", "nccl", Success=0, UnhandledCudaError=1, SystemError=2, InternalError=3, InvalidArgument=4,
        InvalidUsage=5, RemoteError=6, InProgress=7,
    )  # fmt: skip

    class UniqueId:
        def __init__(self):
            self.internal = ctypes.create_string_buffer(128)

        def as_c_void_p(self):
            return ctypes.c_void_p(ctypes.addressof(self.internal))

    def wrapped(name, original, *, enums=()):
        def call(*arguments):
            for place, kind in enums:
                assert isinstance(arguments[place], kind), f"{name} takes a {kind.__name__}"
            try:
                found = original(*arguments)
            except inner.NCCLError as error:
                return (results(int(str(error).split()[-1])), None)
            return (results.ncclSuccess,) if found is None else (results.ncclSuccess, found)

        call.__name__ = name
        call.parameters = getattr(original, "parameters", None)
        return call

    def unique_id():
        name = UniqueId()
        ctypes.memmove(name.internal, machine.unique_id(), 128)
        return name

    def init(nranks, commId, rank):  # noqa: N803 - the binding's name
        return inner.comm_init_rank(nranks, inner.UniqueId(ctypes.string_at(commId.internal, 128)), rank)

    def async_error(comm, asyncError):  # noqa: N803 - the binding's name
        ctypes.c_int.from_address(asyncError).value = machine.refuse.get("async", 0)

    return SimpleNamespace(
        NCCL_UNIQUE_ID_BYTES=128,
        ncclDataType_t=kinds,
        ncclResult_t=results,
        ncclUniqueId=UniqueId,
        has_symbol=lambda name: True,
        ncclGetErrorString=lambda status: (results.ncclSuccess, f"error {int(status)}".encode()),
        ncclGetUniqueId=wrapped("ncclGetUniqueId", unique_id),
        ncclCommInitRank=wrapped("ncclCommInitRank", init),
        ncclGroupStart=wrapped("ncclGroupStart", inner.group_start),
        ncclGroupEnd=wrapped("ncclGroupEnd", inner.group_end),
        ncclSend=wrapped("ncclSend", inner.send, enums=[(2, kinds)]),
        ncclRecv=wrapped("ncclRecv", inner.recv, enums=[(2, kinds)]),
        ncclAllGather=wrapped("ncclAllGather", inner.all_gather, enums=[(3, kinds)]),
        ncclCommGetAsyncError=wrapped("ncclCommGetAsyncError", async_error),
        ncclCommAbort=wrapped("ncclCommAbort", inner.comm_abort),
    )


def wait_until(done, seconds=20):
    """Wait for another thread, such as the one that watches ranks."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "never"
        time.sleep(0.01)
