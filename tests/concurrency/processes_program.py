"""Runs kernels in other processes: ``processes_program.py WAY...``; prints what each gave as JSON."""

import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import shared_kernels

import quadpy as qp

F32 = shared_kernels.F32
LEVELS = qp.field(qp.f32, 3)


@qp.func
def factorial(n):
    result = 1.0
    for k in range(n):
        result *= k + 1.0
    return result


@qp.func
def tripled(x):
    return 3.0 * x


@qp.kernel
def triple(x: "F32"):
    for i in x:
        x[i] = tripled(x[i]) + factorial(3)


@qp.kernel(graph=True)
def rise(x: F32):
    for i in x:
        x[i] += LEVELS[i]
    for i in x:
        x[i] *= 2.0


@qp.data_oriented
class Gas:
    def __init__(self, warmth):
        self.warmth = warmth
        self.factor = qp.field(qp.f32, ())
        self.factor[None] = 2.0

    @qp.func
    def more(self, x):
        return x + self.warmth * self.factor[None]

    @qp.kernel
    def heat(self, x: F32):
        for i in x:
            x[i] = self.more(x[i])


def shifted(by):
    def inner(x: F32):
        for i in x:
            x[i] += by

    return qp.kernel(inner)


def run(kernel):
    x = np.arange(3, dtype=np.float32)
    kernel(x)
    return x.tolist()


def call(function):
    return function(2.0)


def replayed(function):
    x = qp.ndarray(qp.f32, 3)
    x.from_numpy(np.arange(3, dtype=np.float32))
    function(x)
    return x.to_numpy().tolist()


def launched(graph, x):
    with graph.instantiate() as launchable:
        launchable.launch()
    return x.to_numpy().tolist()


def graph_of_squares():
    """A graph and the array that it changes; this process does not launch it."""
    x = qp.ndarray(qp.f32, 3)
    graph = qp.graph.Graph()
    graph.add_memset(x, 3.0)
    graph.add_kernel(shared_kernels.square, x)
    graph.add_kernel(triple, x)
    return graph, x


def work():
    """What is called in another process, by name: the function, and its arguments."""
    return {
        "module": (run, shared_kernels.square),
        "main": (run, triple),
        "graph kernel": (run, rise),
        "method": (run, Gas(5.0).heat),
        "replay": (replayed, shared_kernels.square_twice),
        "func": (call, tripled),
        "nested": (run, shifted(10.0)),
        "graph": (launched, *graph_of_squares()),
    }


def futures(method):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        for name, (function, *arguments) in work().items():
            done = pool.submit(function, *arguments)
            error = done.exception(120)
            yield name, done.result() if error is None else f"{type(error).__name__}: {error}"


def loky():
    from joblib import Parallel, delayed

    tasks = work()
    calls = (delayed(function)(*arguments) for function, *arguments in tasks.values())
    return zip(tasks, Parallel(2, backend="loky")(calls), strict=True)  # one job would run in this process


if __name__ == "__main__":
    LEVELS.from_numpy(np.array([1, 2, 3], np.float32))
    qp.init(arch=qp.cpu, cpu_max_num_threads=2)
    run(triple)  # the workers of this process are there before it forks
    print(json.dumps({way: dict(loky() if way == "loky" else futures(way)) for way in sys.argv[1:]}))
