"""A program in HIP C++ that measures launches, graphs and events; with the names replaced, it is CUDA C++."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

_COMPILERS: Final = {"amdgpu": "hipcc", "cuda": "nvcc"}
_SOURCE: Final = r"""
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <HEADER>

#define DONE(call) do { if (hipError_t e = (call)) { std::printf("%s\n", hipGetErrorString(e)); return 1; } } while (0)

__global__ void add_one(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1.0f; }

template <typename F> double best_us(F run, int each) {
    double best = 1e30;
    for (int turn = 0; turn < 6; ++turn) {
        auto begin = std::chrono::steady_clock::now();
        run();
        std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - begin;
        if (turn && spent.count() < best) best = spent.count();
    }
    return best / each;
}

int main(int, char **argv) {
    DONE(hipSetDevice(std::atoi(argv[1])));
    const int many = 1000, nodes = 32;
    float *x;
    hipStream_t stream, other;
    hipEvent_t event;
    hipGraph_t graph;
    hipGraphExec_t exec;
    DONE(hipMalloc(&x, 1024));
    DONE(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    DONE(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
    DONE(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    DONE(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
    for (int i = 0; i < nodes; ++i) add_one<<<1, 256, 0, stream>>>(x);
    DONE(hipStreamEndCapture(stream, &graph));
    DONE(hipGraphInstantiateWithFlags(&exec, graph, 0));
    auto wait = [&] { (void)hipStreamSynchronize(stream); };
    double launch = best_us([&] { for (int i = 0; i < many; ++i) add_one<<<1, 256, 0, stream>>>(x); wait(); }, many);
    double waited = best_us([&] { for (int i = 0; i < 100; ++i) { add_one<<<1, 256, 0, stream>>>(x); wait(); } }, 100);
    double graphs = best_us([&] { for (int i = 0; i < 20; ++i) (void)hipGraphLaunch(exec, stream); wait(); }, 20 * nodes);
    double events = best_us([&] {
        for (int i = 0; i < many; ++i) { (void)hipEventRecord(event, stream); (void)hipStreamWaitEvent(other, event, 0); }
        wait();
    }, many);
    DONE(hipDeviceSynchronize());
    std::printf("{\"cpp_launch_us\": %.3f, \"cpp_launch_and_wait_us\": %.3f, \"cpp_graph_node_us\": %.3f, "
                "\"cpp_event_us\": %.3f}\n", launch, waited, graphs, events);
    return 0;
}
"""


def run(backend: str, arch: str, ordinal: int) -> dict[str, Any] | str:
    """What the program measured, or why it did not."""
    compiler = shutil.which(_COMPILERS[backend]) if backend in _COMPILERS else None
    if compiler is None:
        return f"{_COMPILERS.get(backend, 'a compiler')} is not installed"
    target = [f"--offload-arch={arch.partition(':')[0]}"] if backend == "amdgpu" else ["-arch", arch, "-x", "cu"]
    header = "hip/hip_runtime.h" if backend == "amdgpu" else "cuda_runtime.h"
    text = _SOURCE if backend == "amdgpu" else _SOURCE.replace("hip", "cuda")
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "costs.cpp"), Path(folder, "costs")
        source.write_text(text.replace("HEADER", header), encoding="utf-8")
        for command in ([compiler, "-O2", *target, str(source), "-o", str(program)], [str(program), str(ordinal)]):
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=80)  # noqa: S603
            except subprocess.TimeoutExpired as error:
                return f"{Path(command[0]).name} did not end within {error.timeout} s"
            if done.returncode:
                said = (done.stderr or done.stdout).strip().splitlines()
                return f"{Path(command[0]).name} failed: {said[-1] if said else done.returncode}"
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        return f"the program printed {done.stdout!r}"
