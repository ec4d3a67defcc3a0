"""Examples of errors: each raises the error that it is for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import quadpy as qp


def example_QuadpyError() -> None:
    try:
        qp.field("f32", 4)
    except qp.QuadpyError as error:
        print(type(error).__name__, "|", error.message)  # ArgumentError | 'f32' is not a scalar type


def example_CompilationError() -> None:
    @qp.kernel
    def typo(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] = speeed

    try:
        typo(np.zeros(4, np.float32))
    except qp.CompilationError as error:
        print(isinstance(error, qp.KernelNameError), error.span.line > 0)  # True True


def example_KernelNameError() -> None:
    @qp.kernel
    def typo(x: qp.Array1D[qp.f32], speed: qp.f32) -> None:
        for i in x:
            x[i] = speeed

    try:
        typo(np.zeros(4, np.float32), 1.0)
    except NameError as error:  # it is Python's error, too
        print(error.message, "|", error.hint)  # the name 'speeed' is not defined | did you mean 'speed'?


def example_KernelSyntaxError() -> None:
    @qp.kernel
    def guarded(x: qp.Array1D[qp.f32]) -> None:
        try:
            x[0] = 1.0
        except ValueError:
            pass

    try:
        guarded(np.zeros(4, np.float32))
    except qp.KernelSyntaxError as error:
        print(error.message)  # try is not part of the kernel language


def example_KernelTypeError() -> None:
    @qp.kernel
    def indexed(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[0.5] = i

    try:
        indexed(np.zeros(4, np.float32))
    except qp.KernelTypeError as error:
        print(error.message)  # an index must be an integer, not float


def example_KernelValueError() -> None:
    @qp.kernel
    def too_large() -> qp.i32:
        return qp.u8(300)

    try:
        too_large()
    except qp.KernelValueError as error:
        print(error.message)  # the literal 300 does not fit u8


def example_KernelSourceError() -> None:
    try:
        qp.kernel(len)
    except qp.KernelSourceError as error:
        print(error.message)  # <built-in function len> is not a Python function


def example_UnknownTargetError() -> None:
    @qp.kernel
    def nothing() -> None:
        pass

    try:
        nothing.compile("gfx9000")
    except qp.UnknownTargetError as error:
        print(error.message.partition(";")[0])  # there is no target 'gfx9000'


def example_CodegenError() -> None:
    @qp.kernel
    def hungry(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            shared = qp.simt.block.SharedArray(1_000_000, qp.f32)
            shared[i % 256] = x[i]
            x[i] = shared[0]

    try:
        hungry.compile("gfx942")
    except qp.CodegenError as error:
        print(error.message.partition(";")[0])  # the shared arrays of this loop need 4000000 bytes up to this one


def example_LinkError() -> None:
    @qp.kernel
    def nothing() -> None:
        pass

    try:
        nothing.compile("gfx942")
    except qp.LinkError as error:  # a bug in quadpy: please report it
        print(error)


def example_ArgumentError() -> None:
    @qp.kernel
    def scale(x: qp.Array1D[qp.f32], by: qp.f32) -> None:
        for i in x:
            x[i] *= by

    try:
        scale(np.zeros(4, np.float32))
    except qp.ArgumentError as error:
        print(error.message)  # scale: missing a required argument: 'by'


def example_BoundsError() -> None:
    try:
        qp.ndarray(qp.f32, 3)[5]
    except qp.BoundsError as error:  # an IndexError, too
        print(error.message)  # index (5,) is outside ndarray(f32, shape=(3,))


def example_CacheError() -> None:
    try:
        qp.init(offline_cache_file_path="/dev/null/cache")
    except qp.CacheError as error:
        print(error.message.partition(":")[0])  # the kernel cache in /dev/null/cache


def example_NoDeviceError() -> None:
    try:
        qp.init(arch="cuda:99")
    except qp.NoDeviceError as error:
        assert isinstance(error, qp.DeviceError)
        print("no such GPU")  # no such GPU


def example_OutOfDeviceMemory() -> None:
    def run(n):
        try:
            return qp.ndarray(qp.f32, n)
        except qp.OutOfDeviceMemory:  # on a GPU; a MemoryError, too
            return run(n // 2)

    print(run(1000).shape)  # (1000,)


def example_DriverError() -> None:
    def step(x):
        try:
            x.fill(1.0)
            qp.sync()
        except qp.DriverError as error:  # a call of a GPU's driver failed
            print(error.call, error.name, error.code)
            raise

    step(qp.ndarray(qp.f32, 1000))


def example_StreamError() -> None:
    stream = qp.create_stream()
    stream.destroy()
    try:
        stream.synchronize()
    except qp.StreamError as error:
        print(error.message)  # the stream was destroyed


def example_EventError() -> None:
    event = qp.create_event()
    event.destroy()
    try:
        event.record()
    except qp.EventError as error:
        print(error.message)  # the event was destroyed


def example_CaptureError() -> None:
    x = qp.ndarray(qp.f32, 4)
    try:
        with qp.graph.capture():
            x.fill(1.0)
            x.to_numpy()  # the fill has not run
    except qp.CaptureError as error:
        print(error.message)  # a capture cannot record reading an array


def example_GraphError() -> None:
    g = qp.graph.Graph()
    g.add_empty(name="start")
    try:
        g.add_empty(name="start")
    except qp.GraphError as error:
        print(error.message)  # the graph already has a node 'start'


def example_GraphUpdateError() -> None:
    g = qp.graph.Graph()
    g.add_empty(name="start")
    with g.instantiate() as run:
        try:
            run.update("start", 1.0)
        except qp.GraphUpdateError as error:
            print(error.message)  # 'start' is a node of kind empty: there is nothing to change


def example_SavedGraphError() -> None:
    Path("step.qpg").write_bytes(b"something else")
    try:
        qp.graph.load("step.qpg")
    except qp.SavedGraphError as error:
        print(error.message)  # this is not a saved graph
    Path("step.qpg").unlink()


def example_CheckpointError() -> None:
    try:
        qp.dist.Grid((4,)).load("nowhere")
    except qp.CheckpointError as error:
        print(error.message)  # there is no checkpoint in nowhere: checkpoint.json is missing


def example_HazardError() -> None:
    @qp.kernel
    def count(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] = i

    x = qp.ndarray(qp.f32, 1000)
    first, second = qp.create_stream(), qp.create_stream()
    try:
        with qp.hazards.check():
            count(x, stream=first)
            count(x, stream=second)
    except qp.HazardError as error:
        print(error.hazard.kind)  # write after write


def example_HazardWarning() -> None:
    import warnings

    warnings.simplefilter("error", qp.HazardWarning)  # possible hazards end the program, too
    warnings.simplefilter("error", qp.RaceWarning)


def example_DistributedError() -> None:
    def program():
        grid = qp.dist.Grid((8,))
        return grid.ndarray(qp.f32).to_numpy()

    try:
        print(program())  # [0. 0. 0. 0. 0. 0. 0. 0.]
    except qp.RankLostError:  # another rank has ended, has failed, or does not answer in time
        raise SystemExit(1) from None
    except qp.RanksDisagreeError:  # ranks that must do the same do not
        raise SystemExit(1) from None
    except qp.TransportError:  # MPI, NCCL or RCCL is missing, or a call of it failed
        raise SystemExit(1) from None
    except qp.DistributedError:  # any of them
        raise SystemExit(1) from None


def example_KernelFault() -> None:
    @qp.kernel(debug=True)
    def checked(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            assert x[i] > 0.0, "x must be positive"

    try:
        checked(np.zeros(4, np.float32))
    except qp.KernelFault as error:
        assert isinstance(error, qp.KernelAssertionError)
        print(error.message)  # x must be positive


def example_KernelIndexError() -> None:
    @qp.kernel(debug=True)
    def beyond(x: qp.Array1D[qp.f32], at: qp.i32) -> None:
        x[at] = 1.0

    try:
        beyond(np.zeros(4, np.float32), 7)
    except qp.KernelIndexError as error:
        print(error.message)  # x[7] is out of range: index 7 of axis 0, which has extent 4


def example_KernelOverflowError() -> None:
    @qp.kernel(debug=True)
    def doubled(n: qp.i32) -> qp.i32:
        return 2 * n

    try:
        doubled(2_000_000_000)
    except qp.KernelOverflowError as error:
        print(error.message)  # 2 * 2000000000 overflows i32


def example_KernelZeroDivisionError() -> None:
    @qp.kernel(debug=True)
    def ratio(a: qp.i32, b: qp.i32) -> qp.i32:
        return a // b

    try:
        ratio(1, 0)
    except qp.KernelZeroDivisionError as error:
        print(error.message)  # integer division by zero: 1 // 0


def example_KernelShiftError() -> None:
    @qp.kernel(debug=True)
    def shifted(a: qp.i32, by: qp.i32) -> qp.i32:
        return a << by

    try:
        shifted(1, 40)
    except qp.KernelShiftError as error:
        print(error.message)  # 1 << 40 shifts i32 by a count outside of 0 to 31


def example_KernelRangeError() -> None:
    @qp.kernel(debug=True)
    def steps(by: qp.i32) -> qp.i32:
        count = 0
        for _ in range(0, 10, by):
            count += 1
        return count

    try:
        steps(0)
    except qp.KernelRangeError as error:
        print(error.message)  # the step of this range is 0


def example_KernelRaceError() -> None:
    @qp.kernel(debug=True)
    def scatter(x: qp.Array1D[qp.f32], at: qp.Array1D[qp.i32]) -> None:
        for i in at:
            x[at[i]] = i

    try:
        scatter(np.zeros(4, np.float32), np.array([1, 1], np.int32))
    except qp.KernelRaceError as error:
        print(error.message.partition(":")[0])  # race


def example_KernelDivergenceError() -> None:
    @qp.kernel
    def branch(x: qp.Array1D[qp.i32], n: qp.i32) -> None:
        for i in range(256):
            if i < n:
                x[i] = qp.simt.subgroup.reduce_add(1)

    try:
        branch(np.zeros(256, np.int32), 33)
    except qp.KernelDivergenceError as error:
        print(error.message.partition(",")[0])  # the lanes of a wave diverge here
