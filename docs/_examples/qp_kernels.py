"""Examples of what programs start with, and of kernels and functions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import quadpy as qp


def example_init() -> None:
    qp.init(arch=qp.cpu, default_fp=qp.f64, random_seed=1)
    print(qp.cfg.default_fp)  # f64


def example_reset() -> None:
    qp.init(default_fp=qp.f64)
    qp.reset()
    print(qp.cfg.default_fp)  # f32


def example_sync() -> None:
    x = qp.ndarray(qp.f32, 1000)
    x.fill(1.0)
    qp.sync()  # on a GPU, the array is filled from here on


def example_is_extension_enabled() -> None:
    print(qp.is_extension_enabled(qp.extension.data64))  # True
    print(qp.is_extension_enabled(qp.extension.mesh))  # False


def example_cfg() -> None:
    qp.init(fast_math=True)
    print(qp.cfg.fast_math)  # True


def example_dump_compile_config() -> None:
    qp.init()
    qp.dump_compile_config()


def example_set_logging_level() -> None:
    for level in (qp.TRACE, qp.DEBUG, qp.INFO, qp.WARN, qp.ERROR, qp.CRITICAL):
        qp.set_logging_level(level)


def example_is_logging_effective() -> None:
    qp.set_logging_level(qp.WARN)
    print(qp.is_logging_effective(qp.INFO))  # False


def example_cpu() -> None:
    qp.init(arch=qp.python)  # runs kernels line by line, for a debugger
    qp.init(arch=[qp.cuda, qp.amdgpu, qp.cpu])  # the first one that is there
    print(qp.gpu, qp.x64, qp.x86_64, qp.arm64)  # ('amdgpu', 'cuda') cpu cpu cpu


def example___version__() -> None:
    print(qp.__version__ == qp.__version_str__)  # True


def example_on_reset() -> None:
    qp.on_reset(lambda: print("again"))
    qp.reset()  # again


def example_is_arch_supported() -> None:
    print(qp.is_arch_supported(qp.cpu))  # True


def example_clock_freq_hz() -> None:
    print(qp.clock_freq_hz() > 1e6)  # True


def example_get_max_shared_memory_bytes() -> None:
    print(qp.get_max_shared_memory_bytes() // 1024)  # 64


def example_perf_dispatch() -> None:
    @qp.perf_dispatch(get_geometry_hash=lambda x: len(x) > 100)
    def double(x: qp.Array1D[qp.f32]) -> None:
        """Twice each element."""

    @double.register
    @qp.kernel
    def by_kernel(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] *= 2.0

    @double.register(is_compatible=lambda x: len(x) <= 100)
    def by_numpy(x: qp.Array1D[qp.f32]) -> None:
        np.multiply(x, 2.0, out=x)

    x = np.ones(1000, np.float32)
    for _ in range(3):  # only one fits, so there is nothing to decide
        double(x)
    print(x[0], double.decisions(), isinstance(double, qp.PerfDispatch))  # 8.0 {} True


def example_VectorTensor() -> None:
    @qp.kernel
    def first(v: qp.VectorTensor) -> qp.f32:
        return v[0].x

    v = qp.Vector.field(2, qp.f32, 3)
    v[0] = [4.0, 5.0]
    print(first(v), isinstance(v, qp.VectorTensor), isinstance(v, qp.MatrixTensor))  # 4.0 True False


def example_kernel() -> None:
    @qp.kernel
    def scale(x: qp.Array1D[qp.f32], factor: qp.f32) -> None:
        for i in x:  # in parallel
            x[i] *= factor

    x = np.arange(4, dtype=np.float32)
    scale(x, 0.5)
    print(x)  # [0.  0.5 1.  1.5]


def example_Kernel() -> None:
    @qp.kernel
    def total(x: qp.Array1D[qp.f32]) -> qp.f32:
        s = 0.0
        for i in x:
            s += x[i]
        return s

    assert isinstance(total, qp.Kernel)
    code = total.compile("gfx942")  # for an MI300, on any machine
    print(code.target, len(code.image) > 0)  # gfx942 True


def example_GraphStatus() -> None:
    @qp.kernel(graph=True, checkpoints=True)
    def step(x: qp.Array1D[qp.f32], stop: qp.types.ndarray(qp.i32, 0)) -> None:
        with qp.checkpoint(7, yield_on=stop):
            x[0] += 1.0

    x, stop = np.zeros(1, np.float32), np.ones((), np.int32)
    status = step(x, stop)
    assert isinstance(status, qp.GraphStatus)
    print(status.yielded, status.checkpoint)  # True 7


def example_template() -> None:
    @qp.kernel
    def fill(f: qp.template(), value: qp.template()) -> None:
        for i in f:
            f[i] = value  # a constant of the code

    f = qp.field(qp.f32, 3)
    fill(f, 2.5)
    print(f.to_numpy())  # [2.5 2.5 2.5]


def example_Template() -> None:
    @qp.kernel
    def clear(f: qp.Template[qp.f32, 1]) -> None:
        for i in f:
            f[i] = 0.0

    clear(qp.field(qp.f32, 3))


def example_Tensor() -> None:
    @qp.kernel
    def double(x: qp.Tensor) -> None:
        for i in x:
            x[i] *= 2.0

    a = qp.tensor(qp.f32, 2)  # an array
    f = qp.tensor(qp.f32, 2, backend=qp.Backend.FIELD)
    for x in (a, f):
        x.fill(3.0)
        double(x)
    print(a.to_numpy(), f.to_numpy())  # [6. 6.] [6. 6.]


def example_func() -> None:
    @qp.func
    def square(x):
        return x * x

    @qp.kernel
    def apply(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] = square(x[i])

    x = np.array([1, 2, 3], np.float32)
    apply(x)
    print(x)  # [1. 4. 9.]
    # outside kernels, too:
    print(square(5))  # 25


def example_pyfunc() -> None:
    @qp.pyfunc
    def area(r):
        return qp.math.pi * r**2

    print(area(2.0))  # 12.566370614359172


def example_ref() -> None:
    @qp.func
    def advance(x: qp.ref(qp.f32), by: qp.f32):
        x += by

    @qp.kernel
    def run() -> qp.f32:
        x = 1.0
        advance(x, 2.0)
        return x

    print(run())  # 3.0


def example_real_func() -> None:
    @qp.real_func
    def steps(n: qp.i32) -> qp.i32:
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    @qp.kernel
    def longest(up_to: qp.i32) -> qp.i32:
        best = 0
        for n in range(1, up_to):
            qp.atomic_max(best, steps(n))
        return best

    print(longest(100))  # 118


def example_data_oriented() -> None:
    @qp.data_oriented
    class Walk:
        def __init__(self, n):
            self.x = qp.field(qp.f32, n)

        @qp.kernel
        def step(self, by: qp.f32):
            for i in self.x:
                self.x[i] += by

    walk = Walk(3)
    walk.step(0.5)
    print(walk.x.to_numpy())  # [0.5 0.5 0.5]


def example_load_kernel() -> None:
    @qp.kernel
    def add(x: qp.Array1D[qp.f32], by: qp.f32) -> None:
        for i in x:
            x[i] += by

    add.save("add.qpk", ["x86-64", "arm64"])
    loaded = qp.load_kernel("add.qpk")  # in another process, without the compiler
    assert isinstance(loaded, qp.SavedKernel)
    x = np.zeros(3, np.float32)
    loaded(x, by=2.0)
    print(x)  # [2. 2. 2.]
    Path("add.qpk").unlink()
